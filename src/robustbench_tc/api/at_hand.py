"""What is at hand: a dataset's folder, the benchmark's sources (whether they are whole), what these ask."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..errors import UserError
from ..schema import Message
from .progress import Progress

if TYPE_CHECKING:
    from ..builders.sources import Profile

Conversations: TypeAlias = Callable[[], Iterable[tuple[str, Sequence[Message]]]]
"""Rows as (id, messages), read when they are needed."""

SOURCE_FILES_NAMED = 3
"""Source files that a message names before it says how many more there are."""

NO_LEAK_CHECK = "not done:"
"""How the note on a training build's leak check begins where there was none."""


def dataset_folder(name: str) -> Path:
    """A folder here, or the data of `org/name@revision` from the Hub. Raises UserError."""
    from ..io.resolve import resolve_dataset

    if Path(name).expanduser().exists():
        return Path(name).expanduser()
    repo, _, revision = name.partition("@")
    return resolve_dataset(repo, revision or None, patterns=["*/*.parquet", "*.json", "*.jsonl"])


def sources_at_hand(sources: Path | None, profile: "Profile") -> tuple[Path | None, str]:
    """The sources folder, if every file that the profile needs is there as pinned; else why not.

    Every needed file is looked at before any work, which takes a second. Raises UserError where `sources` are
    named and not whole.
    """
    from ..builders.sources import needed_files, problems
    from ..builders.sources.fetch import default_root

    root = sources or default_root()
    if not root.is_dir():
        if sources is not None:
            raise UserError(f"no sources folder at {root}: run `rbtc data fetch`, or name another --sources")
        return None, "no sources at hand (run `rbtc data fetch`, or pass --sources)"
    bad = problems(root, profile)
    if not bad:
        return root, ""
    named = "; ".join(f"{path}: {problem}" for path, problem in bad[:SOURCE_FILES_NAMED])
    more = f"; and {len(bad) - SOURCE_FILES_NAMED} more" if len(bad) > SOURCE_FILES_NAMED else ""
    needed = len(needed_files(profile))
    why = f"{len(bad)} of {needed} source files of profile {profile} are not as pinned ({named}{more})"
    if sources is not None:
        raise UserError(f"{root}: {why}: `rbtc data fetch --sources {root}` completes it")
    return None, why


def leaks_of(
    root: Path | None, progress: Progress = lambda line: None
) -> "tuple[Callable[[str, Sequence[Message]], bool] | None, str]":
    """Whether a training row asks what the benchmark asks (the 199 and the full pools), and a note on it.

    The gate of a release asks the same question in the same way. Without sources nothing is compared.
    """
    from ..audits.contamination import Index, query
    from ..builders.sources import read

    if root is None:
        where = "no benchmark sources at hand (run `rbtc data fetch`, or pass --sources)."
        return None, f"{NO_LEAK_CHECK} {where}"
    progress("reading the benchmark's queries")
    samples = (*read(root, "paper").samples, *read(root, "full").samples)
    index = Index(query(sample.id, sample.messages) for sample in samples)

    def leaks(clean_id: str, messages: "Sequence[Message]") -> bool:
        overlap = index.look_up(query(clean_id, messages))
        return overlap is not None and overlap.contaminated

    return leaks, f"user turns compared with {index.size} benchmark rows (the 199 and the full pools)."


def benchmark_queries(folder: Path | None, sources: Path | None) -> Conversations | None:
    """The clean rows of a benchmark folder, else the 199 of the sources; None where there are neither."""
    from ..io.parquet import read_rows, shards
    from ..schema import Sample, record

    if folder is None:
        return queries_of_sources(sources, "paper")
    files = shards(folder / "clean")

    def of_folder() -> Iterator[tuple[str, Sequence[Message]]]:
        for row in read_rows(files):
            sample = record(row, Sample)
            yield sample.id, sample.messages

    return of_folder


def queries_of_sources(root: Path | None, profile: "Profile") -> Conversations | None:
    """What the rows of sources ask, each of whose files is as pinned; None without sources."""
    if root is None:
        return None
    return lambda: iter(_asked(root.resolve(), profile))


@cache  # an audit after another in the same process: pinned files hold the same
def _asked(root: Path, profile: "Profile") -> tuple[tuple[str, Sequence[Message]], ...]:
    from ..builders.sources import read

    return tuple((sample.id, sample.messages) for sample in read(root, profile).samples)
