"""What `rbtc audit` shows: the gate's verdict, or another look at a build."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from robustbench_tc.audits import audit_files
from robustbench_tc.builders.answerable import KINDS, Gold, golds
from robustbench_tc.builders.rebuild import own_pool
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval.record import RECORD, open_run
from robustbench_tc.io import numbers
from robustbench_tc.io.files import atomic_file, check_file
from robustbench_tc.io.resolve import dataset_folder
from robustbench_tc.option import Tell
from robustbench_tc.schema import Sample, dumps
from robustbench_tc.shown import Part, Table
from robustbench_tc.sources import in_tables
from robustbench_tc.taxonomy import CLEAN

from .evidence import Refetched, fetch_page, refetch
from .folder import Folder
from .hygiene.review import candidates
from .hygiene.reviewed import Candidate, unreviewed_groups
from .report import AuditReport, Check

FAILURES_SHOWN = 3
"""Failures that are printed of a check that blocks; the report has more."""


class Audited(NamedTuple):
    """The gate's verdict, and where it was written."""

    report: AuditReport
    written: tuple[Path, ...] = ()
    full: bool = False
    """Whether waived checks and the long tables are printed too."""

    @property
    def passed(self) -> bool:
        return self.report.passed

    @property
    def checks(self) -> tuple[Check, ...]:
        return self.report.checks

    @property
    def exit_code(self) -> int:
        """0: nothing keeps the data in."""
        return 0 if self.passed else 1

    def json(self) -> bytes:
        """`audit_report.json`."""
        return self.report.json()

    def shown(self) -> Iterator[Part]:
        """The verdict, the checks that failed or did not run (those that block first), and the counts."""
        report = self.report
        if report.kind == "predictions":
            yield f"{report.name} {'fits' if self.passed else 'does NOT fit'} its dataset"
        else:
            yield f"{report.name} {'may' if self.passed else 'may NOT'} be released"
        listed = report.having("failed", "not_run", *(("waived",) if self.full else ()))
        for check in sorted(listed, key=lambda one: not one.blocks):
            why = check.reason or f"{check.failed} of {check.applied} failed"
            left_out = "" if check.may_be_left_out is None else f" (may be left out: {check.may_be_left_out})"
            yield f"{check.status.replace('_', ' ')}: {check.id}: {why}{left_out}"
            for failure in check.failures[:FAILURES_SHOWN] if check.blocks else ():
                yield f"    {failure.where}: {failure.what}"
        counts = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in report.counts().items())
        yield f"{len(report.checks)} checks: {counts}"
        if report.provenance:
            yield f"provenance: {report.provenance}"
        if self.full and report.paraphrase:
            yield _judged(report)
        if self.full and report.evidence:
            yield _evidence(report)
        yield from (f"written to {path}" for path in self.written)
        if self.written and report.files:
            yield f"data docs: {self.written[0].parent / audit_files.FOLDER / 'data_docs' / 'index.html'}"


def answers_of(path: Path, dataset: str | Path | None) -> tuple[Path, Path]:
    """The file of answers (`path`, or that of the run `path`) and the dataset asked. Raises UserError."""
    if path.is_dir():
        run = open_run(path)
        path = run.scores_path if run.scores_path.is_file() else run.answers_path
    if dataset is None:
        if not (path.parent / RECORD).is_file():
            raise UserError(f"{path}: name the run's build or release with --dataset")
        record = open_run(path.parent).record
        dataset = record.dataset
        if record.dataset_revision is not None:
            dataset += f"@{record.dataset_revision}"
    return path, dataset_folder(str(dataset))


def _judged(report: AuditReport) -> Table:
    """The judges' scores of rewritten texts."""
    judges = ", ".join(sorted({score.judge for score in report.paraphrase}))
    unpinned = sum(score.n - score.pinned for score in report.paraphrase if score.scope == "all")
    judges += f" ({unpinned} judgments are not pinned)" if unpinned else ""
    rows = []
    for score in report.paraphrase:
        paper = score.paper or {}
        figures = [score.mean, score.median, score.std, *map(paper.get, ("mean", "median", "std"))]
        mean, median, std, *papers = (numbers.number(one, 2) for one in figures)
        low, upper, paper_low = map(numbers.percent, (score.share_low, score.upper, paper.get("frac_le_2")))
        pairs = str(score.n) if score.scope == "sample" else f"all {score.n}"
        rows.append((score.type_code, pairs, mean, median, std, low, upper, *papers, paper_low))
    columns = [
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
    ]
    title = f"rewritten texts, scored 1 to 5 by {judges}; the paper's are its own texts"
    return Table(columns, rows, title)


