"""`rbtc eval`: a dataset and a model in, a run folder with every answer and its verdict out."""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from robustbench_tc import taxonomy
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.io import parquet
from robustbench_tc.llm import Endpoint, parse_endpoint
from robustbench_tc.schema import Json, Sample

from . import agent_server, agents, growth, inputs, models, prompts, record, session, verdicts
from . import reuse as reusing
from .inputs import Dataset, Selection
from .models import Model
from .record import RunFolder
from .run import Progress

Engine: TypeAlias = Literal["openai", "vllm"]
"""Who answers: an OpenAI-compatible server, or vLLM in this process."""

Names: TypeAlias = str | Sequence[str]
"""One or several, each possibly comma-separated."""

_LEAST = {"temperature": 0.0, "timeout_s": 0.1, "max_retries": 0}
"""The smallest value of a number; 1 for the others."""


@dataclass(kw_only=True)
class Evaluated:
    """A run while its rows are asked, and afterwards."""

    folder: RunFolder
    asked: Progress
    """How far this session is: rows times repeats, done, and those without an answer."""
    data: Dataset = field(repr=False)
    agent: str | None = None
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
        rows, anchors = {row.id: row for row in self.data.rows}, self.data.anchors()
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
        progress: Callable[[Progress], None],
    ) -> None:
        """One session over `rows`. A run that it was to grow stays as it was where it gets no new answer."""

        def moved(state: Progress) -> None:
            self.asked = state
            progress(state)

        folder, hashes, before = self.folder, self.data.hashes(), self._there
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
                progress=moved,
            )
        except BaseException:
            if folder.before is not None and self._there <= before:
                session.take_back(folder, growth.rows(self.data, folder.before.selections), hashes)
            raise


