"""`rbtc audit`: may this build be published? The gate, and looks at evidence, predictions, credentials."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from typer.core import TyperGroup

from ..errors import UserError
from ..io import audit_files, numbers, store as store_files
from . import _console
from ._worlds import World, WorldPython
from .golds import golds

if TYPE_CHECKING:
    from rich.table import Table

    from ..audits.report import AuditReport


Full = Annotated[bool, typer.Option("--full", help="Print waived checks and the judges' scores too.")]


class _BuildByDefault(TyperGroup):
    """`rbtc audit DIR` is `rbtc audit build DIR`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["build", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_BuildByDefault,
    no_args_is_help=True,
    help="May this build be published? rbtc audit BUILD says so, check by check.",
)

app.command("golds")(golds)


@app.command("build")
def build(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="BUILD", help="What rbtc build, rbtc build toolrl-dr or rbtc build live wrote."
        ),
    ],
    n: Annotated[
        int, typer.Option("--n", min=1, help="Text pairs per type that are drawn for the second judge.")
    ] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Draw all of them.")] = False,
    judge: Annotated[
        str,
        typer.Option(
            help="Judges texts that the package has no judgment of: recorded (nobody), recorded:PATH, or "
            "MODEL[@BASE_URL]."
        ),
    ] = "recorded",
    second_judge: Annotated[
        str | None, typer.Option(help="Another judge of the same draw; agreement is reported.")
    ] = None,
    training: Annotated[
        Path | None, typer.Option(help="A training build that must not ask what this benchmark asks.")
    ] = None,
    benchmark: Annotated[
        Path | None, typer.Option(help="For a training build: the benchmark that it must not hold.")
    ] = None,
    sources: Annotated[
        Path | None, typer.Option(help="Upstream files (default: RBTC_SOURCES, else the fetched ones).")
    ] = None,
    rlla: Annotated[
        Path | None, typer.Option(help="For a training build: ToolRL's files, if not among the sources.")
    ] = None,
    world: World = None,
    world_python: WorldPython = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Where audit_report.json and .html go (default: BUILD).")
    ] = None,
    store: Annotated[Path, typer.Option(help="Keeps a live judge's answers.")] = Path(
        ".rbtc/judgments.jsonl"
    ),
    max_requests: Annotated[int | None, typer.Option(min=1, help="Stop a live judge after so many.")] = None,
    full: Full = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Audit a build: exit code 0 if it may be released, 1 if not.

    Example: rbtc audit robustbench-tc --judge gpt-5.4
    """
    from .. import api

    if folder.is_file():
        raise UserError(f"{folder} is not a folder: name the one that `rbtc build` wrote")
    if out is None or (out.exists() and folder.exists() and out.samefile(folder)):
        audit_files.check(folder)
    else:
        audit_files.check_own(out)
    store_files.refuse_foreign(store)
    files: dict[str, bytes] = {}
    kept = _console.written_whole(out or folder, store)
    with _console.status("auditing", kept) as progress:
        report = api.audit(
            folder,
            judge=judge,
            second_judge=second_judge,
            n=None if everything else n,
            training=training,
            benchmark=benchmark,
            sources=sources,
            rlla=rlla,
            worlds=tuple(world or ()),
            world_python=world_python,
            seed=seed,
            store=store,
            max_requests=max_requests,
            progress=progress,
            files=files,
        )
    _finish(report, out or folder, as_json, files, full=full)


@app.command("predictions")
def predictions(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="predictions.parquet or scores.parquet.")],
    dataset: Annotated[Path, typer.Option(help="The build or release that was asked.")],
    out: Annotated[Path | None, typer.Option(help="Where to write the report (default: nowhere).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Hold a predictions file against the dataset that was asked.

    Example: rbtc audit predictions runs/qwen3/predictions.parquet --dataset robustbench-tc
    """
    from .. import api

    if out is not None:
        audit_files.check_own(out)
    with _console.status("auditing"), _console.working("auditing"):
        report = api.audit_predictions(file, dataset)
    _finish(report, out, as_json)


