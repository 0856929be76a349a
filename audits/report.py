"""What an audit finds: one `Check` per thing that must hold, and the verdict over all of them.

Nothing here holds a clock, so the same build audited the same way gives the same bytes.
"""

from typing import Literal, get_args

import msgspec

from robustbench_tc.eval.agents.blind import TypeFigures
from robustbench_tc.io import marker

from .hygiene.secrets import redact

REPORT_VERSION = 1

SHOWN = 20
"""Failures that a check lists; the number of all of them is always there."""

TEXT = 240
"""Characters of a failure's sentence."""

Status = Literal["passed", "failed", "waived", "not_run"]


NOTHING_THERE = "own tools and cases: the dataset holds nothing that this check could be held against"
"""Why a check of such a build may be left out."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row (or pair, file, type) that breaks a check."""

    where: str
    """The row's id, or the name of what is wrong: `CD_AB.messages`, a config, a type code."""
    what: str
    key: str = ""
    """Hash of what fails, where a waiver may name it alone."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that must hold before anything is released."""

    id: str
    """`group.name`, such as `rows.digits_kept`: what a waiver names."""
    protects: str
    """A sentence: what would go wrong without it."""
    status: Status
    reason: str = ""
    """Why it failed, was waived, or did not run."""
    applied: int = 0
    """Rows (texts, pairs, files) that it was held against. A check that applied to none did not run."""
    failed: int = 0
    failures: tuple[Failure, ...] = ()
    """The first failures, bounded."""
    may_be_left_out: str | None = None
    """Where it is allowed that this check did not run. Without it, `not_run` fails the gate."""
    expires: str | None = None
    """The waiver's last day, for a waived check."""

    @property
    def blocks(self) -> bool:
        """Whether this check keeps the build from being released."""
        return self.status == "failed" or (self.status == "not_run" and self.may_be_left_out is None)


