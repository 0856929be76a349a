"""`rbtc eval`: a dataset and a model in, a run folder with every answer and its verdict out."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, Unpack, get_args

from robustbench_tc import taxonomy
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.io import parquet
from robustbench_tc.llm import Endpoint, native_model, need_any_llm, parse_endpoint
from robustbench_tc.schema import Sample

from . import (
    agent_server,
    agents,
    defend as defences,
    growth,
    inputs,
    models,
    probe,
    record,
    request_settings,
    reuse as reusing,
    session,
    verdicts,
)
from .callables.agent import Function, OwnAgent, own_agent
from .defend.again import is_strict, strict
from .defend.base import Defence
from .defend.chain import shown
from .first_replies import Asked
from .inputs import Dataset, Selection
from .prompts import OURS, Prompts, rlla as rlla_prompts
from .record import RunFolder
from .request_settings import RequestOptions, RequestSettings
from .run import Backend, Progress

Engine: TypeAlias = Literal["openai", "vllm", "anthropic", "gemini"]
"""Who answers: an OpenAI-compatible server, vLLM in this process, or a provider over its own API."""

Names: TypeAlias = str | Sequence[str]
"""One or several, each possibly comma-separated."""

PromptFormat: TypeAlias = Literal["benchmark", "rlla"]
"""The words of prompt mode: the benchmark's, or ToolRL's, in which its checkpoints were trained."""

_LEAST = {"timeout_s": 0.1, "max_retries": 0}
"""The smallest value of a number; 1 for the others."""


@dataclass(kw_only=True)
class Evaluated:
    """A run while its rows are asked, and afterwards."""

    folder: RunFolder
    asked: Progress
    """How far this session is: rows times repeats, done, and those without an answer."""
    data: Dataset = field(repr=False)
    agent: str | None = None
    """The reference agent; None behind defences too: of a defended one no verdict is known beforehand."""
    unexpected: list[str] = field(default_factory=list)
    """Of a reference agent, once scored: ids whose verdict is not the known one."""

    @property
    def answered(self) -> int:
        """Answers that are on disk, those of earlier sessions included."""
        # An earlier session's are in the record before this session has counted them.
        return max(self._there, self.asked.done - self.asked.request_errors)

    @property
    def _there(self) -> int:
        statuses = self.folder.record.totals.get("status", {})
        return sum(count for status, count in statuses.items() if status != "request_error")

    def score(self, progress: Callable[[str], None] = lambda line: None) -> None:
        """Writes `scores.parquet`. `progress` gets a line where predictions had to be made again."""
        if remade := verdicts.score_file(self.folder, self.data):
            progress(remade)
        if self.agent is None:
            return
        rows, anchors = self.data.by_id, self.data.anchors()
        self.unexpected = [
            row["id"]
            for row in parquet.read_rows([self.folder.scores_path], ["id", "correct"])
            if row["correct"] is not agents.is_right(self.agent, rows[row["id"]], anchors[row["id"]])
        ]

    def _ask(
        self,
        rows: Sequence[Sample],
        selection: Selection,
        ask: session.OpenBackend,
        at_once: int,
        words: Prompts,
        first: Asked | None,
        before: Callable[[Backend], Awaitable[None]] | None,
        progress: Callable[[Progress], None],
    ) -> None:
        """One session over `rows`. A run that it was to grow stays as it was where it gets no new answer."""

        def moved(state: Progress) -> None:
            self.asked = state
            progress(state)

        folder, hashes, there = self.folder, self.data.hashes(), self._there
        every = growth.rows(self.data, folder.record.selections)
        try:
            self.asked = session.run(
                folder,
                rows,
                hashes,
                ask,
                concurrency=at_once,
                every=every,
                selection=selection,
                results=self.data.results,
                words=words,
                first=first,
                before=before,
                progress=moved,
            )
        except BaseException:
            if folder.before is not None and self._there <= there:
                session.take_back(folder, growth.rows(self.data, folder.before.selections), hashes)
            raise


class _Who(NamedTuple):
    """Who is asked, checked before any work."""

    name: str
    mode: record.Mode
    backend: str
    settings: RequestSettings
    endpoints: Sequence[Endpoint]
    """The addresses of a model; none of an agent of the user's."""
    own: OwnAgent | None = None
    asked: Asked | None = None
    """Whose first replies may stop the run; None for a reference agent."""
    notes: Sequence[str] = ()

    def settle(
        self, data: Dataset, selection: Selection, repeat: int, words: Prompts, chain: Sequence[Defence]
    ) -> record.Settings:
        """What the answers of the run depend on. Raises UserError for a defence of the other mode."""
        for one in chain:
            if self.mode not in one.modes:
                known = " and ".join(one.modes)
                raise UserError(f"--defend {one.code}: it works in {known} mode, not in {self.mode}")
        return record.Settings(
            fingerprint=data.fingerprint(),
            model=self.name,
            mode=self.mode,
            backend=self.backend,
            prompt_version=words.version,
            selection=selection,
            repeat=repeat,
            defend=defences.names(chain),
            **self.settings.identity,
        )

    def place(self, out: str | Path | None, prompt_format: PromptFormat) -> Path:
        """The run's folder."""
        suffix = "" if prompt_format == "benchmark" else f"-{prompt_format}"
        return record.default_place(self.name, self.mode, suffix) if out is None else Path(out)