def _evidence(report: AuditReport) -> Table:
    """The production evidence behind the types."""
    rows = [
        (
            one.type_code,
            *map(numbers.counts, (one.verdicts, one.roles)),
            str(one.supporting),
            "constructed" if one.constructed else "",
        )
        for one in report.evidence
    ]
    title = "production cases per type; constructed: none supports it that also fits it"
    return Table(("type", "verdicts", "roles", "supporting", ""), rows, title, ("verdicts", "roles"))


class LookedAgain(NamedTuple):
    """Every address of the evidence, looked at again."""

    pages: list[Refetched]

    @property
    def exit_code(self) -> int:
        """1: a case is gone, or has another title."""
        return int(any(one.outcome in ("gone", "other title") for one in self.pages))

    def json(self) -> list[Refetched]:
        return self.pages

    def shown(self) -> Iterator[Part]:
        """A page a line."""
        return (f"{one.outcome}: {one.url} ({', '.join(one.type_codes)})" for one in self.pages)


def looked_again(folder: Path, progress: Tell) -> LookedAgain:
    """Looks at every address of a build's table `evidence`. Raises UserError without a network."""
    pages = refetch(Folder(folder).rows("evidence"), fetch_page, progress)
    if all(one.outcome.startswith(("no connection", "not tried")) for one in pages):
        raise UserError(
            "no address could be reached, so the evidence was not checked; try again with a network"
        )
    return LookedAgain(pages)


class Unreviewed(NamedTuple):
    """What the text rules find in upstream's own texts and nobody has reviewed. Credentials are shown."""

    finds: list[Candidate]
    written: Path

    def shown(self) -> Iterator[Part]:
        """A find a line."""
        for one in self.finds:
            yield f"{one.rule}  {one.source}  {one.row!r}  {one.found!r}  {one.text[:200]!r}"
        yield (
            f"{len(self.finds)} finds to review; their hashes are in {self.written}: give each group a "
            "reason and add it to the package's list"
        )


def unreviewed(folder: Path, out: Path) -> Unreviewed:
    """Writes the hashes of what nobody has reviewed to the new file `out`. Raises UserError."""
    check_file(out)
    found = list(candidates(Folder(folder)))
    with atomic_file(out) as beside:
        beside.write_bytes(unreviewed_groups(found))
    return Unreviewed(found, out)


class Golds(NamedTuple):
    """The golden values of a build with their classes, and how many are printed. Credentials are shown."""

    found: list[tuple[Sample, Gold]]
    kind: str | None
    """The class that is printed; None: all."""
    number: int
    seed: int

    @property
    def wanted(self) -> list[tuple[Sample, Gold]]:
        """The values of the class."""
        return [(row, gold) for row, gold in self.found if self.kind in (None, gold.finding.kind)]

    def json(self) -> list[dict[str, Any]]:
        """Every value of the class."""
        return [{"clean_id": row.clean_id, "gold": gold} for row, gold in self.wanted]

    def shown(self) -> Iterator[Part]:
        """A seeded draw of the values with the place in the dialogue, and the counts of all."""
        wanted = self.wanted
        drawn = random.Random(self.seed).sample(range(len(wanted)), min(self.number, len(wanted)))
        for at in sorted(drawn):
            yield from _of_gold(*wanted[at])
        names = [name for name in in_tables() if any(row.source == name for row, _ in self.found)]
        rows = []
        for kind in KINDS:
            sources = [row.source for row, gold in self.found if gold.finding.kind == kind]
            rows.append((kind, *(str(sources.count(name)) for name in names), str(len(sources))))
        yield Table(("class", *names, "all"), rows, "golden values by class and source")


def golds_of(folder: Path, number: int, kind: str | None, seed: int) -> Golds:
    """The golden values of a benchmark build. Raises UserError."""
    if kind is not None and kind not in KINDS:
        raise unknown("class of golden values", kind, KINDS)
    if not (folder / CLEAN).is_dir():
        raise UserError(f"{folder} is no build of the benchmark: name the folder that `rbtc build` wrote")
    found = [(row, gold) for row in own_pool(folder).samples for gold in golds(row)]
    return Golds(found, kind, number, seed)


def _of_gold(row: Sample, gold: Gold) -> Iterator[str]:
    """One value: where it is asked for, what is accepted, its class, and the words that it rests on."""
    finding = gold.finding
    accepted = " or ".join(dumps(value) for value in gold.accepted)
    where = "no place in the dialogue"
    if finding.place is not None:
        message, start, end = finding.place
        passage = row.messages[message].content[start:end]
        where = f"message {message}, characters {start} to {end}: {passage[:120]!r}"
    yield f"{row.clean_id} · {gold.call}.{gold.parameter} = {accepted[:160]}"
    yield f"    {finding.kind}{f' ({finding.note})' if finding.note else ''} · {where}"
