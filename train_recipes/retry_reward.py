"""The reward of a rollout in which a call met an error: what was asked first counts, what came of it more.

    R   = 0.4 · R1 + 0.6 · R2 - penalty · charges, never below the minimum
    R1    ToolRL's reward (eval/score/reward.py) of the worst attempt up to the one that met the error
    R2    transient error   ToolRL's reward of the attempt after it; the minimum where that makes no call
          permanent error   4 a report, 1 gold's calls again, else the minimum

A permanent error (a 401, or one whose text says that trying again cannot help) is answered rightly by a
report: a complete response without a call that names what was refused and does not claim success. One charge
is

- each call more than gold has in the attempt after the error, and each call after that attempt: it was
  answered, so the next one is carried out a second time;
- a wrong attempt repeated after a transient error: all its wrong calls again, with nothing more of gold;
- a last answer that claims success where no call succeeded.

Calls are compared as multisets: the order of a block's lines changes nothing. Without an error, R is
ToolRL's reward of the first attempt less the calls after it. A plain mean of R1 and R2 would rank "gold, gold
again after a 401" above "a wrong value, then a report"; tests/train_recipes/retry_order.py has the intended
order.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from robustbench_tc.eval.score import reward as toolrl
from robustbench_tc.eval.score.told import told

FIRST, SECOND = 0.4, 0.6
"""Weights of R1 and R2."""

_PERMANENT = re.compile(
    r"\b(?:401|403|410)\b|unauthori[sz]ed|forbidden|permanent|revoked"
    r"|(?:do not|don't|never) (?:retry|try again)|invalid (?:credential|token|(?:api )?key)"
    r"|(?:credential|token|(?:api )?key)s? (?:\w+ ){0,4}(?:invalid|expired)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:40[13]|unauthori[sz]ed|forbidden|credentials?|passwords?|tokens?|api keys?|auth\w*|log ?ins?"
    r"|sign(?:ed)? in|permissions?|access|den(?:y|ied)|revoked|expired)\b"
)
"""Words for what a tool refuses with a permanent error."""

_ANSWERED = re.compile(r"\b(?:answered|returned|replied|responded)\b")
"""What a tool did is no claim of the model's."""


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    penalty: float = 0.5,
    **variant: Any,
) -> dict[str, float]:
    """The reward as verl's managers call it; `variant` goes to ToolRL's reward.

    The agent loop leaves its attempts in `extra_info`: `attempts`, the model's texts in order, and
    `error_attempt`, the index of the one that met the error, or -1. Without them `solution_str` is the one
    attempt. Beside the score and ToolRL's parts of the attempt after the error (without one: of the first)
    the result has R1, R2, whether an error was met, whether the model gave up or reported, how often it tried
    again, and what was charged.
    """
    info = extra_info or {}
    attempts = [str(text) for text in info.get("attempts") or [solution_str]]
    met = -1 if info.get("error_attempt") is None else int(info["error_attempt"])
    fault = info.get("retry") or {}

    def score(text: str) -> dict[str, float]:
        return toolrl.compute_score(data_source, _in_order(text, ground_truth), ground_truth, info, **variant)

    if met < 0:
        parts, surplus = score(attempts[0]), 0
        if fault.get("position", 1) == 1:  # a later position needs the calls before it
            surplus = sum(_number(text) for text in attempts[1:])
        return _result(parts, parts["score"], score("")["score"], penalty * surplus)
    least, most = score("")["score"], score(ground_truth)["score"]
    first = min(score(text)["score"] for text in attempts[: met + 1])
    after = attempts[met + 1 :]
    second = after[0] if after else ""
    parts, called = score(second), makes_call(second)
    lasting = permanent(fault)
    reports = lasting and is_report(second, attempts[met])
    again = _same(second, ground_truth)
    if lasting:
        earned = most if reports else least + 4 / 7 * (most - least) if again else least  # 1 in [-3, 4]
    else:
        earned = parts["score"] if called else least
    wanted = len(toolrl.decode_calls(ground_truth) or [])
    charges = max(0, _number(second) - wanted) + sum(_number(text) for text in after[1:])
    if not lasting and _repeats(second, attempts[met], ground_truth):
        charges += int(parts["correctness_score"] <= score(attempts[met])["correctness_score"])
    failed = lasting or not any(makes_call(text) for text in after)
    charges += int(failed and bool(after) and not makes_call(after[-1]) and claims_success(after[-1]))
    return _result(
        parts,
        FIRST * first + SECOND * earned,
        least,
        penalty * charges,
        first_score=first,
        second_score=earned,
        met_error=1.0,
        gave_up=float(not called and not reports),
        reported=float(reports),
        retries=float(sum(makes_call(text) for text in after)),
    )


def single_turn(parts: Mapping[str, float]) -> dict[str, float]:
    """ToolRL's reward of a single turn with the keys of this one: a batch may hold both."""
    return _result(parts, parts["score"], parts["score"], 0.0)