def _own(own: OwnAgent) -> _Who:
    return _Who(own.name, own.mode, own.backend, own.settings, (), own, "own agent")


def _model(
    model: str | None,
    base_url: str | Sequence[str],
    agent: str | None,
    mode: str | None,
    backend: Engine,
    early_stop: bool,
    options: RequestOptions,
) -> _Who:
    """A model, or the reference agent `agent`, with the settings of the models' table."""
    asked_at = endpoints(model, base_url, agent, backend, options)
    entry = models.find(name := asked_at[0].model)
    settings = request_settings.settle(entry, options, agent)
    who = _Who(name, record.mode_of(mode or models.mode_of(name)), asked_at[0].provider, settings, asked_at)
    if mode is None and entry is not None:
        who = who._replace(
            notes=[f"{name} is asked in {who.mode} mode, as it was trained; --mode changes it"]
        )
    return who._replace(asked="model") if early_stop and agent is None else who


def evaluate(
    dataset: str | Path = "robustbench-tc",
    *,
    model: str | None = None,
    base_url: str | Sequence[str] = (),
    agent: str | None = None,
    callable: Function | None = None,
    command: str | Sequence[str] | None = None,
    mode: str | None = None,
    backend: Engine = "openai",
    revision: str | None = None,
    types: Names = (),
    sources: Names = (),
    ids: str | Sequence[str] = (),
    limit: int | None = None,
    samples: int | None = None,
    repeat: int = 1,
    concurrency: int = 32,
    timeout_s: float = 300.0,
    max_retries: int = 6,
    workers: Workers = SERIAL,
    gpus: int = 1,
    prompt_format: PromptFormat = "benchmark",
    rlla: str | Path | None = None,
    defend: Names = (),
    out: str | Path | None = None,
    fresh: bool = False,
    discard_changes: bool = False,
    reuse: str | Path | Sequence[str | Path] = (),
    score: bool = True,
    early_stop: bool = True,
    probed: Callable[[str], None] | None = None,
    started: Callable[[Evaluated], None] = lambda run: None,
    progress: Callable[[Progress], None] = lambda state: None,
    **options: Unpack[RequestOptions],
) -> Evaluated:
    """Asks a model every row and keeps every answer in a run folder, then scores them.

    Interrupted at any point, the same call goes on where it stopped. Another selection (`types`, `sources`,
    `ids`, `limit` rows, `samples`) or a larger `repeat` lets the run grow: no answer is asked for twice. The
    options are those of `rbtc eval`: `model` is an id or MODEL@BASE_URL, several `base_url` share the
    requests, `agent` is a reference agent instead; `callable` is your agent, a function of a `Task` or its
    `module:function`, `command` one as a program. `concurrency` counts requests per address, `out` is by
    default `runs/MODEL-MODE`, `reuse` names runs of equal settings to take answers from, `score` False only
    asks, `early_stop` False goes on after 20 replies without a call, `probed` is told what fails of five
    questions to a server (`eval.probe`). `prompt_format` "rlla" asks in ToolRL's words, read from the data
    `rlla`; `defend` names defences, the first in front; `started` gets the run before any request.

    Raises UserError for what is wrong with options, dataset, folder or endpoint; all answers are kept.
    >>> evaluate("robustbench-tc", model="qwen3-8b", base_url="http://localhost:8000/v1")  # doctest: +SKIP
    """
    check_thread()
    check_bounds(limit=limit, samples=samples, repeat=repeat, gpus=gpus)
    check_bounds(concurrency=concurrency, timeout_s=timeout_s, max_retries=max_retries)
    if out is not None:
        record.check_place(Path(out))
    (asked_in, mode), chain = _prompts(prompt_format, rlla, mode), defences.parse(words(defend))
    others = {"--agent": agent, "--base-url": base_url, "--backend": backend != "openai"}
    others |= {"--prompt-format": asked_in is not OURS, "--defend": bool(chain)}
    own = own_agent(
        callable, command, name=model, mode=mode, others=others, options=options, concurrency=concurrency
    )
    who = _own(own) if own else _model(model, base_url, agent, mode, backend, early_stop, options)
    data = inputs.load(str(dataset), revision=revision)
    rows = inputs.select(data, selection := selection_of(types, sources, ids, limit, samples))
    settings = who.settle(data, growth.joined(data, (), selection)[0], repeat, asked_in, chain)
    folder = _folder(who.place(out, prompt_format), data, rows, settings, reuse, fresh, discard_changes)
    folder.notes += who.notes
    asked = Progress(len(rows) * folder.record.settings.repeat)
    run = Evaluated(folder=folder, asked=asked, data=data, agent=None if chain else agent)
    started(run)
    with nullcontext() if agent is None else _agent(agent, data, asked_in, chain) as url:
        if url is not None:
            who = who._replace(endpoints=[Endpoint(who.name, url, api_key="none", reasoning=False)])
        ask, at_once = _backend(run, who, concurrency, timeout_s, max_retries, workers, gpus)
        questions = _questions(folder, probed, is_server=not (agent or own))
        run._ask(rows, selection, ask, at_once, asked_in, who.asked, questions, progress)
    if score:
        run.score()
    return run


