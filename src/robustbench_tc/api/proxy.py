"""The doors: relays between an agent and its model or its tools that carry out a plan of faults."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from ..errors import UserError
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..eval.inputs import Dataset, Names
    from ..proxy.explain import Explained
    from ..proxy.ground import Ground
    from ..proxy.mcp.calls import Door
    from ..proxy.plan import Plan
    from ..proxy.scored import Ran


def proxy(
    *,
    plan: Annotated[Path, Option(help="The plan of faults, a YAML file (docs/proxy-llm.md).")],
    upstream: Annotated[str | None, options.UPSTREAM] = None,
    mcp_servers: Annotated[
        Path | None, Option(help="A client's `mcpServers` file (JSON); each server in it gets a door.")
    ] = None,
    write: Annotated[
        Path | None, Option(help="Write that file with the doors in place of the servers, for the client.")
    ] = None,
    mcp_url: Annotated[str | None, options.MCP_URL] = None,
    listen: Annotated[
        str, Option(help="Local address to listen on; one that other machines reach needs --token.")
    ] = "127.0.0.1",
    port: Annotated[int, options.PORT] = 0,
    token: Annotated[
        str | None, Option(help="Token that every request must have: …/t/TOKEN/… or the header X-RBTC-Token.")
    ] = None,
    session: Annotated[str | None, options.SESSION] = None,
    journal: Annotated[Path, options.JOURNAL] = Path("journal.jsonl"),
    allow_writes: Annotated[bool, options.ALLOW_WRITES] = False,
    defend: Annotated["Names", options.DEFEND] = (),
    timeout: Annotated[float, options.TIMEOUT] = 600.0,
    server: Sequence[str] = (),
    say: Tell = silent,
) -> None:
    """Inject a plan of faults between an unmodified agent and its model and tools.

    On a local port, --upstream relays requests to a model, --mcp-servers those to all servers in a client's
    file, --mcp-url those to one; Ctrl-C ends it. With an MCP server's command after `--` it is a server on
    standard input and output: put it in front of the command in the client's configuration. It contacts
    nobody else and forwards the agent's own key.

    Example: rbtc proxy --plan plan.yaml --upstream URL --mcp-servers servers.json --write wrapped.json
    Example: rbtc proxy --plan plan.yaml --upstream http://127.0.0.1:8000/v1
    Example: rbtc proxy --plan plan.yaml -- python server.py

    Raises UserError for an invalid plan, and a port that is in use.
    """
    import shutil
    import threading

    from ..proxy.plan import Refused, parse

    try:
        named = None if session is None else parse(session)
    except Refused as error:
        raise UserError(f"--session: {error}") from None
    if bool(upstream or mcp_servers) + bool(mcp_url) + bool(server) != 1:
        raise UserError(
            "name one server: a model's with --upstream, or an MCP server's with --mcp-url or by its "
            "command after `--`; or all of an agent's with --upstream and --mcp-servers"
        )
    if server and shutil.which(server[0]) is None:
        raise UserError(f"there is no program {server[0]!r} here or on PATH")
    if server:
        from ..proxy.journal import door_id
        from ..proxy.mcp.stdio import relayed

        _, _, door = _opened(plan, journal, tools=True, allow_writes=allow_writes, defend=defend, say=say)
        if code := relayed(door._replace(by=door_id(str(Path.cwd()), *server)), named, server):
            raise UserError(f"the MCP server ended with status {code}")
        return
    with proxied(
        plan,
        upstream=upstream,
        mcp_servers=mcp_servers,
        write=write,
        mcp_url=mcp_url,
        listen=listen,
        port=port,
        token=token,
        session=session,
        journal=journal,
        allow_writes=allow_writes,
        defend=defend,
        silence_s=timeout,
        say=say,
    ):
        threading.Event().wait()  # until Ctrl-C


@contextmanager
def proxied(
    plan: str | Path,
    *,
    upstream: str | None = None,
    mcp_servers: str | Path | None = None,
    write: str | Path | None = None,
    mcp_url: str | None = None,
    listen: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    session: str | None = None,
    journal: str | Path | None = None,
    allow_writes: bool = False,
    defend: "Names" = (),
    silence_s: float = 600.0,
    say: Tell = silent,
) -> Iterator[str]:
    """The doors of `rbtc proxy` while the block runs; yields the base URL for the agent's model, or of MCP.

    `upstream`: the base URL of the model's server. `mcp_servers`: a client's file, which is written with the
    doors to `write`; or `mcp_url`: the address of one server. `port`: 0 for a free one. `journal`: a file
    that gets a line for each exchange. `allow_writes`: faults may take the place of the results of any tool.
    `defend`: defences between agent and model, in place of the plan's. `silence_s`: how long a server may say
    nothing. `say` gets a line for what the user should know: addresses, sessions that begin, and once each a
    request that did not get its type, a server that refuses the key.

    Raises UserError for a plan that is none, a dataset that lacks one of its types, and a port that is taken.

    >>> with proxied("plan.yaml", upstream="http://127.0.0.1:8000/v1") as base_url:  # doctest: +SKIP
    ...     run_agent(base_url.replace("/v1", "/s/refund-17.0/v1"))
    """
    from ..proxy.door import Door
    from ..proxy.journal import door_id
    from ..proxy.mcp.http import Http
    from ..proxy.mcp.servers import endpoints, read_servers, refuse_foreign, write_wrapped
    from ..proxy.relay import Endpoint, address_of, serving

    for address, option in ((upstream, "--upstream"), (mcp_url, "--mcp-url")):
        if address is not None:
            address_of(address, option)  # before there is a journal
    if bool(mcp_servers) != bool(write):
        raise UserError(
            "--mcp-servers and --write go together: the client's file, and the file to give the client "
            "instead"
        )
    servers = read_servers(Path(mcp_servers)) if mcp_servers else {}
    if write is not None:
        refuse_foreign(Path(write))
    kept = None if journal is None else Path(journal)
    asked, data, called = _opened(
        Path(plan),
        kept,
        model=upstream is not None,
        tools=upstream is None or mcp_servers is not None,
        allow_writes=allow_writes,
        defend=defend,
        say=say,
    )
    found: list[Endpoint] = []
    if upstream is not None:
        door = Door(
            upstream,
            asked,
            rows=data.rows,
            journal=kept,
            sessions=called.sessions,
            beside_tools=bool(servers),
            silence_s=silence_s,
            say=say,
        )
        found.append(door)
    if mcp_url is not None:
        own = called._replace(by=door_id(mcp_url.partition("?")[0]))
        found.append(Http(mcp_url, own, silence_s=silence_s))
    found += endpoints(servers, called, silence_s)
    if called.idle:
        say("the plan names no types, faults or defences: requests pass as they are, without a journal")
    with serving(*found, port=port, listen=listen, token=token) as address:
        base = address.removesuffix(f"/{found[0].place}")
        outside = f"{base}/t/TOKEN" if token else base
        if mcp_servers is not None and write is not None:
            named = f"{base}/s/{quote(session, safe='')}" if session else base
            write_wrapped(Path(mcp_servers), Path(write), named, token)
            say(f"servers of the client: {write}")
        for place in () if mcp_servers and not upstream else (found[0].place,):
            say(f"address of a session: {outside}/s/{session or 'CASE.REPEAT'}/{place}")
            say(f"without a session:    {outside}/{place}")
        say(f"journal: {journal}; only {upstream or mcp_url} is contacted")
        yield address
    called.sessions.journal.close()
    if (unlisted := called.scenes.unlisted) and (wrong := called.scenes.stray) is not None:
        say(f"{wrong}; no client has asked for the tools of {', '.join(sorted(unlisted))}")


def _opened(
    path: Path,
    journal: Path | None,
    *,
    model: bool = False,
    tools: bool = False,
    allow_writes: bool,
    defend: "Names",
    say: Tell,
) -> tuple["Plan", "Dataset", "Door"]:
    """The plan of a file as a door before the model carries it out, its dataset, and a door before tools.

    Of an agent that has both, the model's door sees requests and replies, the others what a call does: faults
    of calls are theirs, all else is its own. Raises UserError.
    """
    from msgspec.structs import replace

    from ..proxy.journal import Journal
    from ..proxy.mcp.calls import Door
    from ..proxy.plan import check, planned
    from ..proxy.scenes import Scenes
    from ..proxy.sessions import Sessions

    found, data = planned(path, allow_writes=allow_writes, defend=defend)
    asked = called = found
    if model and tools:
        asked = replace(found, faults=())
        called = replace(found, types=(), types_after=0, defend=(), bench=None)
    if model:
        check(asked, tools=False)
    if tools:
        check(called, tools=True)
    scenes = Scenes(found, data.rows)
    sessions = Sessions(Journal(journal, found, fingerprint=data.fingerprint()), say)
    return asked, data, Door("", called, found.idle, scenes, sessions, data.results)


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
    """Run a program with its own agent loop once per row behind the LLM door, and score it.

    The program reads the clean request from standard input; OPENAI_BASE_URL and ANTHROPIC_BASE_URL in its
    environment name the session. Run the same command again to resume: sessions in the journal are not run
    again.

    Example: rbtc proxy run bench --command "python agent.py --loop" --upstream http://127.0.0.1:8000/v1

    Raises UserError for a type that the dataset lacks and a program that does not exist.

    >>> proxy_run("bench", "python agent.py --loop", "http://127.0.0.1:8000/v1")  # doctest: +SKIP
    """
    from ..compute import loop
    from ..eval import inputs, record
    from ..eval.callables.command import words_of
    from ..proxy import scored
    from ..proxy.door import Door
    from ..proxy.journal import read_exchanges
    from ..proxy.plan import Plan, with_tools
    from ..proxy.relay import serving
    from ..proxy.scenes import known_types

    place = None if out is None else Path(out)
    if place is not None:
        record.check_place(place)  # before hours of work, not after
    words, data, kept = words_of(command), inputs.load_samples(str(dataset)), Path(journal)
    plan = with_tools(Plan(types=known_types(data.rows, types), allow_writes=allow_writes), data)
    there = {one.session for one in read_exchanges(kept)} if kept.is_file() else set()
    door = Door(upstream, plan, rows=data.rows, journal=kept, fingerprint=data.fingerprint(), say=say)
    with serving(door) as url:
        before, failures = loop.run(
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
    session: Annotated[str, options.SESSION] = "client.0",
    calls: Annotated[int, Option(help="Number of calls to print.", at_least=1)] = 20,
) -> "Explained":
    """Print the fault that each call of a session will meet under this plan; nothing is sent.

    Example: rbtc proxy explain plan.yaml --session refund-17.0

    Raises UserError for an invalid plan or session.

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