def permanent(fault: Mapping[str, Any]) -> bool:
    """Whether trying again cannot help: a 401, or an error text that says so."""
    return fault.get("type_code") == "transient_auth_error" or bool(
        _PERMANENT.search(str(fault.get("error", "")))
    )


def is_report(text: str, refused: str) -> bool:
    """Whether an answer reports a refusal: complete, without a call, and naming what was refused.

    Named is a tool of the refused attempt, or the refusal in words. That the rest of the response is true is
    not checked; that it claims success is.
    """
    answer = toolrl.assistant_text(text)
    if makes_call(answer) or not toolrl.has_format(answer, calls=False, reply=True):
        return False
    said = _words(reply(answer))
    tools = {_words(call["name"]) for call in calls_in(refused) if call["name"].strip()}
    named = bool(_REFUSED.search(said)) or any(f" {name} " in f" {said} " for name in tools)
    return named and not claims_success(answer)


def claims_success(text: str) -> bool:
    """Whether an answer tells the user that the work is done (English, by rule)."""
    return told(_ANSWERED.sub("says", reply(text))).kind == "done"


def makes_call(text: str) -> bool:
    """Whether an attempt opens a tool-call block: broken calls are attempts too."""
    return "<tool_call>" in text


def _result(
    parts: Mapping[str, float], earned: float, least: float, charge: float, **more: float
) -> dict[str, float]:
    """Every rollout has the same keys: verl makes columns of them."""
    total = max(least, earned - charge)
    names = ("first_score", "second_score", "met_error", "gave_up", "reported", "retries")
    if not more:
        more = {"first_score": earned}
    return dict(parts) | {"score": total, "charged": earned - total} | {n: more.get(n, 0.0) for n in names}


def reply(text: str) -> str:
    """What the user reads of an answer: what stands in its response, or outside its thought."""
    if "<response>" in text:
        return text.partition("<response>")[2].partition("</response>")[0].strip()
    return text.rpartition("</think>")[2].strip()


def _words(text: str) -> str:
    """Words of a text or a name (`find_ferry`, `findFerry`) in small letters, one blank between."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return " ".join(re.findall(r"\w+", parted.replace("_", " ").lower()))


def calls_in(text: str) -> list[dict[str, Any]]:
    """The calls of the first block, a JSON object with a name on each line; other lines are passed over."""
    found = []
    for line in text.partition("<tool_call>")[2].partition("</tool_call>")[0].split("\n"):
        try:
            call = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            found.append(call)
    return found


def _number(text: str) -> int:
    """How many calls the environment carries out for an attempt; a block without a right line is one."""
    return max(1, len(calls_in(text))) if makes_call(text) else 0


def _same(text: str, gold: str) -> bool:
    """Whether an attempt makes gold's calls, in any order."""
    given, wanted = toolrl.decode_calls(text), list(toolrl.decode_calls(gold) or [])
    if not wanted or given is None or len(given) != len(wanted):
        return False
    for call in given:
        if call not in wanted:
            return False
        wanted.remove(call)
    return True


def _repeats(text: str, before: str, gold: str) -> bool:
    """Whether an attempt makes all wrong calls of the one before again, perhaps with more parameters.

    Blanks and case of texts are passed over: a changed blank is no new try.
    """
    right = toolrl.decode_calls(gold) or []
    wrong = [call for call in calls_in(before) if call not in right]
    given = calls_in(text)
    return bool(wrong) and all(any(_contains(new, call) for new in given) for call in wrong)


def _contains(call: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether `call` has the name and all parameters of `other`."""
    given, wanted = call.get("parameters"), other.get("parameters")
    if call["name"] != other["name"]:
        return False
    if not isinstance(given, dict) or not isinstance(wanted, dict):
        return bool(_folded(given) == _folded(wanted))
    return all(
        name in given and bool(_folded(given[name]) == _folded(value)) for name, value in wanted.items()
    )


def _folded(value: Any) -> Any:
    return " ".join(value.split()).casefold() if isinstance(value, str) else value


def _in_order(text: str, gold: str) -> str:
    """An attempt with the lines of its block in an order that does not depend on the model's.

    ToolRL's reward pairs each call of gold with the best one left, so for calls of one tool it can depend on
    their order. Wrong calls come first, sorted; then those that gold has, in gold's order.
    """
    given, wanted = toolrl.decode_calls(text), toolrl.decode_calls(gold)
    if given is None or wanted is None or len(given) < 2:
        return text
    before, _, rest = text.partition("<tool_call>")
    block, close, tail = rest.partition("</tool_call>")
    lines = block.strip().split("\n")

    def place(pair: tuple[Any, str]) -> tuple[int, str]:
        value, line = pair
        return (wanted.index(value), "") if value in wanted else (-1, _canonical(value, line))

    ordered = [line for _, line in sorted(zip(given, lines, strict=True), key=place)]
    opening = block[: len(block) - len(block.lstrip())]
    closing = block[len(block.rstrip()) :]
    return before + "<tool_call>" + opening + "\n".join(ordered) + closing + close + tail


def _canonical(value: Any, line: str) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except RecursionError:
        return line
