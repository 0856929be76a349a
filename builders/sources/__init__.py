"""Sources in: the upstream benchmarks as clean rows, and what could not serve.

A new source is one module with a `READER` here, plus its pins: every module of this folder is imported.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Final, Literal, get_args

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import Sample, dumps

from .base import REASONS, Item, KnownIssue, Pool, Reader
from .upstream import must_be_pinned, pins

__all__ = [
    "BUNDLED",
    "OWN_CASES",
    "READERS",
    "REASONS",
    "BuildProfile",
    "KnownIssue",
    "Pool",
    "Profile",
    "Reader",
    "needed_files",
    "problems",
    "read",
]

Profile = Literal["paper", "full", "bundled"]
"""paper: the 199 samples. full: every usable single-turn record. bundled: our own starter samples."""


OWN_CASES: Final = "own"
"""The profile of what is built from a user's own tools and cases: nothing of it is read here."""

BuildProfile = Literal["paper", "full", "bundled", "own"]
"""What a build says of itself."""


_modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
_readers: list[Reader] = [module.READER for module in _modules if hasattr(module, "READER")]
READERS = tuple(sorted(_readers, key=lambda reader: (reader.order, reader.name)))
"""In the order of every table."""

BUNDLED = Path(__file__).parent / "bundled"
"""Sources root of the bundled starter samples."""


def read_pool(root: Path, profile: Profile, *, checked: bool = False) -> Pool:
    """The clean rows of a profile from the sources under `root`, laid out as in `pins.json`.

    `checked`: without the rows whose golden answer fails its scorer (`self_check`). Issues cover every record
    of the files that were read, whether or not the profile draws it. Raises UserError (but for `bundled`) for
    a file that is missing or not as pinned.
    """
    if profile not in get_args(Profile):
        raise unknown("profile", profile, get_args(Profile))
    if not root.is_dir():
        raise UserError(f"no sources folder at {root}: run `rbtc data fetch`, or name one with --sources")
    samples: list[Sample] = []
    issues: list[KnownIssue] = []
    places: dict[str, tuple[str, str]] = {}
    for reader in READERS:
        drawn = clean_index().get(reader.name, {}) if profile == "paper" else None
        files = reader.files if drawn is None else tuple(drawn)
        if profile == "bundled":
            files = tuple(file for file in files if (root / file).exists())
        taken: set[str] = set()
        seen: set[str | None] = set()
        whole: list[tuple[str, str, Sample]] = []
        for file in files:
            if profile != "bundled":
                for name in _with_answers(reader, file):
                    must_be_pinned(root, name)
            usable: dict[str, Sample] = {}
            for record, item in reader.read_file(root, file):
                # A usable record whose only forerunner was unusable is kept; an unusable one is a duplicate.
                twice = item.clean_id in (seen if isinstance(item, KnownIssue) else taken)
                seen.add(item.clean_id)
                judged = _judge(item, record, file, twice, checked)
                if isinstance(judged, KnownIssue):
                    issues.append(judged)
                else:
                    usable[record] = judged
                    places[judged.clean_id] = (file, record)
                    taken.add(judged.clean_id)
            if drawn is None:
                whole += [(file, record, sample) for record, sample in usable.items()]
                continue
            samples += [usable[record] for record in drawn[file] if record in usable]
        distinct, again = _distinct(whole, clean_index().get(reader.name, {}))
        samples += distinct
        issues += again
    return Pool(tuple(samples), tuple(issues), places if samples else {})


def needed_files(profile: Profile) -> tuple[str, ...]:
    """The files that `read_pool` opens for a profile, as in `pins.json`; none for `bundled`, which ships."""
    if profile == "bundled":
        return ()
    found: list[str] = []
    for reader in READERS:
        for file in clean_index()[reader.name] if profile == "paper" else reader.files:
            found += _with_answers(reader, file)
    return tuple(found)


def problems(root: Path, profile: Profile) -> tuple[tuple[str, str], ...]:
    """(path, what is wrong) of every file that the profile needs and that is not the pinned one under `root`.

    Costs a second at most: look before any work.
    """
    pinned = {pin.path: pin for pin in pins().files}
    found = ((path, pinned[path].problem(root / path)) for path in needed_files(profile))
    return tuple((path, problem) for path, problem in found if problem is not None)


def _judge(item: Item, record: str, file: str, twice: bool, checked: bool) -> Item:
    """The item, or the issue that keeps it out: an id that is taken, a golden answer that is refused."""
    if twice:
        reason, detail = "duplicate_id", "An earlier record of the pool has the same id."
    elif checked and isinstance(item, Sample) and (refusal := self_check(item)):
        reason, detail = "gold_fails_scorer", f"The source's scorer refuses the golden answer: {refusal}."
    else:
        return item
    return KnownIssue(
        source=item.source,
        file=file,
        record=record,
        clean_id=item.clean_id,
        reason=reason,
        detail=detail,
    )


def _distinct(
    records: Sequence[tuple[str, str, Sample]], papers: Mapping[str, Sequence[str]]
) -> tuple[list[Sample], list[KnownIssue]]:
    """The samples of (file, record, sample) without those that repeat another, and an issue for each of them.

    Of equal samples the paper's stay, else the first. `papers`: its records by file.
    """
    kept: dict[str, str] = {}
    for _, _, sample in sorted(records, key=lambda r: r[1] not in papers.get(r[0], ())):
        kept.setdefault(_shown(sample), sample.clean_id)
    distinct: list[Sample] = []
    issues: list[KnownIssue] = []
    for file, record, sample in records:
        first = kept[_shown(sample)]
        if sample.clean_id == first or record in papers.get(file, ()):
            distinct.append(sample)
            continue
        issues.append(
            KnownIssue(
                source=sample.source,
                file=file,
                record=record,
                clean_id=sample.clean_id,
                reason="identical_row",
                detail=f"Messages, tools and golden answers are those of {first}.",
            )
        )
    return distinct, issues


def _shown(sample: Sample) -> str:
    """What two samples must not share."""
    return dumps((sample.messages, sample.tools, sample.golden_answers))


def _with_answers(reader: Reader, file: str) -> list[str]:
    """The file, and the one that holds its golden answers where they lie apart."""
    return [file] if reader.answers_of is None else [file, reader.answers_of(file)]


def clean_index() -> dict[str, dict[str, list[str]]]:
    """The paper's 199 samples: source, file, records."""
    path = Path(__file__).parents[1] / "data" / "clean_index.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, list[str]]])
