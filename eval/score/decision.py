"""What a reply decides where calling nothing can be right: to call, to ask, to decline, to answer in words.

The classes are flags of the verdict and never one number. A reply that parses as nothing because it is broken
(cut off, empty, a call that was begun and cannot be read) is `unparsable`: it decides nothing, and is right
on no row.
"""

import re
from collections.abc import Collection
from typing import Literal, get_args

from robustbench_tc import taxonomy
from robustbench_tc.eval.parse import Parsed
from robustbench_tc.eval.parse.cues import cues_for
from robustbench_tc.eval.parse.names import is_no_name
from robustbench_tc.eval.parse.turns import without_end_markers
from robustbench_tc.schema import CONTROL_TOOLS, Prediction, Sample, loads

from .ghosts import names_a_ghost

Decision = Literal["called", "asked", "refused", "answered", "unparsable"]
"""called: a tool other than the control tools. asked: `ask_to_user`, or words whose last sentence is a
question. refused: words that decline or say what is missing. answered: other words. unparsable: nothing that
can be read."""

DECISIONS: tuple[Decision, ...] = get_args(Decision)

_LOOKED_AT = 4_000
"""Characters of a long reply's beginning and of its end in which words are looked for."""

_CUT = frozenset({"length", "content_filter"})
"""Finish reasons of replies that their server ended."""

_TAIL = " \t\r\n\"'”’»)]}*_`~"
"""What may stand behind the sign that ends a sentence."""

_QUESTION = ("?", "？", "؟")

_OPENED = re.compile(
    r"<[|｜]?(?:\w{1,12}[:_])?(?:tool[_▁]?calls?|function[=>_ ]|invoke\b|action_start|start_action"
    r"|tools_prefix|python_(?:tag|start))|<｜tool|<tools?>|\[TOOL_CALLS\]|to=functions\.",
    re.IGNORECASE,
)
_NO_CALLS = re.compile(
    r"(?:<[|｜]?(?:\w{1,12}[:_])?tool_?calls?[|｜]?>|\[TOOL_CALLS\]|\A```\w*\n)\s*(?:\[\s*\]|none|null)\s*"
    r"(?:<[/|｜]\S{1,40}>|```|\Z)",
    re.IGNORECASE,
)
"""The marks of a format around nothing: an empty list of calls."""
_NAMED = re.compile(r"\"(?:name|function|tool)\"\s*:\s*(?:\"([^\"\n]{0,80})\"|(null))")
_ACTION = re.compile(r"^[ \t*_`#>-]*action[ \t*_`]*:[ \t*_`\"']*([^\n]*)", re.IGNORECASE | re.MULTILINE)
_ARGUMENTS = re.compile(
    r"[\"'`*]{0,3}(?:\(|[\s:,]{0,4}(?:[\"'*]{0,2}(?:argument|parameter|param|arg|kwarg"
    r"|(?:action |tool_)?input)s?[\"'*]{0,2}\s{0,4}[:=]\s{0,4})?(?:```\w*\s*)?\{)",
    re.IGNORECASE,
)
"""What begins a call's arguments, right behind its name."""
_FENCE = re.compile(r"\A```\w*\s*\n?")

_REFUSES = re.compile(
    r"\b(?:none of (?:the|these|those|my)\b|no (?:\w+ ){0,2}(?:tools?|functions?|apis?|actions?)\b"
    r"|can ?not\b|can['’]t\b|could ?n['’o]?t\b|unable\b|not able\b|not possible\b|impossible\b"
    r"|(?:do|does|did)(?:n['’]t| not) (?:have|support|provide|include|allow|offer|see|exist|fit|match"
    r"|contain|specify|say|know)"
    r"|not (?:available|supported|listed|provided|included|specified|given|stated)\b|sorry\b|apologi[sz]e"
    r"|afraid\b|(?:outside|beyond) (?:of )?(?:my|the)\b|lack(?:s|ing)?\b|missing\b|let me know\b"
    r"|need (?:to know|more|the|your|you to)\b"
    r"|please (?:\w+ )?(?:provide|tell|specify|share|give|send|confirm|clarify))"
)


def decides(row: Sample) -> bool:
    """Whether replies to the row are put into classes: calling nothing is right in it, it is asked alike, or
    it names a tool that is not there."""
    if not all(row.golden_answers) or names_a_ghost(row.type_code):
        return True
    return taxonomy.known(row.type_code) and taxonomy.get(row.type_code).may_decline


def decision(prediction: Prediction, parsed: Parsed | None, row: Sample) -> Decision:
    """The class of a reply; `parsed` is None for one that there is not (rejected, too long)."""
    if parsed is None:
        return "unparsable"
    if any(call.name not in CONTROL_TOOLS for call in parsed.calls):
        return "called"
    if any(call.name == "ask_to_user" for call in parsed.calls):
        return "asked"
    if parsed.calls:
        words = (value for call in parsed.calls for value in call.parameters.values())
        return _of_words(" ".join(value for value in words if isinstance(value, str)))
    said = _NO_CALLS.sub("[]", _final(prediction.raw_output or "", parsed))
    if prediction.finish_reason in _CUT or _is_broken(said, {tool.name for tool in row.tools}):
        return "unparsable"
    if said == "[]" or (prediction.tool_calls and not said):
        return "refused"
    return _of_words(said)


def _final(text: str, parsed: Parsed) -> str:
    """What the reply says at last: without its thought and invented turns."""
    pieces = [text[one.start : one.end] for one in parsed.segments if one.kind == "final"]
    return without_end_markers("\n".join(pieces) if parsed.segments else text).strip()


def _is_broken(said: str, names: Collection[str]) -> bool:
    """Whether a text without a call is none because a call was begun, or because it has not a word."""
    bare = _FENCE.sub("", said).rstrip("`\n ")
    if not any(sign.isalnum() for sign in bare):
        return said != "[]"
    named = [one[1] or "none" for one in _NAMED.finditer(said)]
    if _OPENED.search(said) and not (named and all(map(is_no_name, named))):
        return True
    if any(not action.strip() or _is_begun(action.strip(), names) for action in _ACTION.findall(said)):
        return True
    if bare.startswith(("{", "[{")):
        try:
            loads(bare)
        except (ValueError, RecursionError):
            return True
        if any(f'"{name}"' in bare for name in names):  # a call in a form that nobody reads
            return True
    return any(_is_cut(said, name) for name in names)


def _is_cut(said: str, name: str) -> bool:
    """Whether the arguments behind the last mention of a tool are never closed."""
    at = said.rfind(name)
    begun = _ARGUMENTS.match(said, at + len(name)) if at >= 0 else None
    if begun is None:
        return False
    depth = 0
    for sign in said[begun.end() - 1 :]:
        depth += (sign in "({") - (sign in ")}")
        if depth == 0:
            return False
    return True


def _is_begun(action: str, names: Collection[str]) -> bool:
    """Whether what stands behind `Action:` names a tool, so that a call was meant."""
    word = re.split(r"[\s(\"'`*]", action, maxsplit=1)[0]
    return word in names and not is_no_name(word)


def _of_words(said: str) -> Decision:
    if said.rstrip(_TAIL).endswith(_QUESTION):
        return "asked"
    shown = said if len(said) <= 2 * _LOOKED_AT else f"{said[:_LOOKED_AT]}\n{said[-_LOOKED_AT:]}"
    lower = shown.lower()
    if _REFUSES.search(lower) or cues_for(lower).refused.search(lower):
        return "refused"
    if any(is_no_name(action.strip()) for action in _ACTION.findall(said)):
        return "refused"
    return "answered"
