"""`rbtc audit`: may this build be published? The gate, and looks at evidence, predictions, credentials."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ..errors import UserError, need_extra
from . import _console

if TYPE_CHECKING:
    from rich.table import Table

    from ..audits.judge import Judge, Recorded
    from ..audits.report import AuditReport
    from ..schema import Message


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


@app.command("build")
def build(
    folder: Annotated[
        Path, typer.Argument(metavar="BUILD", help="What rbtc build or rbtc build toolrl-dr wrote.")
    ],
    n: Annotated[int, typer.Option("--n", min=1, help="Text pairs per type that a live judge scores.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Score every pair.")] = False,
    judge: Annotated[
        str, typer.Option(help="recorded (ships with the package), recorded:PATH, or MODEL[@BASE_URL].")
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
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Where audit_report.json and .html go (default: BUILD).")
    ] = None,
    store: Annotated[Path, typer.Option(help="Keeps a live judge's answers.")] = Path(
        ".rbtc/judgments.jsonl"
    ),
    max_requests: Annotated[int | None, typer.Option(min=1, help="Stop a live judge after so many.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Audit a build: exit code 0 if it may be released, 1 if not.

    Example: rbtc audit robustbench-tc --judge gpt-5.4
    """
    _need_the_extra()
    from ..audits import gate
    from ..builders.perturb import REGISTRY
    from ..eval.validate import self_check
    from ..train_recipes.toolrl_dr.reward import earns_maximum

    if out is None and (folder / "manifest.json").exists():
        raise UserError(f"{folder} is a release and is never written to: name a folder with --out")
    with _console.status("auditing") as progress:
        report = gate.audit(
            folder,
            unit_checks=lambda clean, row: REGISTRY[row.type_code].check(clean, row),
            self_check=self_check,
            judge=make_judge(judge, store, max_requests),
            second_judge=None if second_judge is None else make_judge(second_judge, store, max_requests),
            benchmark_queries=_benchmark_queries(benchmark, sources),
            pool_queries=_pool_queries(sources),
            earns_maximum=earns_maximum,
            training=training,
            seed=seed,
            n=None if everything else n,
            progress=progress,
        )
    _finish(report, out or folder, as_json)


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
    _need_the_extra()
    from ..audits import gate

    with _console.status("auditing"):
        report = gate.audit_predictions(file, dataset)
    _finish(report, out, as_json)


