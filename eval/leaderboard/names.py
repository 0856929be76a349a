"""Names on the board: what a model and a user may be called, and when two names look alike."""

import re
from collections.abc import Collection, Iterable

from robustbench_tc.eval import models

from .refusal import Refused

_MODEL = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,38}/)?[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,62}[A-Za-z0-9+])?")
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d{1,5}(?:\.\d{1,3})?)[bB](?![A-Za-z0-9])")

LOCAL = "local"
"""Everybody's name on a laptop."""

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


_NUMBER = re.compile(r"v?\d{1,8}|v\d{1,4}[a-z]?|\d{1,4}(?:\.\d{1,4})+|v\d{1,4}(?:\.\d{1,4})*")
_RELEASE = frozenset(
    "alpha beta rc preview latest new newest next final official original release released update updated "
    "exp experimental stable ga snapshot nightly".split()
)
_TIER = frozenset("pro plus max turbo ultra mini nano lite flash large xl small instruct chat it".split())
_MAKERS = frozenset(
    "openai qwen alibaba meta google deepseek anthropic mistral mistralai microsoft nvidia".split()
)

OWN_NAME = "list it under the very name of the model that was asked, or under your own (`YOU/name`)"


def refuse_version(name: str, known: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raises Refused for a name that reads as an official version of somebody else's model.

    `known`: the models of the paper; `others`: names that other users have listed. Such a name is theirs with
    nothing but versions, dates and words of a release around it (`Qwen3-8B-v2`), for known models also words
    of a product line and makers' names (`openai-o4-mini`, `Qwen3-8B-Max`). A name under an organisation is
    that organisation's (`check_organisation`).
    """
    if "/" in name:
        return
    for model, words in (
        *((one, _RELEASE | _TIER | _MAKERS) for one in sorted(known)),
        # Without a number it names no certain model: whoever lists `gpt` keeps nobody from `gpt-5`.
        *((one, _RELEASE) for one in sorted(others) if any(sign.isdigit() for sign in one)),
    ):
        added = _added(name, model.rpartition("/")[2])
        if added and all(_NUMBER.fullmatch(word) or word.rstrip("0123456789") in words for word in added):
            raise Refused(
                "name",
                f"the model name {shown(name)} reads as a version of {shown(model)}, which is another's: "
                f"{OWN_NAME}",
            )


def _added(name: str, model: str) -> list[str]:
    """The words that `name` has beyond `model`, wherever they stand; none where it is not `model` with
    more."""
    said, wanted = _words(name), _words(model)
    extra = list(said)
    at = 0
    for word in said:
        if at < len(wanted) and skeleton(word) == skeleton(wanted[at]):
            extra.remove(word)
            at += 1
    if at == len(wanted):
        return extra
    mine = skeleton(model)
    for end in range(len(name) - 1, 1, -1):  # without a sign between them: Qwen3-8Bv2
        inside_a_number = re.match(r"\d?[._]?\d", name[end - 1 :])
        if skeleton(name[:end]) == mine and not inside_a_number:
            return _words(name[end:])
    return []


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[-_+\s]|(?<!\d)\.|\.(?!\d)", name.casefold()) if word]


def check_organisation(name: str, user: str, member_of: Collection[str]) -> None:
    """Raises Refused for a name under an organisation (`org/model`) that the user does not belong to.

    `member_of`: the user's organisations on the Hub; the user's own name counts too. On a laptop, where
    everybody is `local`, any will do: nobody else submits there.
    """
    organisation, slash, _ = name.partition("/")
    if not slash or user == LOCAL:
        return
    mine = {one.casefold() for one in (user, *member_of)}
    if organisation.casefold() not in mine:
        raise Refused(
            "name",
            f"the model name {shown(name)} is under {shown(organisation)}, of which {user} is no member "
            "on the Hub: take the name without it, or your own account in its place",
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
