"""Reference agents that one thing leads astray: a disturbed registry, another language, a dose, a mixture.

Each answers with gold but in the rows that it fails on; what it does there is `base.weak`'s `instead`.
"""

import hashlib
import re
from collections.abc import Callable, Mapping

from robustbench_tc import taxonomy
from robustbench_tc.languages import value_map
from robustbench_tc.schema import CONTROL_TOOLS, Call, Json

from ..prompts.calls import DECLINED
from ..score import ordered_call, scoring_tools
from ..score.error_modes import distractors
from ..score.ghosts import names_a_ghost
from ..score.golden import concrete, with_surfaces
from ..score.tools import types_before
from .base import JUNK, REFUSAL, REPORT, Agent, AgentContext, report, weak

_GHOST = re.compile(
    r"(?:ask me about|question about|speak of|Please use|with the tool|you to call|for this is) ([\w.-]+?)"
    r"(?= |,|\.(?:\s|$))"
)
"""How the types' words name a tool."""

_NUMBER = re.compile(r"(?<![\d.,])\d+(?:\.\d+)?(?= (?:ms|s)\.\Z)|(?<=\$)\d+\.\d+(?=\.\Z)")
"""The number of the offer that a description ends with."""

WEAK = {"realistic_typos": 0, "same_name_D": 1, "CD": 2}
"""Type → the class of samples that is lost under it, alone or mixed with others."""

AFTER_ERROR = 3
"""The class that is lost once a call was answered with an error."""

TOGETHER = 4
"""The class that is lost under two of these at once, and under none alone."""


def _of(code: str) -> Callable[[AgentContext], bool]:
    return lambda scene: scene.row.type_code == code


def _trait(scene: AgentContext, name: str) -> str:
    """What the row's type states under this name; "" where it states nothing."""
    code = scene.row.type_code
    return str(taxonomy.get(code).traits.get(name, "")) if taxonomy.known(code) else ""


def _clean_gold(scene: AgentContext) -> tuple[Call, ...]:
    """The clean row's answer: as if nothing had been changed."""
    return AgentContext(scene.clean, scene.clean, False).gold


# --- whether to call at all, and whom -----------------------------------------------------------------------


def _old_types(scene: AgentContext) -> tuple[Call, ...]:
    """The gold, a parameter that was declared as no text given in the type that it had."""
    old = types_before(scene.row, scene.clean)
    return tuple(
        Call(
            call.name,
            {key: _typed(value, old.get((call.name, key))) for key, value in call.parameters.items()},
        )
        for call in scene.gold
    )


def _typed(value: Json, kind: object) -> Json:
    """The value that a text stands for in the type `kind`; None: it is a text."""
    if kind in ("integer", "number"):
        return int(value) if kind == "integer" else float(value)
    if kind == "boolean":
        return value == "yes"
    return value if kind is None else [part.strip() for part in value.split(",")]


def _some_call(scene: AgentContext) -> tuple[Call, ...]:
    """The gold; where there is none, the first tool other than the control tools, without arguments."""
    listed = (tool.name for tool in scene.row.tools if tool.name not in CONTROL_TOOLS)
    return scene.gold or tuple(Call(name, {}) for name in listed)[:1]


def _gold_has_gone(scene: AgentContext) -> bool:
    """Whether no tool of the clean row's first answer is listed any more."""
    listed = {tool.name for tool in scene.row.tools}
    return all(call.name not in listed for call in scene.clean.golden_answers[0])


def ghost(scene: AgentContext) -> str | None:
    """The tool that the row's messages name, beyond the clean ones, and nobody registered."""
    if not names_a_ghost(scene.row.type_code):
        return None
    before = "\n".join(message.content for message in scene.clean.messages)
    listed = {tool.name for tool in scene.row.tools}
    found = (name for message in scene.row.messages for name in _GHOST.findall(message.content))
    return next((name for name in found if name not in before and name not in listed), None)


# --- tools that came in -------------------------------------------------------------------------------------


def _first_new(scene: AgentContext) -> tuple[Call, ...]:
    known = {tool.name for tool in scene.clean.tools}
    new = next(tool for tool in scene.row.tools if tool.name not in known)
    return (Call(new.name, dict.fromkeys(new.properties, JUNK)),)


def _is_noisy(scene: AgentContext) -> bool:
    """Whether noise touches the first golden answer."""
    changed = scene.row.golden_answers[0] != scene.clean.golden_answers[0]
    return scene.row.type_code.startswith("rot_") and changed