def _questions(
    folder: RunFolder, probed: Callable[[str], None] | None, *, is_server: bool
) -> Callable[[Backend], Awaitable[None]] | None:
    """What a server is asked before the first row, once a run."""
    record = folder.record
    if probed is None or not is_server or record.probed is not None:
        return None

    async def ask(backend: Backend) -> None:
        record.probed = await probe.first(backend, record.settings.model, record.settings.mode)
        folder.save()
        for one in probe.failed(record.probed):
            probed(one.line)

    return ask


def _agent(name: str, data: Dataset, words: Prompts, chain: Sequence[Defence]) -> AbstractContextManager[str]:
    """A reference agent behind defences: it knows the requests that they make of the rows."""
    if not chain:
        return agent_server.serving(name, data.rows, words)
    rows = [shown(chain, row) for row in data.rows]
    return agent_server.serving(name, rows, words, sent=strict if is_strict(chain) else list)


def _prompts(prompt_format: str, rlla: str | Path | None, mode: str | None) -> tuple[Prompts, str | None]:
    """The words of prompt mode, and the mode that is asked in. Raises UserError for options that do not go
    together."""
    if prompt_format not in get_args(PromptFormat):
        raise unknown("prompt format", prompt_format, get_args(PromptFormat))
    if prompt_format == "benchmark":
        if rlla is not None:
            raise UserError(f"--rlla {rlla}: say --prompt-format rlla as well, or leave it out")
        return OURS, mode
    if rlla is None:
        raise UserError(
            "--prompt-format rlla asks in ToolRL's own words: name training data that holds them with --rlla"
        )
    if mode is not None and record.mode_of(mode) != "prompt":
        raise UserError(f"--prompt-format rlla is a form of prompt mode: leave --mode {mode} out")
    return rlla_prompts.read(str(rlla)), "prompt"


def _folder(
    path: Path,
    data: Dataset,
    rows: Sequence[Sample],
    settings: record.Settings,
    reuse: str | Path | Sequence[str | Path],
    fresh: bool,
    discard_changes: bool,
) -> RunFolder:
    """The run folder with what other runs give to it. `fresh`: without the run that is there."""
    others = [Path(one) for one in ([reuse] if isinstance(reuse, str | Path) else reuse)]
    reusing.check(others, settings, path)
    if fresh and os.path.lexists(path):
        record.discard(path, discard_changes=discard_changes)
    folder = record.start(path, data, settings, len(rows) * settings.repeat)
    reusing.take(folder, rows, others)
    return folder


