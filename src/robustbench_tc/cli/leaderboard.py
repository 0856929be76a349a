"""`rbtc leaderboard`: a results repository, its checker, its pages, and the form of a Space."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..api.options import _price
from ..errors import UserError
from . import _console
from ._replacing import DiscardChanges, Force
from ._words import one_of
from ._workers import NumProc

if TYPE_CHECKING:
    from ..eval.leaderboard.submit import Submitted

app = typer.Typer(
    help="The leaderboard: a results repository on the Hub (or a folder), its checker, its pages.",
    no_args_is_help=True,
)

Place = Annotated[
    str, typer.Argument(metavar="ORG/NAME|DIR", help="Results repository on the Hub, or a folder.")
]
SameRows = Annotated[
    str | None, typer.Option("--dataset", help="The repository's dataset, where it lies elsewhere.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command()
def init(
    place: Place,
    dataset: Annotated[
        str, typer.Option("--dataset", help="What runs are measured on: org/name@version, or a folder.")
    ],
    live: Annotated[
        str | None, typer.Option(help="The same for live runs; without it none are taken.")
    ] = None,
    own: Annotated[
        list[str] | None, typer.Option(help="A dataset of own tools that runs are taken of; repeatable.")
    ] = None,
) -> None:
    """Begin a results repository: status.yaml, and a card with how to submit, tokens and the webhook.

    Example: rbtc leaderboard init acme/results --dataset acme/robustbench-tc@v1.0.0
    """
    from ..eval.leaderboard.submit import init as begin

    files = begin(place, dataset, live=live, own=own or ())
    _console.out.print(f"{place} has {', '.join(files)}; its README.md says what is left to do")


@app.command()
def submit(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="Run folder; or predictions in a .jsonl file, ours or the paper's."
        ),
    ],
    to: Annotated[
        str, typer.Option("--to", metavar="ORG/NAME|DIR", help="Results repository on the Hub, or a folder.")
    ],
    org: Annotated[
        str | None, typer.Option(help="Of the model: your account, the default, or an organisation of yours.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Its id on the Hub, or a free name; default: the run's.")
    ] = None,
    mode: Annotated[str | None, typer.Option(help="Of a .jsonl file: prompt, the default, or fc.")] = None,
    weights: Annotated[
        Literal["open", "closed"] | None,
        one_of("kind of weights", "open", "closed", help="open: anybody can download them; or closed."),
    ] = None,
    params: Annotated[float | None, typer.Option(min=0, help="Parameters in billions.")] = None,
    licence: Annotated[str | None, typer.Option(help="SPDX id, such as apache-2.0.")] = None,
    card: Annotated[str | None, typer.Option(help="The address of the model's card.")] = None,
    price: Annotated[
        str | None, typer.Option(metavar="IN,OUT", help="USD per million prompt and completion tokens.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="What stood around the model.")] = None,
    defences: Annotated[str | None, typer.Option(help="Those of that agent.")] = None,
    contact: Annotated[str | None, typer.Option(help="Whom to ask. Public.")] = None,
    note: Annotated[str | None, typer.Option(help="A line for the model's page.")] = None,
    by: Annotated[
        str | None, typer.Option("--by", help="Who submits, where a form does it for somebody.")
    ] = None,
    dataset: SameRows = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing; print every file that would become public.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Submit a run, also a live one: check it here as the board does, then open one pull request.

    The same command finds a pull request that is open already. Into a folder the run is copied.

    Example: rbtc leaderboard submit runs/qwen3-8b-fc --to acme/results --licence apache-2.0 --weights open
    """
    from ..eval.leaderboard.entries import read_status
    from ..eval.leaderboard.entry import Submission
    from ..eval.leaderboard.place import open_place
    from ..eval.leaderboard.submit import submit as send
    from .runs import import_

    price_in, price_out = _price([price]) if price else (None, None)
    submission = Submission(
        model=model or _model_of(run),
        weights=weights,
        params_b=params,
        licence=licence,
        card=card,
        price_in=price_in,
        price_out=price_out,
        agent=agent,
        defences=defences,
        contact=contact,
        note=note,
    )
    with _console.keeping("the same command finds what it has sent"), TemporaryDirectory() as work:
        if run.is_file():
            asked, revision = dataset or read_status(open_place(to)).dataset, ""
            if not Path(asked).is_dir():
                asked, _, revision = asked.partition("@")
            run, lines = Path(work) / "run", run
            import_(lines, asked, submission.model, mode or "prompt", revision or None, run)
        done = send(run, to, submission, org=org, by=by, dataset=dataset, dry_run=dry_run, said=_console.note)
    _print_submitted(done, dry_run=dry_run, as_json=as_json)


