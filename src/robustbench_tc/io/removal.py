"""The one place that deletes files of a folder: those that are named, and nothing else."""

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SHOWN = 5
"""Names in a message."""


def remove_files(folder: Path, ours: Callable[[str, os.stat_result], bool]) -> list[str]:
    """Deletes the regular files under `folder` that are `ours`, and every folder that is then empty.

    `ours` is given a relative path with `/` and what the file is at this moment. No link is followed and no
    other file touched; what stays is returned, sorted, bounded in number, [] when `folder` is gone.
    """
    stays: list[str] = []
    if folder.is_symlink() or not folder.is_dir():
        return [] if not os.path.lexists(folder) else [folder.name]
    for root, folders, files, handle in os.fwalk(folder, topdown=False):
        prefix = os.path.relpath(root, folder) + "/" if root != str(folder) else ""
        for name in files:
            try:
                found = os.stat(name, dir_fd=handle, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode) and ours(prefix + name, found):
                    os.unlink(name, dir_fd=handle)
                    continue
            except FileNotFoundError:  # gone already
                continue
            except OSError:  # a folder without the right to delete in it
                pass
            stays.append(prefix + name)
        for name in folders:
            with suppress(OSError):  # not empty: what stays in it is listed
                os.rmdir(name, dir_fd=handle)
                continue
            if (Path(root) / name).is_symlink():
                stays.append(prefix + name)
    with suppress(OSError):  # not empty, likewise
        folder.rmdir()
    return sorted(stays)[:1_000] or ([folder.name] if os.path.lexists(folder) else [])


def some(names: list[str]) -> str:
    """A few of many names for a message, control characters made visible."""
    shown = ", ".join(name if name.isprintable() else ascii(name) for name in names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
