"""What a results repository holds beside replies: a run's name, what is stated of it, its entry; and
`status.yaml`, the maintainers' word, kept by editing it, each line with a public reason."""

import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from robustbench_tc.errors import UserError
from robustbench_tc.eval.stats.caveats import Beside, Delivery
from robustbench_tc.eval.stats.evidence import Word
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs import Table
from robustbench_tc.eval.stats.packs.live import Line
from robustbench_tc.eval.stats.summary import TypeRow

Kind = Literal["core", "own", "live"]
"""A run over the benchmark's rows, over rows of somebody's own tools, or of episodes in live worlds."""


NAME = r"[A-Za-z0-9](?:(?:(?!\.\.)[A-Za-z0-9._+-]){0,94}[A-Za-z0-9+])?"
"""An organisation or a model, as pages, paths and comments can bear it."""

_RUN = re.compile(rf"({NAME})/({NAME})/([0-9]{{8}}-[0-9a-f]{{12}})")

SUBMISSION_BYTES = 20_000
"""Of `submission.yaml`."""

_Amount = Annotated[float, Meta(ge=0, le=100_000)]
_Line = Annotated[str, Meta(max_length=200)]


class Submission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`submission.yaml`: what the submitter states. Shown as stated, and believed in nothing."""

    model: Annotated[str, Meta(pattern=rf"^(?:{NAME}/)?{NAME}\Z")]
    """The model's id on the Hub, or a free name."""
    weights: Literal["open", "closed"] | None = None
    params_b: _Amount | None = None
    """Billions of parameters."""
    licence: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9 .,+()/_-]{0,59}\Z")] | None = None
    card: (
        Annotated[
            str,
            Meta(
                pattern=r"^https://[A-Za-z0-9.-]+(?::[0-9]+)?(?:/[A-Za-z0-9._~!$&()*+,;=:@%/?#-]*)?\Z",
                max_length=300,
            ),
        ]
        | None
    ) = None
    """Address of the model's card."""
    price_in: _Amount | None = None
    """US dollars per million prompt tokens."""
    price_out: _Amount | None = None
    agent: _Line | None = None
    """What stood around the model, where it was more than `rbtc eval`."""
    defences: _Line | None = None
    """Of that agent; those of `--defend` stand in run.json."""
    contact: _Line | None = None
    note: Annotated[str, Meta(max_length=2_000)] | None = None


class Digest(msgspec.Struct, frozen=True):
    """One file that an entry was made of."""

    size: int
    sha256: str
    git: str
    """Its id as a git blob: what the Hub lists of a file that is not in LFS."""

    @classmethod
    def of_bytes(cls, data: bytes) -> "Digest":
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
    types: dict[str, TypeRow]
    """Of the core. Δ is positive when the type is worse than clean."""
    verified: dict[str, Beside] = {}
    """Clean, perturbed and the components without the rows that nobody could answer."""
    usage: Usage = Usage()
    packs: dict[str, int] = {}
    """Pack beyond the core → its rows with a verdict."""
    tables: tuple[Table, ...] = ()
    """What the packs measure."""
    sentence: str = ""
    """Its headline (`stats.evidence`)."""
    words: dict[str, Word] = {}
    """What the run lets one say of perturbed rows and of every component."""
    delivery: Delivery | None = None
    """In fc mode: what a client got of the calls that were meant."""
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
    """`eval.stats.packs.live.lines`: every kind, explicit, implicit, all, and registry types."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """`entry.json`: what the board says of one run. Made by the checker alone, from raw replies."""

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
    def figures(self) -> dict[str, Interval | None]:
        """By the columns of `data.parquet`: those of `stats.values.METRICS` and the accuracy of every type;
        of a live run `clean` and the success of every line."""
        if self.live is not None:
            lines = {f"success_{line.name}": line.success for line in self.live.lines}
            return {"clean": self.live.clean, **lines}
        assert self.core is not None  # every entry has one of the two
        types = {f"accuracy_{code}": line.accuracy for code, line in self.core.types.items()}
        return {**self.core.metrics, **types}

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


def shown(text: str, length: int = 60) -> str:
    """A hostile text for a message: quoted, everything beyond printable ASCII escaped, bounded."""
    cut = text if len(text) <= length else text[:length] + "…"
    return ascii(cut).replace("\\u2026", "…")


def of_run(run: str) -> tuple[str, str, str]:
    """Organisation, model and id of a run's name. Raises Refused for one that no run has."""
    found = _RUN.fullmatch(run)
    org, model, identity = found.groups() if found else ("", "", "")
    try:
        datetime.strptime(identity[:8], "%Y%m%d")
    except ValueError:
        raise Refused(
            "name",
            f"{shown(run, 120)} is no run and cannot be listed: runs lie in runs/ORG/MODEL/ID; the names "
            "have ASCII letters, digits, '.', '_' and '-' only, at most 96 of them; an id is a day as "
            "YYYYMMDD, '-' and 12 hex digits",
        ) from None
    return org, model, identity


def read_submission(yaml: bytes, model: str) -> Submission:
    """`submission.yaml` of a run of that model. Raises Refused for what cannot be listed."""
    try:
        found = msgspec.yaml.decode(yaml, type=Submission)
    except (ValueError, RecursionError, OverflowError) as error:  # msgspec's and yaml's are ValueErrors
        raise Refused("form", f"submission.yaml cannot be listed: {shown(str(error), 300)}") from None
    if found.model.rpartition("/")[2] != model:
        raise Refused("name", f"submission.yaml is of the model {shown(found.model)}, the folder of {model}")
    for name, text in msgspec.structs.asdict(found).items():
        if isinstance(text, str) and not text.replace("\n", " ").isprintable():
            raise Refused("form", f"submission.yaml cannot be listed: {name} is no plain text")
    return found


# --- the maintainers' word ----------------------------------------------------------------------------------

Tier = Literal["published", "reproduced", "endpoint-matched", "unverified"]
"""How far a run is vouched for: printed in the paper; repeated by a maintainer; an endpoint that its
submitter offers gives these answers; scored here and nothing more."""


class Reasoned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision with its public reason."""

    reason: str


class Vouched(Reasoned, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that somebody has repeated, or whose endpoint was asked again; the reason is what was compared,
    with its figures."""

    tier: Literal["reproduced", "endpoint-matched"]
    by: str
    day: str
    """YYYY-MM-DD."""

    def shown(self) -> Iterator[str]:
        """What the run is now, and why."""
        yield f"{self.tier}: {self.reason}"


class Status(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`status.yaml`."""

    format: int = 1
    dataset: str
    """`ORG/NAME@VERSION` or a folder: the dataset of the front page."""
    live: str | None = None
    """The dataset of live runs; None: none are taken."""
    own: tuple[str, ...] = ()
    """Datasets of own tools that runs are taken for."""
    front: str | None = None
    """Fingerprint of the board on the front page where it is not `dataset`'s: the old board stays until this
    line says otherwise."""
    spaces: tuple[str, ...] = ()
    """Accounts of Spaces, which open pull requests for whoever signed in there."""
    tiers: dict[str, Vouched] = {}
    """By run."""
    withdrawn: dict[str, Reasoned] = {}
    cleared: dict[str, dict[str, Reasoned]] = {}
    """By run and flag: flags that count no more."""


def parse_status(text: bytes, where: str) -> Status:
    """Raises UserError for what is no status."""
    try:
        return msgspec.yaml.decode(text, type=Status)
    except (msgspec.MsgspecError, ValueError) as error:
        raise UserError(f"{where}: {str(error).splitlines()[0]}") from None