def check_thread() -> None:
    """UserError where an event loop runs already: a session brings its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UserError(
        "an event loop is running here, as in a notebook: say `await asyncio.to_thread(…)` around the call"
    )


def check_bounds(**given: float | None) -> None:
    """UserError for a number below its smallest value."""
    for name, value in given.items():
        least = _LEAST.get(name, 1)
        if value is not None and not value >= least:  # so that nan is refused too
            raise UserError(f"{name} {value}: give {least:g} or more")


def endpoints(
    model: str | None,
    base_url: str | Sequence[str],
    agent: str | None,
    backend: Engine,
    options: RequestOptions,
) -> list[Endpoint]:
    """Who is asked; a wrong address is refused before any work."""
    headers = request_settings.headers(options)
    base_urls = (base_url,) if isinstance(base_url, str) else base_url
    if backend not in get_args(Engine):
        raise unknown("backend", backend, get_args(Engine))
    if agent is not None:
        if (model, [*base_urls], backend) != (None, [], "openai"):
            raise UserError("--agent brings its own server: leave --model, --base-url and --backend out")
        agents.agent(agent)
        return [Endpoint(f"agent-{agent}")]
    if model is None:
        raise UserError("no model: name one with --model, or a reference agent with --agent")
    named = native_model(model)
    if named is not None and backend not in ("openai", named[0]):
        raise UserError(f"--model {model} and --backend {backend} disagree: leave one of them out")
    if backend == "vllm":
        return [Endpoint(model, provider=backend)]
    provider, name = named or (backend, model)
    if provider != "openai":
        need_any_llm()
        if len(base_urls) > 1:  # each keeps the signatures of its own replies
            raise UserError(f"--base-url: {provider} is asked at one address")
    else:
        at = parse_endpoint(model)
        name, base_urls = at.model, [at.base_url] if at.base_url else base_urls
    urls: Sequence[str | None] = base_urls or [None]
    return [Endpoint(name, url, headers=headers, provider=provider).resolved() for url in urls]


def selection_of(
    types: Names,
    sources: Names,
    ids: str | Sequence[str] = (),
    limit: int | None = None,
    samples: int | None = None,
) -> Selection:
    """Which rows these words mean; components stand for their types. `inputs.select` checks names."""
    codes: list[str] = []
    for word in taxonomy.split(types):
        codes += taxonomy.codes_of(word) if word in taxonomy.COMPONENTS else [taxonomy.find(word)]
    return Selection(
        types=tuple(dict.fromkeys(codes)),
        sources=tuple(dict.fromkeys(words(sources))),
        ids=tuple(dict.fromkeys([ids] if isinstance(ids, str) else ids)),
        limit=limit,
        samples=samples,
    )


def words(given: Names) -> list[str]:
    """The names, one by one."""
    items: Iterable[str] = [given] if isinstance(given, str) else given
    return [word.strip() for item in items for word in item.split(",") if word.strip()]


def _backend(
    run: Evaluated,
    who: _Who,
    concurrency: int,
    timeout_s: float,
    max_retries: int,
    workers: Workers,
    gpus: int,
) -> tuple[session.OpenBackend, int]:
    """How the backend is opened, and how many requests are under way at all its addresses."""
    if who.own is not None:
        return who.own.opened(run.data.results, timeout_s), who.own.at_once
    if who.backend == "vllm":
        entry = models.find(who.name)
        opened = session.vllm(entry, who.name, who.settings, batch=concurrency, workers=workers, engines=gpus)
        return opened, concurrency * (gpus if workers.engine == "ray" else 1)
    return at_addresses(who.endpoints, who.settings, concurrency, timeout_s, max_retries, workers)


def at_addresses(
    endpoints: Sequence[Endpoint],
    asked: RequestSettings,
    concurrency: int,
    timeout_s: float,
    max_retries: int,
    workers: Workers = SERIAL,
) -> tuple[session.OpenBackend, int]:
    """A model at its addresses, and how many requests are under way at all of them."""
    at_once = concurrency * len(endpoints)
    opened = session.endpoint(
        endpoints[0],
        asked,
        also=endpoints[1:],
        concurrency=at_once,
        timeout_s=timeout_s,
        max_retries=max_retries,
        workers=workers,
    )
    return opened, at_once
