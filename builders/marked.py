"""What the report of every build holds, and how a build ends: report, card and, last, the marker.

Counts by key, nested as reports hold them: plain dicts, which JSON gives back as they were.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from robustbench_tc.io import marker
from robustbench_tc.shown import Line, Part


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """`build_report.json`, the marker of a build (`io.marker`). No clock in it: same build, same report."""

    report_version: int = marker.BUILD_VERSION
    pyarrow: str = pa.__version__
    """Version of the library that wrote the Parquet files: another one writes other bytes."""
    files: dict[str, str] = {}
    """Every other file of the build → sha256; filled in by `finished`."""
    own_sha256: str = ""
    """Filled in by `json`."""

    def json(self) -> bytes:
        """The bytes of the file, sealed with their own sha256."""
        return marker.sealed(msgspec.structs.replace(self, own_sha256=""))

    def markdown(self) -> str:
        """The readable form."""
        raise NotImplementedError

    def shown(self) -> Iterator[Part]:
        """What a command prints: the readable form, as it is."""
        yield Line(self.markdown())


Made = TypeVar("Made", bound=Report)


def finished(folder: Path, report: Made, card: Callable[[Made], str]) -> Made:
    """Writes the report and the README that `card` renders; the report, which names every file now."""
    (folder / "build_report.md").write_text(report.markdown())
    (folder / "README.md").write_text(card(report))
    report = msgspec.structs.replace(report, files=marker.hashes(folder, but=marker.BUILD))
    (folder / marker.BUILD).write_bytes(report.json())
    return report


def add(counts: dict[Any, int], key: Any, count: int = 1) -> None:
    """Counts one more, or so many."""
    counts[key] = counts.get(key, 0) + count


def merge(mine: dict[Any, Any], theirs: Mapping[Any, Any]) -> None:
    """Takes other counts of the same nesting in."""
    for key, found in theirs.items():
        if isinstance(found, Mapping):
            merge(mine.setdefault(key, {}), found)
        else:
            add(mine, key, found)
