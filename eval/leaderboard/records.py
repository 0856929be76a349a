"""What is stored of a submission, and what is computed from it."""

from hashlib import sha256
from typing import Literal

import msgspec

from robustbench_tc.eval.parse import READER_VERSION
from robustbench_tc.eval.stats.blind import TypeFigures
from robustbench_tc.eval.stats.defences import Cost
from robustbench_tc.eval.stats.packs import Table
from robustbench_tc.eval.stats.reasked import Reasked
from robustbench_tc.eval.stats.verified import Beside

from .live_records import LiveEntry
from .shape import shape
from .tiers import Flag

Kind = Literal["core", "live"]


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """`record.json`: one small record per submission. Never changed once it is there."""

    format: int = 1
    id: str
    """`YYYYMMDD-` and 12 hex digits over user, model, mode and predictions."""
    user: str
    """The account on the Hub; `local` on a laptop."""
    model: str
    mode: str
    params_b: float | None
    """Billions of parameters; None where nobody said."""
    family: str
    submitted_at: str
    """UTC, ISO 8601."""
    dataset_version: str
    fingerprint: str
    """Of the dataset."""
    repeats: int
    predictions_sha256: str
    """Of predictions.parquet beside this record; of journal.jsonl for a live run."""
    package_version: str
    kind: Kind = "core"
    """A run over the rows, or one of episodes in live worlds."""
    card: str | None = None
    """The model's card, as stated by the submitter; so are the four below."""
    licence: str | None = None
    weights: Literal["open", "closed"] | None = None
    price_in: float | None = None
    """US dollars per million prompt tokens."""
    price_out: float | None = None
    defence: str = ""
    """The chain of `--defend`; empty for an undefended run."""

    @property
    def line(self) -> tuple[str, ...]:
        """Submissions that agree in this are one line of a board: the newest one counts."""
        return self.user, self.model, self.mode, self.fingerprint, self.defence

    @property
    def page(self) -> str:
        """The address of its page."""
        return f"/{'live' if self.kind == 'live' else 'model'}/{self.id}"


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """Rows asked again at an endpoint that the submitter offered, and what came out."""

    seed: str
    """Drawn after the submission: which rows, and the seed of the fresh ones. 16 hex digits."""
    model: str
    """As the endpoint calls it."""
    again: Reasked
    """Rows of the dataset."""
    fresh: Reasked
    """Rows of the same samples and types, built with another seed: nobody had seen them."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """A maintainer has repeated the run of a submission, or asked an endpoint again, and what came out."""

    format: int = 1
    kind: Literal["reproduced", "endpoint-matched"] = "reproduced"
    submission: str
    verified_at: str
    by: str
    rows: int
    agree: int
    """Rows with the same verdict in both runs."""
    submitted: float
    """Perturbed accuracy of the submission."""
    repeated: float
    """Perturbed accuracy of the maintainer's run."""
    p: float
    """Paired cluster test of the difference."""
    predictions_sha256: str
    """Of the maintainer's predictions, as they would be stored."""
    package_version: str
    matched: Matched | None = None
    """What was asked of an endpoint; it stays when the run is repeated afterwards."""


class Metric(msgspec.Struct, frozen=True):
    """A value with its 95 % interval; None where it cannot be had."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0


class TypeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One perturbation type of one entry. Δ is positive when the type is worse than clean."""

    accuracy: Metric
    delta: Metric
    delta_matched: float | None = None
    lost: int | None = None
    """Clean right, perturbed wrong; None where the samples are not known."""
    gained: int | None = None
    p_holm: float | None = None


class Gain(msgspec.Struct, frozen=True):
    """A type by what fixing it would give."""

    type_code: str
    lost: int
    gained: int
    gain: float
    """Rise of perturbed accuracy."""
    error: str | None
    """The most frequent way to be wrong."""


class Usage(msgspec.Struct, frozen=True):
    """What answering took, per row that was answered; None where the run does not say it of every one."""

    prompt_tokens: float | None = None
    """Mean."""
    completion_tokens: float | None = None
    latency_s: float | None = None
    """Median."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What the board shows of one submission, or of one of the paper's models."""

    counts: dict[str, tuple[int, int]]
    """(correct, n) of clean, perturbed, every component and every type."""
    metrics: dict[str, Metric]
    """By the names of `stats.values.METRICS`."""
    types: dict[str, TypeLine]
    verified: dict[str, Beside] = {}
    """Clean, perturbed and the components without the rows that nobody could answer; empty where only counts
    are known, and for entries of before."""
    error_modes: dict[str, dict[str, int]] = {}
    """Wrong answers by component (and clean), then by mode."""
    gains: tuple[Gain, ...] = ()
    repeats: int = 1
    needs_no_reading: tuple[TypeFigures, ...] = ()
    """How far one gets in the dataset without the request: the board's reference lines."""
    usage: Usage = Usage()
    """As the file says; nobody has measured it again."""
    flags: tuple[Flag, ...] = ()
    """What makes the run unlikely to be a model's: those that rest on it alone."""
    replies: str = ""
    """A sketch of what it said (`copies.sketch`), which shows whose replies it has."""
    cost: Cost | None = None
    """Requests and tokens as `rbtc defences` counts them, from the run record and the file."""
    packs: dict[str, int] = {}
    """Pack beyond the core → its rows with a verdict. They move no place on the board."""
    tables: tuple[Table, ...] = ()
    """The levels, the stages of wrong answers, and what the packs measure; () for entries of before."""
    verdicts: dict[str, str] | None = None
    """Per type one character for each clean_id in sorted order: right answers as a digit, `-` without a row.
    Two entries of one dataset can be paired from this alone. None: only counts are known."""


SCORES = 1
"""Raise it when scorers or statistics change what an entry says of the same answers."""


_SHAPE = sha256(msgspec.json.encode(shape(msgspec.json.schema(Entry)), order="sorted")).hexdigest()[:8]
ENTRY_VERSION = f"reader{READER_VERSION}-scores{SCORES}-{_SHAPE}"
"""What an entry rests on beside the answers: entries of another version are not mixed with these."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What the file said of its own rows, beside what we found. It has no influence on anything."""

    rows: int
    """Rows with a claim."""
    agree: int
    too_good: int
    """Claimed right, scored wrong."""
    too_bad: int
    claimed_perturbed: float | None
    """Perturbed accuracy over the claims."""
    examples: tuple[str, ...] = ()
    """Ids of rows where the claim is not what we found, bounded."""


class Step(msgspec.Struct, frozen=True):
    """One check of an upload. `passed` is None for a check that was not reached."""

    code: str
    passed: bool | None
    text: str = ""
    details: tuple[str, ...] = ()


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an upload: every step, and the report if all passed."""

    steps: tuple[Step, ...]
    submission: Submission | None = None
    """As it would be listed."""
    entry: Entry | None = None
    live: LiveEntry | None = None
    """In the place of `entry` for a live run."""
    claims: Claims | None = None

    @property
    def refused(self) -> Step | None:
        """The step that failed; None for an accepted upload."""
        return next((step for step in self.steps if step.passed is False), None)


def encode(value: msgspec.Struct) -> bytes:
    """The bytes of a stored record: the same for the same record."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def board_version(version: str | None, fingerprint: str) -> str:
    """How a board is addressed: the dataset's version and the beginning of its fingerprint."""
    return f"{version or 'unversioned'}-{fingerprint[:8]}"