def _print_submitted(done: "Submitted", *, dry_run: bool, as_json: bool) -> None:
    from ..eval.leaderboard import checker

    table = checker.table(done.entry)
    if as_json:
        sizes = {path: len(data) for path, data in done.files.items()}
        known = {name: getattr(done, name) for name in ("entry", "number", "url", "again")}
        _console.json({**known, "files": sizes, "table": table})
        return
    for path, data in done.files.items() if dry_run else ():
        _console.out.print(f"{path}, {len(data):,} bytes")
        if not path.endswith(".parquet"):
            _console.out.print(_console.styled(data.decode()))
    _console.out.print(_console.styled(table))
    there = f"{'there already' if done.again else 'added'}: {done.url or done.entry.run}"
    _console.out.print("nothing was sent" if dry_run else there)


def _model_of(run: Path) -> str:
    """The model that the record of a run names."""
    import msgspec

    record = next((run / name for name in ("run.json", "live_run.json") if (run / name).is_file()), None)
    if record is None:
        raise UserError(f"{run} is no run folder of `rbtc eval` or `rbtc live run`: name one, or say --model")
    try:
        return str(msgspec.json.decode(record.read_bytes())["settings"]["model"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise UserError(f"{record} names no model: say --model") from None


@app.command()
def check(
    place: Place,
    pr: Annotated[int | None, typer.Option("--pr", min=1, help="Only this pull request.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Make every entry again, also those of this version.")
    ] = False,
    watch: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=1, help="Go on, and look again so often.")
    ] = None,
    dataset: SameRows = None,
    num_proc: NumProc = 1,
    as_json: AsJson = False,
) -> None:
    """Score what has no entry of this version: open pull requests get a comment, merged runs their entry.

    The exit code is 1 if there is something that a maintainer has to look at.

    Example: rbtc leaderboard check acme/results --watch 300
    """
    from ..eval.leaderboard import check as checking, checker

    if watch is not None and (pr is not None or everything or dataset is not None or as_json):
        raise UserError("--watch looks at all that is new, and goes on: leave the other options out")
    with _console.keeping("entries so far are kept; the same command goes on"):
        if watch is not None:
            checking.watch(place, watch, jobs=num_proc, said=_console.note)
        report = checking.check(
            place, pr=pr, everything=everything, dataset=dataset, jobs=num_proc, said=_console.note
        )
    if as_json:
        _console.json(report)
    else:
        for number, found in report.pulls.items():
            told = f"refused: {found}" if isinstance(found, str) else checker.table(found)
            _console.out.print(_console.styled(f"pull request {number}: {told}"))
        for entry in report.new:
            _console.out.print(f"new: {entry.run}")
        for run, why in report.refused.items():
            _console.out.print(f"refused: {run}: {why}")
        for problem in report.problems:
            _console.out.print(f"to look at: {problem}")
        _console.out.print(f"entries: {report.entries}")
    if report.problems:
        raise typer.Exit(1)


