"""What a results repository holds of a run beside its replies: what its submitter states, and its entry."""

import hashlib
from typing import Literal

import msgspec

from robustbench_tc.eval.stats.blind import TypeFigures
from robustbench_tc.eval.stats.defences import Cost
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.live import Line
from robustbench_tc.eval.stats.packs import Table
from robustbench_tc.eval.stats.verified import Beside

Kind = Literal["core", "own", "live"]
"""A run over the benchmark's rows, over rows of somebody's own tools, or of episodes in live worlds."""


class Submission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`submission.yaml`: what the submitter states. Shown as stated, and believed in nothing."""

    model: str
    """The model's id on the Hub, or a free name."""
    weights: Literal["open", "closed"] | None = None
    params_b: float | None = None
    """Billions of parameters."""
    licence: str | None = None
    card: str | None = None
    """Address of the model's card."""
    price_in: float | None = None
    """US dollars per million prompt tokens."""
    price_out: float | None = None
    agent: str | None = None
    """What stood around the model, where it was more than `rbtc eval`."""
    defences: str | None = None
    """Of that agent; those of `--defend` stand in run.json."""
    contact: str | None = None
    note: str | None = None


class Digest(msgspec.Struct, frozen=True):
    """One file that an entry was made of."""

    size: int
    sha256: str
    git: str
    """Its id as a git blob: what the Hub lists of a file that is not in LFS."""

    @classmethod
    def of(cls, data: bytes) -> "Digest":
        """That of a file's bytes."""
        git = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        return cls(len(data), hashlib.sha256(data).hexdigest(), git)


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run has no rank."""

    code: str
    value: float
    """A share of `n` rows."""
    n: int
    of: str = ""
    """What was counted (`letter`, `right`), or what it is equal to: an agent, a run."""
    rest: float | None = None
    """`knows-unsaid`: accuracy over the other rows."""


class TypeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One perturbation type of one entry. Δ is positive when the type is worse than clean."""

    accuracy: Interval
    delta: Interval | None
    delta_matched: float | None = None
    lost: int | None = None
    """Clean right, perturbed wrong."""
    gained: int | None = None
    p_holm: float | None = None


class Usage(msgspec.Struct, frozen=True):
    """What answering took, per row that was answered; None where the run does not say it of every one."""

    prompt_tokens: float | None = None
    """Mean."""
    completion_tokens: float | None = None
    latency_s: float | None = None
    """Median."""


class Verdicts(msgspec.Struct, frozen=True):
    """A bit for each row: [clean and the core types in the taxonomy's order, clean ids sorted], as
    `np.packbits` makes them. Two entries of one dataset are paired from this alone."""

    samples: int
    there: bytes
    """Whether there is such a row."""
    right: tuple[bytes, ...]
    """Whether it was answered right, for each repeat."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a run over rows."""

    counts: dict[str, tuple[int, int]]
    """(right, n) of clean, perturbed, every component and every type."""
    sources: dict[str, tuple[int, int]] = {}
    """(right, n) of each source's perturbed rows."""
    metrics: dict[str, Interval | None]
    """By the names of `stats.values.METRICS`."""
    types: dict[str, TypeLine]
    verified: dict[str, Beside] = {}
    """Clean, perturbed and the components without the rows that nobody could answer."""
    error_modes: dict[str, dict[str, int]] = {}
    """Wrong answers by component (and clean), then by mode."""
    usage: Usage = Usage()
    cost: Cost | None = None
    packs: dict[str, int] = {}
    """Pack beyond the core → its rows with a verdict."""
    tables: tuple[Table, ...] = ()
    """The levels, the stages of wrong answers, and what the packs measure."""
    needs_no_reading: tuple[TypeFigures, ...] = ()
    verdicts: Verdicts | None = None
    """None: only counts are known (the paper's models)."""
    replies: bytes = b""
    """A sketch of what it said, which shows whose replies it has."""


class LiveFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a live run."""

    episodes: int
    clean: Interval
    """Success of the clean episodes."""
    lines: tuple[Line, ...]
    """`eval.stats.live.lines`: every kind, explicit, implicit, all, and registry types."""
    effects: dict[str, dict[str, int]]
    """`eval.live.report.side_effects`."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """`entry.json`: what the board says of one run. Made by the checker alone, from raw replies."""

    format: int = 1
    kind: Kind
    run: str
    """`org/model/run id`: where it lies under `runs/`. The id begins with its day, YYYYMMDD."""
    submission: Submission
    submitter: str | None = None
    """The account that opened the pull request; None in a folder."""
    member: bool = False
    """Whether that account belongs to the organisation in `run`."""
    mode: str
    defend: tuple[str, ...] = ()
    repeats: int = 1
    dataset: str
    version: str
    """Of the dataset."""
    fingerprint: str
    """Of the dataset: runs of different ones are never on one board."""
    inputs: dict[str, Digest] = {}
    """The files of the run folder that this was made of."""
    checker: str
    """Versions of package, reader and scores: entries of another one are made again."""
    commit: str | None = None
    """Of the repository, as it was checked."""
    flags: tuple[Flag, ...] = ()
    """Those that rest on this run alone."""
    core: Figures | None = None
    """Of the kinds `core` and `own`."""
    live: LiveFigures | None = None

    @property
    def day(self) -> str:
        """YYYY-MM-DD."""
        day = self.run.rpartition("/")[2][:8]
        return f"{day[:4]}-{day[4:6]}-{day[6:]}"


class Refused(Exception):
    """A submission is not taken: one line that says why and what to do; `details` are ids, bounded."""

    def __init__(self, step: str, text: str, details: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.step = step
        self.details = details
