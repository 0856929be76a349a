"""`rbtc live run`: a live dataset and whoever acts in, a folder with every answer, result and episode out."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.llm import Endpoint
from robustbench_tc.worlds.handle import WorldType

from .. import models, request_settings
from ..defend import names as defend_names
from ..inputs import Names, Selection, names_of
from ..record import Settings, default_place, mode_of
from ..request_settings import RequestOptions
from ..run import Progress
from ..who import Effort, Engine, at_addresses, endpoints
from . import defended, inputs, prompts, record, run
from .agents import AGENTS
from .inputs import LiveData
from .record import LiveFolder
from .speakers import ScriptedSpeaker

OWN_AGENT = "agent-"
"""In front of an agent's name where a model's would stand."""


@dataclass(kw_only=True)
class Played:
    """A live run while it is played, and afterwards."""

    folder: LiveFolder
    asked: Progress
    data: LiveData

    @property
    def ended(self) -> int:
        """Episodes that ended, those of earlier sessions included; without an answer they are asked again."""
        counts = self.folder.record.totals.get("ended", {})
        return sum(count for how, count in counts.items() if how != "request_error")


def run_live(
    dataset: str | Path = "robustbench-tc-live",
    *,
    model: str | None = None,
    base_url: str | Sequence[str] = (),
    agent: str | None = None,
    mode: str | None = None,
    backend: Engine = "openai",
    revision: str | None = None,
    types: Names = (),
    ids: str | Sequence[str] = (),
    limit: int | None = None,
    repeat: int = 1,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
    defend: Names = (),
    concurrency: int = 32,
    timeout_s: float = 300.0,
    max_retries: int = 6,
    out: str | Path | None = None,
    fresh: bool = False,
    discard_changes: bool = False,
    started: Callable[[Played], None] = lambda run: None,
    progress: Callable[[Progress], None] = lambda state: None,
    **options: Unpack[RequestOptions],
) -> Played:
    """Plays every row of a live dataset with a model and keeps every answer and result in a run folder.

    Interrupted at any point, the same call goes on where it stopped: no answer is asked for twice. `agent` is
    a scripted agent instead of a model; `worlds` are Python files of worlds that this package does not bring;
    `world_python` is the Python that has BFCL's classes; `types` are `clean` and kinds of faults; `defend`
    names defences (docs/defences.md). Everything else is as for `evaluate`.

    Raises UserError for a wrong option, an unreadable dataset, a folder with a run of other settings, a world
    that cannot be started, and an endpoint that does not answer; what was answered by then is kept.

    >>> run_live("robustbench-tc-live", agent="oracle", out="runs/live/oracle")  # doctest: +SKIP
    """
    if out is not None:
        record.check_place(Path(out))
    name, backend_name, asked_at = _who(agent, model, base_url, backend, options)
    entry = models.find(name)
    asked = request_settings.settle(entry, options, agent)
    spoken = mode_of(mode or models.mode_of(name))
    chain = defended.parse(names_of(defend), spoken)
    data = inputs.load(str(dataset), revision=revision)
    only = tuple(dict.fromkeys([ids] if isinstance(ids, str) else ids))
    selection = Selection(types=inputs.codes(taxonomy.split(types)), ids=only, limit=limit)
    rows = inputs.select(data, selection)
    settings = Settings(
        fingerprint=data.fingerprint(),
        model=name,
        mode=spoken,
        backend=backend_name,
        prompt_version=prompts.version(),
        selection=selection,
        repeat=repeat,
        defend=defend_names(chain),
        **asked.identity,
    )
    types_of: dict[str, WorldType] = inputs.world_types(rows, worlds, world_python)
    usual = default_place(name, settings.mode)
    path = usual.parent / "live" / usual.name if out is None else Path(out)
    if fresh and os.path.lexists(path):
        record.discard(path, discard_changes=discard_changes)
    folder = record.start(path, data, settings, len(rows) * repeat)
    played = Played(folder=folder, asked=Progress(len(rows) * repeat), data=data)
    started(played)
    if agent is None:
        ask, at_once = at_addresses(
            asked_at, asked, Effort(concurrency=concurrency, timeout_s=timeout_s, max_retries=max_retries)
        )
        cast = run.model(ask, at_once)
    else:
        cast, at_once = run.scripted(ScriptedSpeaker(agent, data.clean())), concurrency
    played.asked = run.run(folder, rows, cast, types_of, concurrency=at_once, progress=progress)
    return played


def _who(
    agent: str | None,
    model: str | None,
    base_url: str | Sequence[str],
    backend: Engine,
    options: RequestOptions,
) -> tuple[str, str, list[Endpoint]]:
    """The name of whoever acts, its backend, and its addresses; a wrong one is refused before any work."""
    if agent is None:
        if backend == "vllm":
            raise UserError("live episodes ask a server: start vLLM with `rbtc serve-command MODEL`")
        found = endpoints(model, base_url, None, backend, options)
        return found[0].model, found[0].provider, found
    if model is not None or base_url:
        raise UserError("--agent acts in this process: leave --model and --base-url out")
    if agent not in AGENTS:
        raise unknown("scripted agent", agent, AGENTS)
    return OWN_AGENT + agent, "agent", []