class TypeScore(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's scores of one model-written type, over a draw of pairs or over all of them."""

    type_code: str
    judge: str
    scope: Literal["sample", "all"]
    population: int
    """Distinct pairs of the type in the build."""
    n: int
    """Pairs judged."""
    unjudged: int = 0
    pinned: int = 0
    """Of the judged ones, those whose judgment ships with the package; the others are their judge's word."""
    mean: float | None = None
    median: float | None = None
    std: float | None = None
    """Of the population formula (divided by n)."""
    share_low: float | None = None
    """Share of pairs scored 2 or less."""
    upper: float | None = None
    """Upper end of the 95 % Wilson interval of that share."""
    limit: float | None = None
    """What `upper` may be at this n; null where even n good pairs could not keep it."""
    paper: dict[str, float] | None = None
    """The paper's audit of this type: n, mean, median, std, frac_le_2. Other pairs and another judge."""


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far two judges of the same pairs agree."""

    type_code: str
    judges: tuple[str, str]
    n: int
    exact: float
    """Share of pairs with equal scores."""
    kappa: float | None
    """Quadratic-weighted kappa; null where all scores of both judges are the same one."""


class RedundantScore(msgspec.Struct, frozen=True, kw_only=True):
    """Answers to the question whether a new tool of a `redundant` row could answer the query."""

    judge: str | None
    """Null: nobody was asked."""
    population: int
    """Distinct (query, new tool) pairs."""
    asked: int = 0
    pinned: int = 0
    """Of those asked about, the ones whose judgment ships with the package."""
    could_answer: int = 0


class TypeEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The production evidence behind one type."""

    type_code: str
    display_name: str
    verdicts: dict[str, int]
    """supports, partly, does_not, not_found → cases."""
    roles: dict[str, int]
    supporting: int
    """Cases whose verdict is `supports` and which fit the type directly or closely."""
    urls: tuple[str, ...] = ()
    """Their addresses."""

    @property
    def constructed(self) -> bool:
        """No supporting case: the type is an extrapolation, and the card calls it constructed."""
        return self.supporting == 0


class Identifiability(msgspec.Struct, frozen=True, kw_only=True):
    """Whether metadata (and the stated preference) single out the gold tool in a reward type."""

    type_code: str
    rows: int
    unique_best: int
    preference_stated: int
    note: str = ""


class Shortcut(TypeFigures, frozen=True, kw_only=True, omit_defaults=False):
    """What needs no reading in one type (or in `clean`): rows whose gold tool is chosen from the registry."""

    classifier: int
    """Rows in which the classifier is right, each row held out."""
    reason: str = ""
    """Why the type stays although it is solved, as its module states it."""

    @property
    def shares(self) -> list[float]:
        """Of the policies in their order, then of the classifier."""
        return [right / self.rows for right in (*self.right.values(), self.classifier)]


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """Two queries that share words."""

    left: str
    """A row of the benchmark."""
    right: str
    """A training row, or a row of the rest of the pools, or another clean row."""
    shared: float
    """Share of the left query's word 8-grams that the right one holds; 1.0 for equal queries."""
    equal: bool
    contaminated: bool
    """Equal, or at least half of the 8-grams."""


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """`audit_report.json`: the gate's verdict and all that it rests on."""

    report_version: int = REPORT_VERSION
    package_version: str
    kind: Literal["benchmark", "training", "live", "predictions"]
    name: str
    """The audited folder's or file's name, without its path."""
    fingerprint: str | None = None
    """Of the rows of a benchmark."""
    profile: str | None = None
    build: str
    """sha256 over the audited Parquet files: another build has another one."""
    seed: int = 0
    """Of the audit's own draws."""
    expectations_version: str = ""
    """Of Great Expectations, whose project and data docs differ between versions."""
    provenance: str = ""
    """What the build was compared with: rebuilt from the sources, or the clean rows by their digest only."""
    passed: bool
    checks: tuple[Check, ...]
    files: dict[str, str] = {}
    """sha256 of every file that the audit wrote beside this report, by its path: `audit/judgments.jsonl`, the
    Great Expectations project, its data docs. They are not part of `build`."""
    paraphrase: tuple[TypeScore, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    redundant: RedundantScore | None = None
    evidence: tuple[TypeEvidence, ...] = ()
    identifiability: tuple[Identifiability, ...] = ()
    shortcuts: tuple[Shortcut, ...] = ()
    training_overlaps: tuple[Overlap, ...] = ()
    pool_overlaps: tuple[Overlap, ...] = ()
    near_duplicates: tuple[Overlap, ...] = ()

    def json(self) -> bytes:
        """The bytes of `audit_report.json`, sealed with their own sha256."""
        return marker.sealed(self)

    def unjudged(self) -> dict[str, int]:
        """Type → how many of its texts have no judgment."""
        found = {one.type_code: one.unjudged for one in self.paraphrase if one.scope == "all"}
        if self.redundant is not None:
            found["redundant"] = self.redundant.population - self.redundant.asked
        return {code: number for code, number in found.items() if number}

    @property
    def unpinned(self) -> dict[str, tuple[int, str]]:
        """Type → judgments that do not ship with the package, and who judged the type."""
        found = {
            one.type_code: (one.n - one.pinned, one.judge) for one in self.paraphrase if one.scope == "all"
        }
        if self.redundant is not None and self.redundant.judge is not None:
            found["redundant"] = (self.redundant.asked - self.redundant.pinned, self.redundant.judge)
        return {code: number for code, number in found.items() if number[0]}

    def having(self, *statuses: Status) -> list[Check]:
        """The checks of these statuses, in the order of the statuses."""
        return [check for status in statuses for check in self.checks if check.status == status]

    @property
    def blocking(self) -> tuple[Check, ...]:
        """The checks that keep the data from being released."""
        return tuple(check for check in self.checks if check.blocks)

    @property
    def is_green(self) -> bool:
        """Whether its checks let the data out; a verdict that rests on nothing does not."""
        return self.passed and bool(self.checks) and not self.blocking

    def counts(self) -> dict[str, int]:
        """Checks by status, in a fixed order."""
        return {status: len(self.having(status)) for status in get_args(Status)}


def check(
    id: str,
    protects: str,
    applied: int,
    failures: "list[Failure] | tuple[Failure, ...]",
    *,
    reason: str = "",
    failed: int | None = None,
) -> Check:
    """A check that ran: failed if there are failures, not run if there was nothing to hold it against.

    What failures quote is cleared of credential-like strings.
    """
    number = len(failures) if failed is None else failed
    status: Status = "failed" if number else "passed" if applied else "not_run"
    if status == "not_run" and not reason:
        reason = "there was nothing to hold it against"
    return Check(
        id=id,
        protects=protects,
        status=status,
        reason=reason,
        applied=applied,
        failed=number,
        failures=tuple(
            Failure(visible(f.where)[:TEXT], visible(redact(f.what))[:TEXT], f.key) for f in failures[:SHOWN]
        ),
    )


def visible(text: str) -> str:
    """Text that a terminal and a page show as it is: control, bidi and invisible characters are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def without(checks: list[Check], id: str, reason: str, may_be_left_out: str | None = None) -> list[Check]:
    """The checks, of which the one with this id could not be made."""
    unmade = {"status": "not_run", "reason": reason, "may_be_left_out": may_be_left_out}
    return [msgspec.structs.replace(one, **unmade) if one.id == id else one for one in checks]


def not_run(id: str, protects: str, reason: str, may_be_left_out: str | None = None) -> Check:
    """A check that could not be made, and whether that is allowed."""
    return Check(id=id, protects=protects, status="not_run", reason=reason, may_be_left_out=may_be_left_out)