@app.command("evidence")
def evidence(
    refetch: Annotated[bool, typer.Option("--refetch", help="Look at every address again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """The production evidence behind the types; with --refetch, whether it still stands where it stood.

    Exit code 1 if a case is gone or has another title. Example: rbtc audit evidence --refetch
    """
    import msgspec

    from .. import taxonomy
    from ..audits import evidence as audits

    _, found = audits.audit(taxonomy.evidence(), taxonomy.codes())
    if not refetch:
        if as_json:
            typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
        else:
            _console.out.print(_evidence_table(found))
        return
    with _console.status("looking again") as progress:
        looked = audits.refetch(taxonomy.evidence(), fetch_page, progress)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(looked), indent=1).decode())
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


@app.command("allow-credentials")
def allow_credentials(
    folder: Annotated[Path, typer.Argument(metavar="BUILD", help="A build whose clean rows were reviewed.")],
    out: Annotated[Path, typer.Option(help="The allow-list to write.")],
    show: Annotated[bool, typer.Option("--show", help="Print every find, to review it.")] = False,
) -> None:
    """Write the allow-list of credential-like strings in clean rows: hashes only.

    Example: rbtc audit allow-credentials robustbench-tc --show --out audits/credential_allowlist.json
    """
    from ..audits import credentials
    from ..files import atomic_file
    from ..parquet import read_rows, shards
    from ..schema import Sample, record

    samples = [record(row, Sample) for row in read_rows(shards(folder / "clean"))]
    if show:
        for sample in samples:
            for place, kind, text in credentials.shown(sample):
                _console.out.print(
                    f"{sample.clean_id}  {place}  {kind}  {text}", markup=False, soft_wrap=True
                )
    with atomic_file(out) as beside:
        beside.write_bytes(credentials.make_allowlist(samples))
    _console.out.print(f"{len(samples)} clean rows, written to {out}", markup=False)


def make_judge(spec: str, store: Path, max_requests: int | None = None) -> "Judge":
    """The judge that `--judge` names. Raises UserError."""
    name, _, path = spec.partition(":")
    if name == "recorded":
        return recorded_judge(Path(path) if path else None)
    from ..audits.judge import EndpointJudge
    from ..llm import parse_endpoint

    endpoint = parse_endpoint(spec)
    endpoint.resolved()  # a missing key is said before any work
    return EndpointJudge(endpoint, store=store, max_requests=max_requests)


def recorded_judge(path: Path | None = None) -> "Recorded":
    """The judgments that ship with the package, or those of a folder or file, found by the builder's keys."""
    from ..audits.judge import Judgment, Recorded
    from ..audits.rows import Pair
    from ..builders.generators.recorded import judgment_address, load_judgments
    from ..builders.perturb.base import TextRequest

    known = load_judgments(path)

    def find(pair: Pair) -> Judgment | None:
        request = TextRequest(kind=pair.kind, input=pair.before, tool=pair.tool, parameter=pair.parameter)
        found = known.get(judgment_address(request, pair.after))
        return None if found is None else Judgment(found.score, found.reason, found.judge)

    return Recorded(find)


def fetch_page(url: str) -> tuple[int, str]:
    """Status and text of a page. Raises OSError where there is no connection."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(url, headers={"User-Agent": "robustbench-tc"}), timeout=20) as reply:
            return reply.status, reply.read(2_000_000).decode("utf-8", "replace")
    except HTTPError as error:
        return error.code, ""


Conversations = Callable[[], Iterable[tuple[str, "Sequence[Message]"]]]


def _benchmark_queries(folder: Path | None, sources: Path | None) -> Conversations | None:
    """The clean rows of a benchmark folder, else the 199 of the sources; None where there are neither."""
    from ..parquet import read_rows, shards
    from ..schema import Sample, record

    if folder is not None:
        files = shards(folder / "clean")

        def of_folder() -> Iterator[tuple[str, Sequence[Message]]]:
            for row in read_rows(files):
                sample = record(row, Sample)
                yield sample.id, sample.messages

        return of_folder
    return _of_sources(sources, "paper")


def _pool_queries(sources: Path | None) -> Conversations | None:
    return _of_sources(sources, "full")


def _of_sources(sources: Path | None, profile: str) -> Conversations | None:
    from ..builders.sources import read
    from ..builders.sources.fetch import resolve_root

    try:
        root = resolve_root(sources)
    except UserError:
        if sources is not None:
            raise
        return None
    return lambda: ((sample.id, sample.messages) for sample in read(root, profile).samples)  # type: ignore[arg-type]


def _finish(report: "AuditReport", out: Path | None, as_json: bool) -> None:
    """Writes and prints the report, and ends with the gate's exit code."""
    from ..audits import gate

    paths = () if out is None else gate.write(report, out)
    if as_json:
        typer.echo(report.json().decode(), nl=False)
    else:
        _print(report)
        for path in paths:
            _console.out.print(f"written to {path}", markup=False, soft_wrap=True)
    if not report.passed:
        raise typer.Exit(1)


def _print(report: "AuditReport") -> None:
    if report.paraphrase:
        _console.out.print(_paraphrase_table(report))
    for check in report.checks:
        if check.status == "passed":
            continue
        said = check.reason or f"{check.failed} of {check.applied} failed"
        left_out = "" if check.may_be_left_out is None else f" (may be left out: {check.may_be_left_out})"
        _console.out.print(f"{check.status.replace('_', ' ')}: {check.id}: {said}{left_out}", markup=False)
        for failure in check.failures[:3] if check.blocks else ():
            _console.out.print(f"    {failure.where}: {failure.what}", markup=False, soft_wrap=True)
    counts = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in report.counts().items())
    verdict = "may be released" if report.passed else "may NOT be released"
    _console.out.print(f"{report.name} {verdict}: {len(report.checks)} checks, {counts}", markup=False)


def _paraphrase_table(report: "AuditReport") -> "Table":
    judges = ", ".join(sorted({score.judge for score in report.paraphrase}))
    table = _table(f"rewritten texts, scored 1 to 5 by {judges}; the paper's are its own texts")
    table.add_column("type", no_wrap=True)
    for name in ("pairs", "mean", "median", "std", "<= 2", "upper"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("paper: mean, median, std, <= 2", no_wrap=True)
    for score in report.paraphrase:
        paper = score.paper or {}
        figures = [_number(paper.get(name)) for name in ("mean", "median", "std")]
        table.add_row(
            score.type_code,
            f"all {score.n}" if score.scope == "all" else str(score.n),
            *(_number(value) for value in (score.mean, score.median, score.std)),
            *(_percent(value) for value in (score.share_low, score.upper)),
            ", ".join([*figures, _percent(paper.get("frac_le_2"))]) if paper else "",
        )
    return table


def _table(title: str) -> "Table":
    from rich.box import SIMPLE
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))


def _evidence_table(found: Sequence[Any]) -> "Table":
    table = _table("cases per type; constructed: none supports it that also fits it")
    table.add_column("type", no_wrap=True)
    for name in ("verdicts", "roles", "supporting", ""):
        table.add_column(name)
    for one in found:
        counted = [", ".join(f"{k} {v}" for k, v in group.items()) for group in (one.verdicts, one.roles)]
        table.add_row(one.type_code, *counted, str(one.supporting), "constructed" if one.constructed else "")
    return table


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{100 * value:.1f} %"


def _need_the_extra() -> None:
    from importlib.util import find_spec

    if find_spec("great_expectations") is None:
        raise need_extra("great_expectations", "audit")