@app.command("evidence")
def evidence(
    refetch: Annotated[bool, typer.Option("--refetch", help="Look at every address again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """The production evidence behind the types; with --refetch, whether it still stands where it stood.

    Exit code 1 if a case is gone or has another title. Example: rbtc audit evidence --refetch
    """
    from .. import taxonomy
    from ..audits import evidence as audits
    from ..builders.configs import evidence

    cases = list(map(msgspec.structs.asdict, evidence()))
    _, found = audits.audit(cases, taxonomy.codes())
    if not refetch:
        if as_json:
            _console.json(found)
        else:
            _console.out.print(_evidence_table(found))
        return
    with _console.status("looking again") as progress:
        looked = audits.refetch(cases, fetch_page, progress)
    if as_json:
        _console.json(looked)
    else:
        for one in looked:
            _console.out.print(
                f"{one.outcome}: {one.url} ({', '.join(one.type_codes)})", markup=False, soft_wrap=True
            )
    if all(one.outcome.startswith(("no connection", "not tried")) for one in looked):
        raise UserError(
            "no address could be reached: the evidence was not looked at again; try with a network"
        )
    if any(one.outcome in ("gone", "other title") for one in looked):
        raise typer.Exit(1)


@app.command("review")
def review(
    folder: Annotated[Path, typer.Argument(metavar="BUILD", help="A build whose own texts are looked at.")],
    out: Annotated[
        Path | None, typer.Option(help="Write their hashes here, for reasons to be added.")
    ] = None,
) -> None:
    """Print what the text rules find in upstream's own texts and nobody reviewed yet. Credentials are shown.

    Example: rbtc audit review robustbench-tc --out unreviewed.json
    """
    from ..api.auditing import need_expectations
    from ..audits.folder import Folder
    from ..audits.hygiene.review import candidates
    from ..audits.hygiene.reviewed import unreviewed_groups
    from ..io.files import atomic_file, check_file

    need_expectations()
    if out is not None:
        check_file(out)
    found = list(candidates(Folder(folder)))
    for one in found:
        _console.out.print(
            f"{one.rule}  {one.source}  {one.row!r}  {one.found!r}  {one.text[:200]!r}",
            markup=False,
            soft_wrap=True,
        )
    said = f"{len(found)} finds to review"
    if out is not None:
        with atomic_file(out) as beside:
            beside.write_bytes(unreviewed_groups(found))
        said += f"; their hashes are in {out}: give each group a reason and add it to the package's list"
    _console.out.print(said, markup=False, soft_wrap=True)


def fetch_page(url: str) -> tuple[int, str]:
    """Status and text of a page. Raises OSError where there is no connection."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(url, headers={"User-Agent": "robustbench-tc"}), timeout=20) as reply:
            return reply.status, reply.read(2_000_000).decode("utf-8", "replace")
    except HTTPError as error:
        return error.code, ""


def _finish(
    report: "AuditReport",
    out: Path | None,
    as_json: bool,
    files: Mapping[str, bytes] | None = None,
    *,
    full: bool = False,
) -> None:
    """Writes and prints the report, and ends with the gate's exit code."""
    from ..audits import gate

    paths = () if out is None else gate.write(report, out, files or {})
    if as_json:
        _console.json(report.json())
    else:
        _print(report, full)
        for path in paths:
            _console.out.print(f"written to {path}")
        if out is not None and files:
            _console.out.print(f"data docs: {out / audit_files.FOLDER / 'data_docs' / 'index.html'}")
    if not report.passed:
        raise typer.Exit(1)


def _print(report: "AuditReport", full: bool) -> None:
    """The verdict, the checks that failed or did not run (those that block first), and the counts; with
    `full` also waived checks and the judges' scores."""
    tell = _console.out.print
    tell(f"{report.name} {'may be released' if report.passed else 'may NOT be released'}")
    statuses = ["failed", "not_run"]
    if full:
        statuses.append("waived")
    listed = [check for check in report.checks if check.status in statuses]
    for check in sorted(listed, key=lambda one: (not one.blocks, statuses.index(one.status))):
        why = check.reason or f"{check.failed} of {check.applied} failed"
        left_out = "" if check.may_be_left_out is None else f" (may be left out: {check.may_be_left_out})"
        tell(f"{check.status.replace('_', ' ')}: {check.id}: {why}{left_out}")
        for failure in check.failures[:3] if check.blocks else ():
            tell(f"    {failure.where}: {failure.what}")
    counts = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in report.counts().items())
    tell(f"{len(report.checks)} checks: {counts}")
    if report.provenance:
        tell(f"provenance: {report.provenance}")
    if full and report.paraphrase:
        tell(_paraphrase_table(report))


def _paraphrase_table(report: "AuditReport") -> "Table":
    judges = ", ".join(sorted({score.judge for score in report.paraphrase}))
    unpinned = sum(score.n - score.pinned for score in report.paraphrase if score.scope == "all")
    judges += f" ({unpinned} judgments are not pinned)" if unpinned else ""
    rows = []
    for score in report.paraphrase:
        paper = score.paper or {}
        figures = [score.mean, score.median, score.std, *map(paper.get, ("mean", "median", "std"))]
        shares = (score.share_low, score.upper, paper.get("frac_le_2"))
        mean, median, std, *papers = (numbers.number(one, 2) for one in figures)
        low, upper, paper_low = map(numbers.percent, shares)
        pairs = {"sample": f"{score.n}", "all": f"all {score.n}"}[score.scope]
        rows.append((score.type_code, pairs, mean, median, std, low, upper, *papers, paper_low))
    columns = (
        "type",
        "pairs",
        "mean",
        "median",
        "std",
        "<= 2",
        "upper",
        "paper: mean",
        "median",
        "std",
        "<= 2",
    )
    title = f"rewritten texts, scored 1 to 5 by {judges}; the paper's are its own texts"
    return _console.table(columns, rows, title)


def _evidence_table(found: Sequence[Any]) -> "Table":
    rows = (
        (
            one.type_code,
            *map(numbers.counts, (one.verdicts, one.roles)),
            str(one.supporting),
            "constructed" if one.constructed else "",
        )
        for one in found
    )
    title = "cases per type; constructed: none supports it that also fits it"
    return _console.table(("type", "verdicts", "roles", "supporting", ""), rows, title, ("verdicts", "roles"))
