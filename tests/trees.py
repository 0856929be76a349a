"""Folders before and after: every byte, link and kind of file of a tree."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

Tree = dict[str, tuple[str, bytes]]


def tree(root: Path) -> Tree:
    """Relative path → what it is and holds, of everything under `root`; no link is followed."""
    found: Tree = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder) / name
            mode = path.lstat().st_mode
            relative = path.relative_to(root).as_posix()
            if stat.S_ISLNK(mode):
                found[relative] = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISDIR(mode):
                found[relative] = ("folder", b"")
            elif stat.S_ISREG(mode):
                found[relative] = ("file", path.read_bytes())
            else:
                found[relative] = ("special", b"")
    return found


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files with their contents under `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root
