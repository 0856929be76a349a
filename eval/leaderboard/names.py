"""Names on the board: what a model and a user may be called, and when two names look alike."""

import re

from robustbench_tc.eval import models

from .refusal import Refused

_MODEL = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,38}/)?[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,62}[A-Za-z0-9+])?")
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d{1,5}(?:\.\d{1,3})?)[bB](?![A-Za-z0-9])")

FORM = "letters, digits and . _ - + only, at most 64 of them, optionally one `organisation/` before it"


def check_model(name: str) -> str:
    """The name as the board shows it: the table's spelling for a model of `models.toml`. Raises Refused.

    Only ASCII letters, digits and a few signs pass, so no name can hold markup, a path, a formula, a
    character that is not seen, or a letter of another script that looks like a Latin one.
    """
    known = models.find(name) if name else None
    if known is not None:
        return known.name
    if not _MODEL.fullmatch(name) or ".." in name:
        raise Refused("name", f"the model name {shown(name)} cannot be listed: {FORM}")
    return name


def check_user(name: str) -> str:
    """Raises Refused for what no account of the Hub is called."""
    if not _USER.fullmatch(name):
        raise Refused("name", f"the user name {shown(name)} cannot be listed")
    return name


def shown(text: str, length: int = 60) -> str:
    """A hostile text for a message: quoted, everything beyond printable ASCII escaped, bounded."""
    cut = text if len(text) <= length else text[:length] + "…"
    return ascii(cut).replace("\\u2026", "…")


def skeleton(name: str) -> str:
    """Equal for names that the eye takes for one another: `Qwen3-8B`, `qwen3_8b` and `Qwen3-8b`.

    Separators count only between digits, where they tell `1.5B` from `15B`.
    """
    text = re.sub(r"(?<=\d)[._+\s-]+(?=\d)", "·", name.casefold())
    text = re.sub(r"[._+\s-]", "", text)
    for look, same in (("0", "o"), ("1", "l"), ("i", "l"), ("5", "s"), ("rn", "m"), ("vv", "w")):
        text = text.replace(look, same)
    return text


def refuse_lookalike(name: str, listed: set[str]) -> None:
    """Raises Refused if `name` is not listed but could be taken for a name that is."""
    if name in listed:
        return
    mine = skeleton(name)
    for other in sorted(listed):
        if skeleton(other) == mine:
            raise Refused(
                "name",
                f"the model name {shown(name)} looks like {shown(other)}, which is listed: "
                "take that very name if it is the same model, else one that cannot be mistaken",
            )


def reserved() -> set[str]:
    """Names that are known whether or not they are listed: the models of the paper."""
    return set(models.models())


def size_of(name: str) -> float | None:
    """Billions of parameters: the table's, else what the name says (`Qwen3-8B`), else None."""
    known = models.find(name)
    if known is not None:
        return known.params_b
    found = _SIZE.search(name.rpartition("/")[2])
    return float(found.group(1)) if found else None


def family_of(name: str) -> str:
    """The first word of the name without its version: `Qwen3-8B` → Qwen, `ToolRL-DR-Full` → ToolRL."""
    first = re.split(r"[-_/+]", name.rpartition("/")[2])[0]
    stem = re.sub(r"[\d.]+$", "", first)
    return stem if len(stem) > 1 else first