@app.command()
def build(
    place: Place,
    out: Annotated[Path, typer.Option(help="Folder for the pages.")] = Path("site"),
    form: Annotated[
        str | None, typer.Option(help="Where a form to submit with is served, from the front page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the pages: static files for any host, readable without script.

    Example: rbtc leaderboard build acme/results --out site
    """
    from ..eval.leaderboard import site
    from ..eval.leaderboard.entries import read_entries
    from ..eval.leaderboard.place import Hub, open_place

    there = open_place(place)
    with _console.status("building", f"the files in {out} are those of before; run the same command again"):
        status, entries, dropped = read_entries(there)
        repository = place if isinstance(there, Hub) else None
        made = site.build(entries, status, out, repository=repository, dropped=dropped, form=form)
    if as_json:
        _console.json(made._asdict() | {"folder": str(out)})
    else:
        left = f", {made.left_out} left out (index.html says why)" if made.left_out else ""
        _console.out.print(f"{made.runs} runs{left}: {out / 'index.html'}")


@app.command()
def space(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New folder for the Space's files.")],
    results: Annotated[str, typer.Option("--results", help="Results repository on the Hub: org/name.")],
    title: Annotated[str, typer.Option(help="The Space's title.")] = "RobustBench-TC Leaderboard",
    force: Force = False,
    discard_changes: DiscardChanges = False,
) -> None:
    """Write a folder that is a Hugging Face Space once it is pushed: the pages, a form, the Hub's webhook.

    Example: rbtc leaderboard space board --results acme/results
    """
    from ..eval.leaderboard.space import space as folder_of_space

    files = folder_of_space(
        folder, results=results, title=title, force=force, discard_changes=discard_changes
    )
    _console.out.print(
        f"{files} files in {folder}: push them to a Space, and give it the secrets HF_TOKEN, which may write "
        f"to {results}, and WEBHOOK_SECRET, the one of the webhook"
    )


@app.command()
def serve(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results folder; `init` begins one.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 7860,
) -> None:
    """Serve the Space's pages and form on this machine: what is submitted goes straight into the folder.

    Example: rbtc leaderboard serve results
    """
    from ..eval.leaderboard.space import serve as run

    with _console.keeping(f"the server has stopped; runs and entries are kept in {folder}"):
        run(folder, host=host, port=port)


@app.command()
def verify(
    run: Annotated[str, typer.Argument(metavar="ID", help="The run to vouch for: org/model/run id.")],
    place: Annotated[
        str, typer.Option("--in", metavar="ORG/NAME|DIR", help="Results repository on the Hub, or a folder.")
    ],
    repeated: Annotated[Path | None, typer.Option("--run", help="Folder of the repeated run.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Ask this endpoint 300 of its rows in new words instead.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Its name there, if another.")] = None,
    work: Annotated[
        Path | None,
        typer.Option(help="Folder of the answers; default verify-RUNID. The same command goes on."),
    ] = None,
    dataset: SameRows = None,
    by: Annotated[str, typer.Option("--by", help="Who repeated it. Public.")] = "maintainer",
    as_json: AsJson = False,
) -> None:
    """Vouch for a run: you have repeated it, or its endpoint gives the same answers. Writes status.yaml.

    Example: rbtc leaderboard verify acme/alpha/20261120-96a2067ff4c1 --in acme/results --run runs/repeated
    Example: rbtc leaderboard verify acme/alpha/20261120-96a2067ff4c1 --in acme/results --base-url http://a.b/v1
    """

    from ..api.rebuilding import fresh_rows
    from ..eval.leaderboard.verify import verify as vouch

    if (repeated is None) == (base_url is None):
        raise UserError("name the repeated run with --run, or an endpoint with --base-url")
    with _console.keeping("answers so far are kept; the same command goes on"):
        vouched = vouch(
            place,
            run,
            repeated=repeated,
            base_url=base_url,
            model=model,
            work=work,
            rebuild=fresh_rows,
            by=by,
            dataset=dataset,
            said=_console.note,
        )
    if as_json:
        _console.json(vouched)
    else:
        _console.out.print(f"{run} is {vouched.tier}: {vouched.reason}")
