"""What an answer of one's own tools lacks, in words: `amount: 19.9 ± 0.01 wanted, 25 given`."""

from collections.abc import Iterator, Sequence

from robustbench_tc import sources
from robustbench_tc.eval.score import matchers
from robustbench_tc.eval.score.category import read_category
from robustbench_tc.safe_text import shortened
from robustbench_tc.schema import Call, GoldenAnswer, Json, Sample, Tool, Verdict, dumps

from .score.own import first_wrong

LENGTH = 80
"""Characters of what is wanted, and of what was given, that are said."""


def unmet(verdict: Verdict, row: Sample) -> str | None:
    """The first argument that is wrong; None where no argument is what is wrong, and for other sources."""
    if row.source != sources.OWN or verdict.correct or not verdict.calls:
        return None
    said = read_category(row.category)
    for golden in row.golden_answers:
        if len(golden) == len(verdict.calls):
            for call, one in _pairs(verdict.calls, golden, row.tools, said.ordered, said.extra):
                if call.name == one.name and (found := first_wrong(call, one, row.tools, said.extra)):
                    return _sentence(*found, call, one)
    return None


def _pairs(
    calls: Sequence[Call], golden: GoldenAnswer, tools: Sequence[Tool], ordered: bool, extra: bool
) -> Iterator[tuple[Call, Call]]:
    """Calls beside the golden ones that they are held against; in any order: those of one name that nothing
    else fits."""
    if ordered or len(golden) == 1:
        yield from zip(calls, golden, strict=True)
        return

    def fits(call: Call, one: Call) -> bool:
        return call.name == one.name and first_wrong(call, one, tools, extra) is None

    left = [call for call in calls if not any(fits(call, one) for one in golden)]
    for one in golden:
        if not any(fits(call, one) for call in calls):
            yield from ((call, one) for call in left if call.name == one.name)


def _sentence(reason: str, key: str, call: Call, golden: Call) -> str:
    name, value = shortened(key, LENGTH), call.parameters.get(key)
    given = shortened(dumps(value), LENGTH) if key in call.parameters else "nothing"
    if reason == "unexpected_parameter":
        return f"{name}: not wanted, {given} given"
    wanted = shortened(" or ".join(map(describe, golden.parameters[key])), LENGTH)
    return f"{name}: {wanted} wanted, {given} given"


def describe(expected: Json) -> str:
    """What a matcher, or a plain value with matchers in it, accepts."""
    which = matchers.kind(expected)
    inner = expected[which] if which else expected
    match which:
        case "any":
            return "anything"
        case "number":
            tolerance = expected.get("tolerance")
            return f"{dumps(inner)} ± {dumps(tolerance)}" if tolerance else dumps(inner)
        case "date":
            return f"the day {inner}"
        case "regex":
            return f"a text with /{inner}/"
        case "set":
            return f"{describe(inner)} in any order"
        case "one_of":
            return " or ".join(map(describe, inner))
        case "exact":
            return dumps(inner)
    if isinstance(inner, dict):
        return f"{{{', '.join(f'{dumps(key)}: {describe(value)}' for key, value in inner.items())}}}"
    if isinstance(inner, list):
        return f"[{', '.join(map(describe, inner))}]"
    return dumps(inner)
