"""Lost samples to read: of each component one that was right on clean and is wrong when perturbed, with both
replies."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.builders import plain
from robustbench_tc.eval.stats import failures
from robustbench_tc.eval.stats.failures import Judged
from robustbench_tc.safe_text import safe
from robustbench_tc.schema import Json, Prediction, Sample, dumps

from .pool import Cut, cut

MOST = 700
"""Characters of a text that a case shows; the browser of rows has it whole."""


class Side(msgspec.Struct, frozen=True):
    """The answer to one of the two rows."""

    name: str
    """`clean` or `perturbed`."""
    correct: bool
    verdict: str
    """What is wrong; empty where nothing is."""
    stage: str
    """The stage at which it fails, and how; empty where it is right."""
    steps: tuple[tuple[str, Cut], ...]
    """What was replied, in order: with an injected error the first reply, the error, the second reply."""
    gold: Cut


class Case(msgspec.Struct, frozen=True):
    """A lost sample."""

    component: str
    type_code: str
    row: str
    """The id of the perturbed row."""
    request: Cut
    sides: tuple[Side, Side]


def lost(judged: Sequence[Judged], rows: Sequence[Sample]) -> tuple[Case, ...]:
    """Of each component the shortest sample that a run lost, of the core type that lost the most."""
    samples = {row.id: row for row in rows}
    asked = {
        one.prediction.id: one
        for one in judged
        if one.prediction.repeat == 0 and one.verdict is not None and one.prediction.id in samples
    }
    pairs = defaultdict(list)
    for one in asked.values():
        clean = asked.get(f"{one.prediction.clean_id}::{taxonomy.CLEAN}")
        core = one.prediction.type_code in taxonomy.codes()
        if core and clean is not None and _right(clean) and not _right(one):
            pairs[one.prediction.component].append((clean, one))
    found = []
    for component in taxonomy.COMPONENTS:
        if component in pairs:
            [(most, _)] = Counter(one.prediction.type_code for _, one in pairs[component]).most_common(1)
            of_type = [pair for pair in pairs[component] if pair[1].prediction.type_code == most]
            cases = [_case(samples, clean, one) for clean, one in of_type]
            found.append(min(cases, key=_length))
    return tuple(found)


def _right(judged: Judged) -> bool:
    return judged.verdict is not None and judged.verdict.correct


def _case(samples: dict[str, Sample], clean: Judged, perturbed: Judged) -> Case:
    row = samples[perturbed.prediction.id]
    return Case(
        component=str(row.component),
        type_code=row.type_code,
        row=row.id,
        request=_shown(plain.query(row.messages, row.golden_answers)),
        sides=(_side("clean", clean, samples), _side("perturbed", perturbed, samples)),
    )


def _side(name: str, judged: Judged, samples: dict[str, Sample]) -> Side:
    row, verdict = samples[judged.prediction.id], judged.verdict
    assert verdict is not None  # `lost` takes judged answers only
    stage = f"{verdict.stage}: {(verdict.stage_detail or '').replace('_', ' ')}" if verdict.stage else ""
    return Side(
        name=name,
        correct=verdict.correct,
        verdict=failures.said(verdict, row),
        stage=stage,
        steps=tuple((said, _shown(text)) for said, text in _steps(judged.prediction, row)),
        gold=_shown(plain.gold_call(row.golden_answers)),
    )


def _steps(prediction: Prediction, row: Sample) -> list[tuple[str, str]]:
    last = _reply(prediction.raw_output, prediction.tool_calls)
    if not prediction.injected:
        return [("reply", last)]
    first = _reply(prediction.first_output, prediction.first_tool_calls)
    return [("first reply", first), ("answered with", str(row.injected_error)), ("then", last)]


def _reply(text: str | None, native: Json) -> str:
    """A reply's text, and its native calls as they came."""
    return "\n".join(filter(None, (text, native and dumps(native)))) or "(nothing)"


def _shown(text: str) -> Cut:
    """Its beginning; characters that are not seen but obeyed are shown by their codes."""
    return cut(safe(text), MOST)


def _length(case: Case) -> tuple[int, str]:
    """How much there is to read; of cases with as much the first id."""
    texts = [case.request, *(text for side in case.sides for _, text in (*side.steps, ("", side.gold)))]
    return sum(text.total or len(text.text) for text in texts), case.row
