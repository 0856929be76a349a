"""The doors of `api`: relays between an agent and its model that carry out a plan."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..errors import UserError
from ..own import book as own_book
from ..schema import Sample

if TYPE_CHECKING:
    from ..proxy.driven import Driven
    from ..proxy.ground.fitted import Ground
    from ..proxy.mcp.calls import Door as McpDoor
    from ..proxy.plan import Plan
    from ..proxy.scored import Scored
    from ..proxy.summary import Summary


@contextmanager
def proxy_llm(
    upstream: str,
    plan: str | Path,
    *,
    port: int = 0,
    journal: str | Path | None = None,
    allow_writes: bool = False,
    silence_s: float = 600.0,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[str]:
    """`rbtc proxy llm`: an OpenAI-compatible address on loopback, while the block runs; yields it.

    `upstream`: the base URL of the model's server. `port`: 0 for a free one. `journal`: a file that gets a
    line for each exchange. `allow_writes`: faults may take the place of the results of any tool. `silence_s`:
    how long the server may say nothing. `say` gets a line, once each, for what the user should know: a
    request that did not get its type, a server that refuses the key.

    Raises UserError for a plan that is none, a dataset that lacks one of its types, and a port that is taken.

    >>> with proxy_llm("http://127.0.0.1:8000/v1", "plan.yaml") as base_url:  # doctest: +SKIP
    ...     run_agent(base_url.replace("/v1", "/s/refund-17.0/v1"))
    """
    from ..proxy.door import Door
    from ..proxy.relay import serving

    found, rows, fingerprint = _planned(plan, allow_writes)
    door = Door(
        upstream,
        found,
        rows=rows,
        journal=None if journal is None else Path(journal),
        fingerprint=fingerprint,
        silence_s=silence_s,
        say=say,
    )
    if found.idle:
        say("the plan names neither types nor faults: requests pass as they are, and no journal is written")
    with serving(door, port) as url:
        yield url


def proxy_run(
    dataset: str | Path,
    command: str | Sequence[str],
    upstream: str,
    *,
    types: Sequence[str] = (),
    out: str | Path | None = None,
    journal: str | Path = "journal.jsonl",
    model: str | None = None,
    allow_writes: bool = False,
    concurrency: int = 4,
    timeout_s: float = 300.0,
    progress: Callable[[int, int], None] = lambda done, all_: None,
    say: Callable[[str], None] = lambda line: None,
) -> "tuple[Driven, Scored]":
    """`rbtc proxy run`: a program of its own loop, run for each row behind the LLM door, and scored.

    `types`: of the dataset; () for all. Sessions that `journal` has already are not run again. The rest as
    for `proxy_llm` and `score_journal`. Raises UserError.

    >>> proxy_run("bench", "python agent.py --loop", "http://127.0.0.1:8000/v1")  # doctest: +SKIP
    """
    import asyncio

    from ..eval import inputs, record
    from ..eval.callables.command import words_of
    from ..proxy import driven
    from ..proxy.door import Door
    from ..proxy.journal import read
    from ..proxy.plan import Plan
    from ..proxy.relay import serving
    from ..proxy.scenes import known_types

    if out is not None:
        record.check_place(Path(out))  # before hours of work, not after
    words, data, kept = words_of(command), inputs.load(str(dataset)), Path(journal)
    plan = Plan(bench=data.name, types=known_types(data.rows, types), allow_writes=allow_writes)
    plan = _of_the_dataset(plan)
    wanted = driven.sessions(data.rows, plan.types)
    there = {one.session for one in read(kept)} if kept.is_file() else set()
    door = Door(upstream, plan, rows=data.rows, journal=kept, fingerprint=data.fingerprint(), say=say)
    with serving(door) as url:
        made = asyncio.run(
            driven.drive(
                words,
                wanted,
                url,
                there=there,
                at_once=concurrency,
                timeout_s=timeout_s,
                progress=lambda done: progress(done, len(wanted)),
            )
        )
    return made, score_journal(kept, dataset=data.name, model=model or " ".join(words), out=out)


def score_journal(
    journal: str | Path,
    *,
    dataset: str | Path | None = None,
    model: str | None = None,
    repeat: int | None = None,
    out: str | Path | None = None,
) -> "Scored":
    """`rbtc score JOURNAL`: a run folder of a door's journal, scored; `.folder.path` says where.

    `dataset`: where the plan's dataset lies now, if it was moved. `model`: the run's name. `repeat`: how many
    attempts at each row count. `out`: by default `runs/MODEL-fc-door`.

    Raises UserError for a journal that is damaged, holds no case, or was made with another dataset.

    >>> score_journal("journal.jsonl").predictions  # doctest: +SKIP
    """
    from ..proxy import scored

    return scored.score(
        Path(journal),
        dataset=None if dataset is None else str(dataset),
        model=model,
        repeat=repeat,
        out=None if out is None else Path(out),
    )


def summarise_journal(journal: str | Path) -> "Summary":
    """`rbtc proxy summary`: calls, errors and faults of a door's journal, and what the agent did after them.

    >>> summarise_journal("journal.jsonl").faults  # doctest: +SKIP
    """
    from ..proxy.journal import read
    from ..proxy.summary import summary

    return summary(read(Path(journal)))


@contextmanager
def proxy_mcp(
    url: str,
    plan: str | Path,
    *,
    port: int = 0,
    journal: str | Path | None = None,
    allow_writes: bool = False,
    silence_s: float = 600.0,
) -> Iterator[str]:
    """`rbtc proxy mcp --url`: an MCP address on loopback, while the block runs; yields it.

    `url`: the address of the server (streamable HTTP). The rest as for `proxy_llm`.

    >>> with proxy_mcp("http://127.0.0.1:8000/mcp", "plan.yaml") as address:  # doctest: +SKIP
    ...     run_agent(address.replace("/mcp", "/s/refund-17.0/mcp"))
    """
    from ..proxy.mcp.http import Http
    from ..proxy.relay import serving

    door = _mcp_door(plan, allow_writes, journal, url)
    with serving(Http(url, door, silence_s=silence_s), port) as base:
        yield f"{base.removesuffix('/v1')}/mcp"
    door.journal.close()


def proxy_mcp_stdio(
    command: Sequence[str],
    plan: str | Path,
    *,
    session: str = "mcp.0",
    journal: str | Path | None = None,
    allow_writes: bool = False,
) -> int:
    """`rbtc proxy mcp -- COMMAND`: between our standard input and output and a server's, until one ends.

    Returns the server's exit code, 0 where the client went first. Raises UserError as `proxy_llm`.
    """
    import asyncio
    import os
    from contextlib import suppress

    from ..proxy.mcp.calls import Calls
    from ..proxy.mcp.stdio import Stdio
    from ..proxy.secrets import of_process
    from ..proxy.session import NoSession, parse

    try:
        named = parse(session)
    except NoSession as error:
        raise UserError(f"--session: {error}") from None
    door = _mcp_door(plan, allow_writes, journal, str(Path.cwd()), *command)
    calls = Calls(door, named)
    calls.secrets = of_process(command, os.environ)
    try:
        with suppress(asyncio.CancelledError):  # by SIGTERM: as clients end their servers
            return asyncio.run(Stdio(calls).run(command))
        return 0
    finally:
        calls.close()
        door.journal.close()


def ground(
    logs: Sequence[str | Path],
    out: str | Path | None = None,
    *,
    progress: Callable[[str], None] = lambda line: None,
) -> "Ground":
    """`rbtc ground`: faults that tools had in an agent's logs, with rates; `out` gets a plan of them.

    Raises UserError for a log that cannot be read or has no answered call, and where `out` is there already.

    >>> ground(["agent.jsonl"]).faults  # doctest: +SKIP
    """
    from ..io.files import atomic_file
    from ..proxy.ground.fitted import ground as fitted

    if out is not None and Path(out).exists():
        raise UserError(f"{out} is there already: name a new file with --out")
    found = fitted(tuple(map(Path, logs)), progress)
    if out is not None:
        with atomic_file(Path(out)) as beside:
            beside.write_text(found.plan(), encoding="utf-8")
    return found


def _mcp_door(path: str | Path, allow_writes: bool, journal: str | Path | None, *server: str) -> "McpDoor":
    """A door of a plan before one server: its address, or its folder and command."""
    from ..proxy.journal import Journal, Opened, digest
    from ..proxy.mcp.calls import Door
    from ..proxy.plan import check_for_tools
    from ..proxy.scenes import Scenes

    plan, rows, fingerprint = _planned(path, allow_writes)
    check_for_tools(plan)
    book = None if plan.bench is None else own_book.read(Path(plan.bench))
    place = None if journal is None else Path(journal)
    kept = Journal(place, Opened.of(plan, fingerprint, place), by=digest(*server))
    return Door(plan, Scenes(plan, rows), kept, {} if book is None else book.results)


def _planned(plan: str | Path, allow_writes: bool) -> "tuple[Plan, tuple[Sample, ...], str | None]":
    """A plan with what its dataset says of the tools, the dataset's rows and its fingerprint."""
    from ..eval import inputs
    from ..proxy.plan import read_plan

    found = read_plan(Path(plan))
    rows: tuple[Sample, ...] = ()
    fingerprint = None
    if found.bench is not None:
        data = inputs.load(found.bench)
        rows, fingerprint = data.rows, data.fingerprint()
        found = _of_the_dataset(msgspec.structs.replace(found, bench=data.name))
    if allow_writes:
        found = msgspec.structs.replace(found, allow_writes=True)
    return found, rows, fingerprint


def _of_the_dataset(plan: "Plan") -> "Plan":
    """The plan with what its dataset says of own tools: by their names, and as an agent registers them."""
    from ..llm.wire_names import safe_name

    book = own_book.read(Path(plan.bench or ""))
    if book is None:
        return plan
    return msgspec.structs.replace(
        plan,
        read_only=(*plan.read_only, *book.read_only, *map(safe_name, book.read_only)),
        idempotent=(*plan.idempotent, *book.idempotent, *map(safe_name, book.idempotent)),
    )
