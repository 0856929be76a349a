"""Live runs: `rbtc live run`, `score`, `summary` and `report`."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from ..option import Tell, check, silent, struct_of
from . import options

if TYPE_CHECKING:
    from ..eval.live.evaluate import Played
    from ..eval.run import Progress as State
    from ..eval.stats.screen import Screen
    from ..schema import Json


def run_live(
    dataset: Annotated["str | Path", options.ASKED] = "robustbench-tc-live",
    *,
    model: Annotated[str | None, options.MODEL] = None,
    base_url: Annotated["str | Sequence[str]", options.BASE_URL] = (),
    agent: Annotated[str | None, options.AGENT] = None,
    mode: Annotated[str | None, options.MODE] = None,
    backend: Annotated[Literal["openai", "anthropic", "gemini"], options.BACKEND] = "openai",
    headers: Annotated["Mapping[str, str]", options.HEADER] = MappingProxyType({}),
    defend: Annotated["str | Sequence[str]", options.DEFEND] = (),
    revision: Annotated[str | None, options.REVISION] = None,
    types: Annotated["str | Sequence[str]", options.TYPES] = (),
    ids: Annotated["str | Sequence[str]", options.IDS] = (),
    limit: Annotated[int | None, options.LIMIT] = None,
    repeat: Annotated[int, options.REPEAT] = 1,
    worlds: Annotated["Sequence[str]", options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    seed: Annotated[int | None, options.SEED] = None,
    temperature: Annotated[float | None, options.TEMPERATURE] = None,
    max_tokens: Annotated[int | None, options.MAX_TOKENS] = None,
    top_p: Annotated[float | None, options.TOP_P] = None,
    top_k: Annotated[int | None, options.TOP_K] = None,
    stop: Annotated["str | Sequence[str]", options.STOP] = (),
    reasoning_effort: Annotated[str | None, options.REASONING_EFFORT] = None,
    logprobs: Annotated[bool, options.LOGPROBS] = False,
    system: Annotated[str | None, options.SYSTEM] = None,
    system_as_user: Annotated[bool, options.SYSTEM_AS_USER] = False,
    extra_body: Annotated["Mapping[str, Json]", options.EXTRA_BODY] = MappingProxyType({}),
    chat_template_args: Annotated["Mapping[str, Json]", options.CHAT_TEMPLATE_ARG] = MappingProxyType({}),
    concurrency: Annotated[int, options.CONCURRENCY] = 32,
    timeout_s: Annotated[float, options.TIMEOUT] = 300.0,
    max_retries: Annotated[int, options.MAX_RETRIES] = 6,
    max_cost: Annotated[float | None, options.MAX_COST] = None,
    price: Annotated["tuple[float, float] | None", options.PRICE] = None,
    out: Annotated["str | Path | None", options.OUT] = None,
    fresh: Annotated[bool, options.FRESH] = False,
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
    score: Annotated[bool, options.SCORE] = True,
    started: "Callable[[Played], None]" = lambda run: None,
    progress: "Callable[[State], None]" = lambda state: None,
) -> "Played":
    """Let a model act in every row's world, turn by turn; keep every answer and every result; score them.

    Killed or failed at any point, the same command goes on where it stopped: no answer is asked for twice.
    --types takes kinds of faults, whose clean rows come along. The default folder is runs/live/MODEL-MODE.

    Example: rbtc live run robustbench-tc-live --model qwen3-8b --base-url http://localhost:8000/v1
    Example: rbtc live run robustbench-tc-live --agent oracle --types silent_no_op

    Raises UserError for a wrong option, an unreadable dataset, a folder with a run of other settings, a world
    that cannot be started, and an endpoint that does not answer; what was answered by then is kept.

    >>> run_live("robustbench-tc-live", agent="oracle", out="runs/live/oracle")  # doctest: +SKIP
    """
    given = locals()
    from .. import taxonomy
    from ..eval import growth, models, record, request_settings, session
    from ..eval.defend import names as defence_names
    from ..eval.inputs import Selection, names_of
    from ..eval.live import after, defended, inputs, prompts
    from ..eval.live.evaluate import Played, actor
    from ..eval.record import Settings, default_place, mode_of
    from ..eval.run import Progress as State
    from ..eval.speakers import ScriptedAgent
    from ..eval.stats.screen import screen
    from ..eval.who import Effort, at_addresses

    check(run_live, given)
    if out is not None:
        record.check_place(Path(out))
    of_requests = struct_of(request_settings.RequestOptions, given)
    name, spoken_to, addresses = actor(agent, model, base_url, backend, of_requests)
    asked = request_settings.settle(models.find(name), of_requests, agent)
    spoken = mode_of(mode or models.mode_of(name))
    chain = defended.parse(tuple(names_of(defend)), spoken)
    data = inputs.load(str(dataset), revision=revision)
    only = tuple(dict.fromkeys([ids] if isinstance(ids, str) else ids))
    selection = Selection(types=inputs.codes(taxonomy.split(types)), ids=only, limit=limit)
    rows = inputs.select(data, selection)
    settings = Settings(
        fingerprint=data.fingerprint(),
        model=name,
        mode=spoken,
        backend=spoken_to,
        prompt_version=prompts.version(),
        selection=selection,
        repeat=repeat,
        defend=defence_names(chain),
        **asked.identity,
    )
    kinds = inputs.world_types(rows, worlds, world_python)
    path = default_place(name, spoken, live=True) if out is None else Path(out)
    if fresh and os.path.lexists(path):
        record.discard(path, discard_changes=discard_changes)
    played = Played(record.start(path, data, settings, len(rows) * repeat), data, State(len(rows) * repeat))
    started(played)
    if agent is None:
        ask, at_once = at_addresses(
            addresses, asked, Effort(concurrency=concurrency, timeout_s=timeout_s, max_retries=max_retries)
        )
    else:
        ask, at_once = session.in_process(ScriptedAgent(agent, data.clean())), concurrency
    played.asked = session.run(
        played.folder,
        data,
        rows,
        ask,
        worlds=kinds,
        concurrency=at_once,
        every=growth.rows(data, played.folder.record.selections),
        selection=selection,
        progress=progress,
    )
    if score:
        after.score(played.folder, data, kinds)
        played.scores = screen(played.folder, allow_missing=True)
    return played


def score_live(
    run: Annotated["str | Path", options.RUN],
    *,
    dataset: Annotated["str | None", options.DATASET] = None,
    worlds: Annotated["Sequence[str]", options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
) -> "Screen":
    """Replay every episode without the model, and write and print the scores.

    Example: rbtc live score runs/live/qwen3-8b-fc

    Raises UserError.
    """
    from ..eval.live import after, inputs
    from ..eval.stats.screen import screen

    folder, data = after.opened(run, dataset)
    after.score(folder, data, inputs.world_types(data.rows, worlds, world_python))
    return screen(folder, allow_missing=True)


def summary_live(run: Annotated["str | Path", options.RUN]) -> "Screen":
    """Per kind of fault: how often the world ended as it should, and what the user was told.

    Example: rbtc live summary runs/live/qwen3-8b-fc --json

    Raises UserError for a run that is not scored.
    """
    from ..eval import record
    from ..eval.stats.screen import screen

    return screen(record.open_run(Path(run)), allow_missing=True)


def report_live(
    run: Annotated["str | Path", options.RUN],
    out: Annotated["str | Path", options.OUT] = "live-report",
    *,
    dataset: Annotated["str | None", options.DATASET] = None,
    worlds: Annotated["Sequence[str]", options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
    progress: Tell = silent,
) -> Path:
    """Write one page of a scored live run, `live.html`: what faults cost, and episodes step by step.

    The episodes that are drawn are replayed, without the model.

    Example: rbtc live report runs/live/qwen3-8b-fc --out live-report

    Raises UserError for a run that is not scored, a dataset or a world that is not at hand, and a folder that
    holds anything else.
    """
    from ..eval.report import assemble

    assemble.report(
        [str(run)],
        Path(out),
        dataset=dataset,
        worlds=worlds,
        world_python=world_python,
        discard_changes=discard_changes,
        progress=progress,
    )
    return Path(out) / "report.html"