def _is_cut(short: str, name: str) -> bool:
    """Whether `short` is `name` with letters left out."""
    letters = iter(name)
    return len(short) < len(name) and all(letter in letters for letter in short)


def _lookalikes(scene: AgentContext) -> tuple[Call, ...]:
    """The golden calls at the tools that came in beside the gold ones, with the same parameters."""
    gold = {call.name for call in scene.gold}
    calls = []
    for call in scene.gold:
        meant = next(tool for tool in scene.row.tools if tool.name == call.name)
        others = (t.name for t in scene.row.tools if t.name not in gold and t.parameters == meant.parameters)
        near = (name for name in others if name.startswith(call.name) or _is_cut(call.name, name))
        calls.append(Call(next(near, call.name), call.parameters))
    return tuple(calls)


# --- what an offer says -------------------------------------------------------------------------------------


def _designed(design: str) -> Callable[[AgentContext], bool]:
    return lambda scene: _trait(scene, "design") == design


def _other_of_the_pair(scene: AgentContext) -> tuple[Call, ...]:
    (name,) = distractors(scene.row, scene.clean) or {""}
    return tuple(Call(name, call.parameters) for call in scene.gold)


def _smaller_number_misleads(scene: AgentContext) -> bool:
    """Whether the other tool of a pair in mixed units has the smaller bare number."""
    if _trait(scene, "design") != "unit":
        return False
    gold, (other,) = scene.gold[0].name, distractors(scene.row, scene.clean)
    numbers = {
        tool.name: float(found.group())
        for tool in scene.row.tools
        if tool.name in (gold, other) and (found := _NUMBER.search(tool.description))
    }
    return numbers[other] < numbers[gold]


# --- doses, mixtures, context -------------------------------------------------------------------------------


def _dose(series: str, fails: Callable[[float], bool]) -> Callable[[AgentContext], bool]:
    """Whether the row is one of the series' doses that the agent fails on."""

    def at(scene: AgentContext) -> bool:
        code = scene.row.type_code
        kind = taxonomy.get(code) if taxonomy.known(code) else None
        return kind is not None and kind.series == series and kind.dose is not None and fails(kind.dose)

    return at


def sample_class(clean_id: str) -> int:
    """Which of eight classes a sample is of: it depends on its clean id alone."""
    return hashlib.sha256(clean_id.encode()).digest()[0] % 8


def _met(scene: AgentContext) -> list[int]:
    """Classes that are lost here. An error is known only once it came: a row that will be answered with one
    asks in the same words."""
    code = scene.row.type_code
    met = [WEAK[part] for part in taxonomy.parts(code) or (code,) if part in WEAK]
    return met + [AFTER_ERROR] * scene.after_error


def _is_lost_together(scene: AgentContext) -> bool:
    met = _met(scene)
    return sample_class(scene.row.clean_id) in ([*met, TOGETHER] if len(met) > 1 else met)


def _has_earlier(scene: AgentContext) -> bool:
    """Whether closed exchanges with an answer stand before the request."""
    return bool(_trait(scene, "tokens")) and any(one.role == "assistant" for one in scene.row.messages)


def _ordered(scene: AgentContext) -> tuple[Call, ...] | str:
    """The call that a result orders."""
    ordered = ordered_call(scene.row) if scene.after_result else None
    return report(scene) if ordered is None else (ordered,)


def _in_the_users_words(scene: AgentContext) -> tuple[Call, ...]:
    golden = with_surfaces(scene.row.golden_answers[0], value_map(scene.row))
    return concrete(golden, scoring_tools(scene.row, scene.clean), source=scene.row.source)


