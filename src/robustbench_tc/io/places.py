"""Places that no command ever replaces or removes, whatever it is asked."""

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError

REPOSITORIES = (".git", ".hg", ".svn", ".jj", ".bzr", "_darcs", "CVS")
"""What lies at the top of a working copy."""


def real(path: Path) -> Path:
    """`path` as an absolute path whose parents are resolved; its own last name is kept, link or not."""
    path = Path.cwd() / path
    return path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name


def refuse_protected(path: Path) -> None:
    """UserError if `path` (as `real` gives it, and there) is not to be replaced whatever it holds."""
    if path.is_symlink():
        raise UserError(f"{path} is a link: name the folder itself")
    reason = _why(path)
    if reason is not None:
        raise UserError(f"{path} is {reason} and is never replaced: name a folder of its own")


def _why(path: Path) -> str | None:
    if path.parent == path:
        return "the root of a file system"
    if _holds(path, Path.cwd()):
        return "the working folder or a parent of it"
    if path.parent in (Path("/home"), Path("/Users")) or any(_holds(path, home) for home in _homes()):
        return "a home folder or a parent of one"
    if any(os.path.lexists(path / name) for name in REPOSITORIES) or ".git" in path.parts:
        return "a repository"
    if all(os.path.lexists(path / name) for name in ("HEAD", "objects", "refs")):
        return "a repository"
    if os.path.ismount(path) or any(mount.is_relative_to(path) for mount in _mounts()):
        return "a mount point or holds one"
    return None


def _holds(path: Path, inner: Path) -> bool:
    """Whether `inner` is `path` or lies below it, under whatever name."""
    try:
        outside = path.stat()
    except OSError:
        return False
    for folder in (inner, *inner.parents):
        try:
            if os.path.samestat(outside, folder.stat()):
                return True
        except OSError:  # an account without a folder
            continue
    return False


def _homes() -> Iterator[Path]:
    """The home of every account that the system lists, and the one that the environment names."""
    named = os.environ.get("HOME")
    if named:
        yield Path(named).resolve()
    for account in pwd.getpwall():
        # System accounts are at home in places such as /bin or nowhere: no harm in keeping those too.
        home = Path(account.pw_dir)
        if home.is_absolute():
            yield home


def _mounts() -> Iterator[Path]:
    """Mount points, bind mounts included; none where the system does not list them."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        name = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), line.split(" ")[4])
        yield Path(name)
