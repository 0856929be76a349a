"""The doors: relays between an agent and its model or its tools that carry out a plan of faults."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import UserError
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..eval.inputs import Names
    from ..proxy.explain import Explained
    from ..proxy.ground import Ground
    from ..proxy.scored import Ran


def proxy(
    *,
    plan: Annotated[Path, Option(help="The plan of faults, a YAML file (docs/proxy-llm.md).")],
    upstream: Annotated[str | None, options.UPSTREAM] = None,
    mcp_url: Annotated[str | None, options.MCP_URL] = None,
    port: Annotated[int, options.PORT] = 0,
    session: Annotated[
        str, Option(help="<case>.<repeat> of the calls of an MCP server behind `--`.")
    ] = "mcp.0",
    journal: Annotated[Path, options.JOURNAL] = Path("journal.jsonl"),
    allow_writes: Annotated[bool, options.ALLOW_WRITES] = False,
    defend: Annotated["Names", options.DEFEND] = (),
    timeout: Annotated[float, options.TIMEOUT] = 600.0,
    server: Sequence[str] = (),
    say: Tell = silent,
) -> None:
    """Stand between an untouched agent and its model or its tools, and carry out a plan of faults.

    --upstream relays requests to a model on a port of this machine, --mcp-url those to an MCP server; Ctrl-C
    ends it. With an MCP server's command behind `--` it speaks on standard input and output as that server
    does: put it in front of the command in the client's configuration. Nobody else is contacted, and the
    agent's own key is sent on.

    Example: rbtc proxy --plan plan.yaml --upstream http://127.0.0.1:8000/v1
    Example: rbtc proxy --plan plan.yaml -- python server.py

    Raises UserError for a plan that is none, and a port that is taken.
    """
    import threading

    if sum(map(bool, (upstream, mcp_url, server))) != 1:
        raise UserError(
            "name one server: a model's with --upstream, or an MCP server's with --mcp-url or by its command "
            "behind `--`"
        )
    if server:
        from ..proxy.mcp.calls import door_of
        from ..proxy.mcp.stdio import relayed

        words = (str(Path.cwd()), *server)
        door = door_of(plan, words, allow_writes=allow_writes, defend=defend, journal=journal)
        if code := relayed(door, session, server):
            raise UserError(f"the MCP server ended with status {code}")
        return
    if upstream:
        served = proxy_llm(
            upstream,
            plan,
            port=port,
            journal=journal,
            allow_writes=allow_writes,
            defend=defend,
            silence_s=timeout,
            say=say,
        )
    else:
        served = proxy_mcp(
            mcp_url or "",
            plan,
            port=port,
            journal=journal,
            allow_writes=allow_writes,
            defend=defend,
            silence_s=timeout,
        )
    with served as address:
        base, _, end = address.rpartition("/")
        say(f"address of a session: {base}/s/CASE.REPEAT/{end}")
        say(f"without a session:    {address}")
        say(f"journal: {journal}; nothing but {upstream or mcp_url} is asked")
        threading.Event().wait()  # until Ctrl-C


@contextmanager
def proxy_llm(
    upstream: str,
    plan: str | Path,
    *,
    port: int = 0,
    journal: str | Path | None = None,
    allow_writes: bool = False,
    defend: "Names" = (),
    silence_s: float = 600.0,
    say: Tell = silent,
) -> Iterator[str]:
    """An OpenAI-compatible address on loopback, while the block runs; yields it.

    `upstream`: the base URL of the model's server. `port`: 0 for a free one. `journal`: a file that gets a
    line for each exchange. `allow_writes`: faults may take the place of the results of any tool. `defend`:
    defences between agent and model, in place of the plan's. `silence_s`: how long the server may say
    nothing. `say` gets a line, once each, for what the user should know: a request that did not get its type,
    a server that refuses the key.

    Raises UserError for a plan that is none, a dataset that lacks one of its types, and a port that is taken.

    >>> with proxy_llm("http://127.0.0.1:8000/v1", "plan.yaml") as base_url:  # doctest: +SKIP
    ...     run_agent(base_url.replace("/v1", "/s/refund-17.0/v1"))
    """
    from ..proxy.door import Door
    from ..proxy.plan import planned
    from ..proxy.relay import serving

    found, data = planned(Path(plan), allow_writes=allow_writes, defend=defend)
    door = Door(
        upstream,
        found,
        rows=data.rows,
        journal=None if journal is None else Path(journal),
        fingerprint=data.fingerprint(),
        silence_s=silence_s,
        say=say,
    )
    if found.idle:
        say("the plan names no types, faults or defences: requests pass as they are, without a journal")
    with serving(door, port) as url:
        yield url


@contextmanager
def proxy_mcp(
    url: str,
    plan: str | Path,
    *,
    port: int = 0,
    journal: str | Path | None = None,
    allow_writes: bool = False,
    defend: "Names" = (),
    silence_s: float = 600.0,
) -> Iterator[str]:
    """An MCP address on loopback, while the block runs; yields it.

    `url`: the address of the server (streamable HTTP). The rest as for `proxy_llm`.

    >>> with proxy_mcp("http://127.0.0.1:8000/mcp", "plan.yaml") as address:  # doctest: +SKIP
    ...     run_agent(address.replace("/mcp", "/s/refund-17.0/mcp"))
    """
    from ..proxy.mcp.calls import door_of
    from ..proxy.mcp.http import Http
    from ..proxy.relay import serving

    kept = None if journal is None else Path(journal)
    door = door_of(Path(plan), (url,), allow_writes=allow_writes, defend=defend, journal=kept)
    with serving(Http(url, door, silence_s=silence_s), port) as base:
        yield f"{base.removesuffix('/v1')}/mcp"
    door.journal.close()


def proxy_run(
    dataset: Annotated[str | Path, options.ASKED],
    command: Annotated[str | Sequence[str], options.COMMAND],
    upstream: Annotated[str, options.UPSTREAM],
    *,
    types: Annotated[Sequence[str], options.TYPES] = (),
    out: Annotated[str | Path | None, options.OUT] = None,
    journal: Annotated[str | Path, options.JOURNAL] = "journal.jsonl",
    model: Annotated[str | None, options.MODEL] = None,
    allow_writes: Annotated[bool, options.ALLOW_WRITES] = False,
    concurrency: Annotated[int, options.CONCURRENCY] = 4,
    timeout_s: Annotated[float, options.TIMEOUT] = 300.0,
    progress: Tell = silent,
    say: Tell = silent,
) -> "Ran":
    """Run a program that owns its loop once for each row behind the LLM door, and score what it did.

    The clean request is on its standard input, OPENAI_BASE_URL and ANTHROPIC_BASE_URL in its environment hold
    the session. Run the same command again to go on where it was stopped: sessions that the journal has are
    not run again.

    Example: rbtc proxy run bench --command "python agent.py --loop" --upstream http://127.0.0.1:8000/v1

    Raises UserError for a type that the dataset lacks and a program that is not there.

    >>> proxy_run("bench", "python agent.py --loop", "http://127.0.0.1:8000/v1")  # doctest: +SKIP
    """
    import asyncio

    from ..eval import inputs, record
    from ..eval.callables.command import words_of
    from ..proxy import scored
    from ..proxy.door import Door
    from ..proxy.journal import read
    from ..proxy.plan import Plan, with_tools
    from ..proxy.relay import serving
    from ..proxy.scenes import known_types

    place = None if out is None else Path(out)
    if place is not None:
        record.check_place(place)  # before hours of work, not after
    words, data, kept = words_of(command), inputs.load_samples(str(dataset)), Path(journal)
    plan = with_tools(Plan(types=known_types(data.rows, types), allow_writes=allow_writes), data)
    there = {one.session for one in read(kept)} if kept.is_file() else set()
    door = Door(upstream, plan, rows=data.rows, journal=kept, fingerprint=data.fingerprint(), say=say)
    with serving(door) as url:
        before, failures = asyncio.run(
            scored.drive(
                words,
                data.rows,
                plan.types,
                url,
                there=there,
                at_once=concurrency,
                timeout_s=timeout_s,
                progress=progress,
            )
        )
    run = scored.score(kept, dataset=data.name, model=model or " ".join(words), out=place)
    return scored.Ran(before, failures, run)


def explain_plan(
    plan: Annotated[str | Path, Option(help="The plan of a door, a YAML file.", typed=Path)],
    *,
    session: Annotated[str, Option(help="The session, <case>.<repeat>.")] = "case.0",
    calls: Annotated[int, Option(help="How many calls to look at.", at_least=1)] = 20,
) -> "Explained":
    """Print what each call of a session will meet behind a door with this plan. Nobody is asked.

    Example: rbtc proxy explain plan.yaml --session refund-17.0

    Raises UserError for a plan or a session that is none.

    >>> explain_plan("plan.yaml").meetings  # doctest: +SKIP
    """
    from ..proxy.explain import explained
    from ..proxy.plan import Refused, parse, planned

    found, _ = planned(Path(plan))
    try:
        return explained(found, parse(session), calls)
    except Refused as error:
        raise UserError(f"--session: {error}") from None


def ground(logs: Sequence[str | Path], out: str | Path | None = None, *, progress: Tell = silent) -> "Ground":
    """`rbtc cases import --faults`: faults that tools had in logs, with intervals and their words.

    `out` gets a plan of them. Nobody is contacted. E-mail addresses, phones, keys, card and account numbers
    are replaced; names are not.

    Raises UserError for a log that cannot be read or has no answered call, and where `out` is there already.

    >>> ground(["agent.jsonl"]).faults  # doctest: +SKIP
    """
    from ..io.files import atomic_file
    from ..proxy.ground import ground as fitted

    found = fitted(tuple(map(Path, logs)), progress)
    if out is not None:
        with atomic_file(Path(out)) as beside:
            beside.write_text(found.plan(), encoding="utf-8")
    return found