ASTRAY: Mapping[str, Agent] = {
    # the pack language
    "echoes-user-language": weak(
        "answers with gold, and leaves values as the user wrote them in another language",
        lambda s: bool(value_map(s.row)),
        _in_the_users_words,
    ),
    # the pack abstention
    "always-calls": weak(
        "answers with gold, and calls the first tool where no call is right",
        lambda s: not any(s.row.golden_answers),
        _some_call,
    ),
    "never-calls": Agent(
        "says that no tool fits, whatever it is asked",
        lambda s: DECLINED,
        lambda s: () in s.row.golden_answers,
    ),
    "takes-what-is-left": Agent(
        "answers with gold, and where its tools are not listed calls the first that is",
        lambda s: _some_call(s) if _gold_has_gone(s) else s.gold,
        lambda s: any(s.row.golden_answers) or not _gold_has_gone(s),
    ),
    "invents-values": weak(
        "answers with gold, and makes up a value that the request does not say",
        _of("missing_value"),
        _clean_gold,
    ),
    # the pack context: each fails on exactly its rows, `context_*`, `injected_result`, errors that come twice
    "stuck-in-the-past": weak(
        "answers with gold, but repeats its first answer where other exchanges stand before the request",
        _has_earlier,
        lambda s: (
            "As I said before: " + next(one.content for one in s.row.messages if one.role == "assistant")
        ),
        otherwise=report,
    ),
    "obeys-injection": Agent(
        "answers with gold, and makes the call that a result orders",
        _ordered,
        lambda s: True,
    ),
    "gives-up-on-second-error": weak(
        "answers with gold, repeats its call after one error, and apologises after two",
        lambda s: s.errors > 1,
        lambda s: REPORT if s.after_result else REFUSAL,
        otherwise=report,
    ),
    # the pack registry
    "calls-ghosts": weak(
        "answers with gold, and calls a tool that is named and not registered",
        lambda s: ghost(s) is not None,
        lambda s: (Call(ghost(s) or "", {}),),
    ),
    "declines-ghosts": Agent(
        "answers with gold, and calls nothing where a tool is named that is not registered",
        lambda s: s.gold if ghost(s) is None else DECLINED,
        lambda s: ghost(s) is None or () in s.row.golden_answers,
    ),
    "keeps-old-types": weak(
        "answers with gold, and gives numbers, lists and truth values where a text is asked for instead",
        _of("type_shift"),
        _old_types,
    ),
    "skips-prerequisites": weak(
        "answers with gold, and makes the call that needs a token before the one that fetches it",
        _of("prerequisite"),
        _clean_gold,
    ),
    "drowns-in-floods": weak(
        "answers with gold, and in a flood takes the first tool that came with it",
        lambda s: s.row.type_code.startswith("flood_"),
        _first_new,
    ),
    "repairs-noisy-names": weak(
        "answers with gold, and writes noisy names as they would be without noise",
        _is_noisy,
        _clean_gold,
    ),
    # the pack offers: what a model may fail to do is to read the offers or which quality is asked for, to
    # convert a unit, to look whether the better offer can serve
    "keeps-to-the-core-offer": weak(
        "answers with gold, and where offers are swapped with the tool that was the better one before",
        _designed("swap"),
        _other_of_the_pair,
    ),
    "ignores-the-wish": weak(
        "answers with gold, and where price and time stand against each other with the tool that is better "
        "in what was not asked for",
        _designed("inv"),
        _other_of_the_pair,
    ),
    "misconverts-units": weak(
        "answers with gold, and where units are mixed with the tool that is dearer or slower",
        _designed("unit"),
        _other_of_the_pair,
    ),
    "overlooks-what-is-missing": weak(
        "answers with gold, and where one of two tools lacks a parameter with the wrong one of the two",
        _designed("moot"),
        _other_of_the_pair,
    ),
    "compares-bare-numbers": weak(
        "answers with gold, and where units are mixed with the tool whose number is smaller",
        _smaller_number_misleads,
        _other_of_the_pair,
    ),
    # the pack severity: each fails from a known dose of one series on, and nowhere else
    "stumbles-at-three-slips": weak(
        "answers with gold, and says nothing to a request with three or more slips made by rule",
        _dose("typos", lambda dose: dose >= 3),
        lambda s: "",
    ),
    "ignores-small-savings": weak(
        "takes the dearer look-alike where it costs less than twice as much",
        _dose("factor", lambda dose: dose < 2),
        _lookalikes,
    ),
    "needs-three-letters": weak(
        "takes the readable look-alike where the right tool's name keeps fewer than three letters of a part",
        _dose("abbreviated", lambda dose: dose < 3),
        _lookalikes,
    ),
    # the pack mixed: losses that add up, and some that cost more
    "additive-weakness": weak(
        "says nothing to an eighth of the samples under each of three types and after an error, mixed or not",
        lambda s: sample_class(s.row.clean_id) in _met(s),
        lambda s: "",
    ),
    "super-additive-weakness": weak(
        "as additive-weakness, and says nothing to a further eighth wherever two of these come together",
        _is_lost_together,
        lambda s: "",
    ),
}
