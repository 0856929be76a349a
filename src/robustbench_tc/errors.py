"""The one kind of failure that a user can fix, and near misses for wrong names."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Wrong input, printed by the command line as one line without a traceback.

    The text names the thing, the place and the hint: what is wrong, where, what to do.
    """


def unknown(kind: str, name: str, known: Iterable[str], also: Iterable[str] = ()) -> UserError:
    """A `UserError` for a name that does not exist, with near misses and a bounded list of what does.

    `also`: further spellings that are taken, too many to list.
    """
    names = sorted(known)
    near = get_close_matches(name, {*names, *also}, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    shown = ", ".join(names[:30]) + (f", … ({len(names)} in all)" if len(names) > 30 else "")
    return UserError(f"unknown {kind} {name!r}: {hint or 'known: ' + shown}")


def need_extra(package: str, extra: str) -> UserError:
    """A `UserError` for a heavy package that is not installed, naming the extra that brings it."""
    return UserError(f"{package} is not installed: in the clone, pip install -e '.[{extra}]'")