def evaluate(
    dataset: str | Path = "robustbench-tc",
    *,
    model: str | None = None,
    base_url: str | Sequence[str] = (),
    agent: str | None = None,
    mode: str | None = None,
    backend: Engine = "openai",
    revision: str | None = None,
    types: Names = (),
    sources: Names = (),
    ids: str | Sequence[str] = (),
    limit: int | None = None,
    samples: int | None = None,
    repeat: int = 1,
    seed: int | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    logprobs: bool = False,
    concurrency: int = 32,
    timeout_s: float = 300.0,
    max_retries: int = 6,
    workers: Workers = SERIAL,
    gpus: int = 1,
    out: str | Path | None = None,
    fresh: bool = False,
    discard_changes: bool = False,
    reuse: str | Path | Sequence[str | Path] = (),
    score: bool = True,
    started: Callable[[Evaluated], None] = lambda run: None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> Evaluated:
    """Asks a model every row and keeps every answer in a run folder, then scores them.

    Interrupted at any point, the same call goes on where it stopped. Another selection (`types`, `sources`,
    `ids`, `limit` rows, `samples`) or a larger `repeat` lets the run grow: no answer is asked for twice. The
    options are those of `rbtc eval`: `model` is an id or MODEL@BASE_URL, several `base_url` share the
    requests, `agent` is a reference agent instead, `concurrency` counts requests per address, `out` is by
    default `runs/MODEL-MODE`, `reuse` names runs of equal settings to take answers from, `score` False only
    asks. `started` gets the run before any request.

    Raises UserError for a wrong option, an unreadable dataset, a folder with a run of other settings, and an
    endpoint that does not answer; what was answered by then is kept.

    >>> evaluate("robustbench-tc", model="qwen3-8b", base_url="http://localhost:8000/v1")  # doctest: +SKIP
    """
    _check_thread()
    _check_bounds(limit=limit, samples=samples, repeat=repeat, temperature=temperature, max_tokens=max_tokens)
    _check_bounds(gpus=gpus, concurrency=concurrency, timeout_s=timeout_s, max_retries=max_retries)
    if out is not None:
        record.check_place(Path(out))
    endpoints = _endpoints(model, (base_url,) if isinstance(base_url, str) else base_url, agent, backend)
    entry = models.find(name := endpoints[0].model)
    data = inputs.load(str(dataset), revision=revision)
    rows = inputs.select(data, selection := _selection(types, sources, ids, limit, samples))
    settings = record.Settings(
        fingerprint=data.fingerprint(),
        model=name,
        mode=record.mode_of(mode or (entry.mode if entry is not None else "prompt")),
        backend=backend,
        decoding=_decoding(
            entry, logprobs=logprobs, temperature=temperature, max_tokens=max_tokens, seed=seed
        ),
        prompt_version=prompts.prompt_version(),
        selection=growth.joined(data, (), selection)[0],
        repeat=repeat,
    )
    path = record.default_place(name, settings.mode) if out is None else Path(out)
    folder = _folder(path, data, rows, settings, reuse, discard_changes if fresh else None)
    total = len(rows) * folder.record.settings.repeat
    run = Evaluated(folder=folder, asked=Progress(total), data=data, agent=agent)
    started(run)
    with nullcontext() if agent is None else agent_server.serving(agent, data.rows) as url:
        if url is not None:
            endpoints = [Endpoint(name, url, api_key="none", reasoning=False)]
        ask, at_once = _backend(settings, endpoints, concurrency, timeout_s, max_retries, workers, gpus)
        run._ask(rows, selection, ask, at_once, progress)
    if score:
        run.score()
    return run


def _folder(
    path: Path,
    data: Dataset,
    rows: Sequence[Sample],
    settings: record.Settings,
    reuse: str | Path | Sequence[str | Path],
    discard_changes: bool | None,
) -> RunFolder:
    """The run folder with what other runs give to it. `discard_changes`: of the run there, None keeps it."""
    others = [Path(one) for one in ([reuse] if isinstance(reuse, str | Path) else reuse)]
    reusing.check(others, settings, path)
    if discard_changes is not None and os.path.lexists(path):
        record.discard(path, discard_changes=discard_changes)
    folder = record.start(path, data, settings, len(rows) * settings.repeat)
    reusing.take(folder, rows, data.hashes(), others)
    return folder


def _check_thread() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UserError(
        "an event loop is running here, as in a notebook: say `await asyncio.to_thread(api.evaluate, …)`"
    )


def _check_bounds(**given: float | None) -> None:
    for name, value in given.items():
        least = _LEAST.get(name, 1)
        if value is not None and not value >= least:  # so that nan is refused too
            raise UserError(f"{name} {value}: give {least:g} or more")


def _endpoints(
    model: str | None, base_urls: Sequence[str], agent: str | None, backend: Engine
) -> list[Endpoint]:
    """Who is asked; a wrong address is refused before any work."""
    if backend not in get_args(Engine):
        raise unknown("backend", backend, get_args(Engine))
    if agent is not None:
        if (model, [*base_urls], backend) != (None, [], "openai"):
            raise UserError("--agent brings its own server: leave --model, --base-url and --backend out")
        agents.agent(agent)
        return [Endpoint(f"agent-{agent}")]
    if model is None:
        raise UserError("no model: name one with --model, or a reference agent with --agent")
    if backend == "vllm":
        return [Endpoint(model)]
    named = parse_endpoint(model)
    urls: Sequence[str | None] = [named.base_url] if named.base_url else base_urls or [None]
    found = [Endpoint(named.model, url) for url in urls]
    for one in found:
        one.resolved()
    return found


def _decoding(entry: Model | None, *, logprobs: bool, **given: Json) -> dict[str, Json]:
    """What is sent with every request: the models' table, or the paper's defaults, under what was `given`."""
    found = entry.decoding() if entry is not None else dict(models.DEFAULT_DECODING)
    found |= {name: value for name, value in given.items() if value is not None}
    if logprobs:
        found["logprobs"] = True
    if entry is not None and entry.thinking == "off":
        found["chat_template_kwargs"] = models.NO_THINKING
    return found


def _selection(
    types: Names, sources: Names, ids: str | Sequence[str], limit: int | None, samples: int | None
) -> Selection:
    codes: list[str] = []
    for word in words(types):
        if word in taxonomy.COMPONENTS:
            codes += [t.code for t in taxonomy.types() if t.component == word]
        else:
            codes.append(word)
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
    settings: record.Settings,
    endpoints: Sequence[Endpoint],
    concurrency: int,
    timeout_s: float,
    max_retries: int,
    workers: Workers,
    gpus: int,
) -> tuple[session.OpenBackend, int]:
    """How the backend is opened, and how many requests are under way at all its addresses."""
    name, decoding = settings.model, settings.decoding
    if settings.backend == "vllm":
        opened = session.vllm(
            models.find(name), name, decoding, batch=concurrency, workers=workers, engines=gpus
        )
        return opened, concurrency * (gpus if workers.engine == "ray" else 1)
    at_once = concurrency * len(endpoints)
    opened = session.endpoint(
        endpoints[0],
        decoding,
        also=endpoints[1:],
        concurrency=at_once,
        timeout_s=timeout_s,
        max_retries=max_retries,
        workers=workers,
    )
    return opened, at_once
