"""What lies in a folder, looked at without opening or following anything."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

Kind = Literal["file", "folder", "link", "special"]
"""special: a pipe, a socket, a device. Opening one may wait for ever."""

SURPLUS = 100_000
"""Entries that are looked at: a folder with more is not a build, and the rest does not matter."""


def walk(root: Path) -> dict[str, Kind]:
    """Every entry under `root` by its path (with `/`, bytes that are not UTF-8 escaped), sorted; no link is
    followed. A folder that cannot be listed stands there as `special`."""
    found: dict[str, Kind] = {}
    waiting = [""]
    while waiting and len(found) < SURPLUS:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    found[path] = kind = _kind(entry)
                    if kind == "folder":
                        waiting.append(path)
        except OSError:
            found[folder] = "special"
    return dict(sorted(found.items()))


def _kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    mode = entry.stat(follow_symlinks=False).st_mode
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "special"


def empty_folders(there: Mapping[str, Kind]) -> list[str]:
    """Folders that hold nothing, however deep."""
    used: set[str] = set()
    for path, kind in there.items():
        while kind != "folder" and "/" in path:
            path = path.rpartition("/")[0]
            used.add(path)
    return [path for path, kind in there.items() if kind == "folder" and path not in used]
