"""What lies in a folder, looked at without opening or following anything."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path, PurePosixPath

from robustbench_tc.io import files
from robustbench_tc.io.files import Kind

SURPLUS = 100_000
"""Entries that are looked at: a folder with more is not a build, and the rest does not matter."""


def walk(root: Path) -> dict[str, Kind]:
    """Every entry under `root` by its path, sorted: see `files.walk`."""
    return dict(sorted(dict(islice(files.walk(root), SURPLUS)).items()))


def empty_folders(there: Mapping[str, Kind]) -> list[str]:
    """Folders that hold nothing, however deep."""
    used = {
        str(above)
        for path, kind in there.items()
        if kind != "folder"
        for above in PurePosixPath(path).parents
    }
    return [path for path, kind in there.items() if kind == "folder" and path not in used]
