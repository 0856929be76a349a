r"""Regular expressions of a user, searched by RE2: in time that grows with the text alone.

A pattern is parsed by Python's `re` and means what Python says; what is parsed is written again as RE2 reads
it. What RE2 has no form for is refused: look-ahead and look-behind, references to groups, possessive repeats,
atomic groups, repeats of more than 1,000. One difference is left: `\b` and `\B` know the letters and digits
of ASCII alone.
"""

import re
import unicodedata
import warnings
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, TypeAlias

import re2

LONGEST = 500
"""Characters of a pattern."""

Node: TypeAlias = tuple[Any, Any]
"""An operation of a parsed pattern, and its operands."""

_parser: Any = import_module("re._parser")

_REFUSED = {
    "ASSERT": "look-ahead and look-behind",
    "ASSERT_NOT": "look-ahead and look-behind",
    "GROUPREF": "references to groups",
    "GROUPREF_EXISTS": "references to groups",
    "POSSESSIVE_REPEAT": "possessive repeats",
    "ATOMIC_GROUP": "atomic groups",
}
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_PLACES = {
    "AT_BEGINNING": r"\A",
    "AT_BEGINNING_STRING": r"\A",
    "AT_BOUNDARY": r"\b",
    "AT_NON_BOUNDARY": r"\B",
    "AT_END": r"(?:\n?\z)",  # Python's `$` stands before a last line end too
    "AT_END_STRING": r"\z",
}
_PLACES_IN_LINES = _PLACES | {"AT_BEGINNING": "(?m:^)", "AT_END": "(?m:$)"}


def found_in(pattern: str, text: str) -> bool:
    """Whether a pattern is found in a text; one that cannot be used is found in none."""
    try:
        search = compiled(pattern)
    except ValueError:
        return False
    # RE2 reads UTF-8, which has no half surrogate pairs.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return search.search(unicodedata.normalize("NFC", whole)) is not None


@lru_cache(maxsize=4_096)
def compiled(pattern: str) -> Any:
    """The pattern as RE2 has it. Raises ValueError: in one phrase why it cannot be used."""
    options = re2.Options()
    options.log_errors = False
    tree = parsed(pattern)
    try:
        return re2.compile(written(tree, tree.state.flags), options)
    except re2.error as error:
        raise ValueError(f"cannot be used by RE2: {error.args[0].decode(errors='replace')[:100]}") from None


def parsed(pattern: str) -> Any:
    """The nodes of a pattern. Raises ValueError."""
    if not pattern:
        raise ValueError("is empty: write {any: true} for any value")
    if len(pattern) > LONGEST:
        raise ValueError(f"has {len(pattern):,} characters: at most {LONGEST} are allowed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return _parser.parse(unicodedata.normalize("NFC", pattern))
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ValueError(f"is no regular expression: {str(error)[:100]}") from None


def written(nodes: Iterable[Node], flags: int) -> str:
    """Nodes as a group of RE2. Raises ValueError for what it has no form for."""
    return f"(?:{''.join(_written(str(name), operands, flags) for name, operands in nodes)})"


def _written(name: str, operands: Any, flags: int) -> str:
    match name:
        case "LITERAL":
            return f"[{_members([(name, operands)], flags)}]"
        case "NOT_LITERAL":
            return f"[^{_members([('LITERAL', operands)], flags)}]"
        case "IN":
            return f"[{_members(operands, flags)}]"
        case "ANY":
            return "(?s:.)" if flags & re.DOTALL else "."
        case "AT":
            return (_PLACES_IN_LINES if flags & re.MULTILINE else _PLACES)[str(operands)]
        case "BRANCH":
            return f"(?:{'|'.join(written(one, flags) for one in operands[1])})"
        case "SUBPATTERN":
            _, added, removed, inner = operands
            return written(inner, (flags | added) & ~removed)
        case "MAX_REPEAT" | "MIN_REPEAT":
            low, high, inner = operands
            most = "" if high == _parser.MAXREPEAT else high
            return f"{written(inner, flags)}{{{low},{most}}}{'?' if name == 'MIN_REPEAT' else ''}"
    raise ValueError(f"uses {_REFUSED.get(name, name)}, which RE2 does not have: write it without")


def _members(items: Iterable[Node], flags: int) -> str:
    """What stands between the brackets of a class of characters."""
    found = []
    for name, value in items:
        match str(name):
            case "NEGATE":
                found.append("^")
            case "CATEGORY":
                found.append(_category(_CATEGORIES[str(value)], flags & re.ASCII))
            case _:
                low, high = value if str(name) == "RANGE" else (value, value)
                found.append(f"\\x{{{low:x}}}-\\x{{{high:x}}}")
                if flags & re.IGNORECASE:
                    inside = (char for char in _cased() if low <= ord(char) <= high)
                    found += [_same_letter(char, flags & re.ASCII) for char in inside]
    return "".join(found)


@cache
def _category(escape: str, flags: int) -> str:
    r"""The characters of `\w` and the like as ranges: RE2's own are those of ASCII, or of another Unicode."""
    runs = re.finditer(f"{escape}+", "".join(map(chr, range(0x110000))), flags)
    return "".join(f"\\x{{{ord(run[0][0]):x}}}-\\x{{{ord(run[0][-1]):x}}}" for run in runs)


@cache
def _cased() -> str:
    """Every character that has another case."""
    return "".join(char for char in map(chr, range(0x110000)) if char.lower() != char or char.upper() != char)


@cache
def _same_letter(char: str, flags: int) -> str:
    """The characters that Python takes for equal to a letter where case does not count."""
    same = re.findall(re.escape(char), _cased(), flags | re.IGNORECASE)
    return "".join(f"\\x{{{ord(one):x}}}" for one in same)
