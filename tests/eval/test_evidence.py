"""Words and sentences about a run are never braver than its rows: over degenerate runs, on every surface."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from robustbench_tc import taxonomy
from robustbench_tc.eval.leaderboard import pages
from robustbench_tc.eval.leaderboard.boards import Row
from robustbench_tc.eval.stats import compare, gate, runs
from robustbench_tc.eval.stats.evidence import WIDE, Answer, answer
from robustbench_tc.eval.stats.outcomes import Outcomes
from robustbench_tc.eval.stats.values import codes_of

from ..refusals import refuses
from .leaderboard import made
from .synthetic_runs import Verdict, clean_ids, coin, pairs, write_run

LOST_AT_LEAST = 6
"""Cases that differ, all to the worse, below which no exact two-sided test rejects at 0.05."""


def number(clean_id: str) -> int:
    return int(clean_id.rpartition("_")[2])


class Kind(NamedTuple):
    """A way to be degenerate."""

    verdict: Verdict
    fields: Mapping[str, Any] = MappingProxyType({})
    components: tuple[str, ...] = taxonomy.COMPONENTS
    promised: int = 1
    """How many times as many rows the record expects."""


def every(n: int, bad: Any, well: Any) -> Callable[[str, str], Any]:
    return lambda clean_id, code: bad if (number(clean_id) + len(code)) % n == 0 else well


KINDS = {
    "nothing right": Kind(lambda c, t: False),
    "all right": Kind(lambda c, t: True),
    "a few right": Kind(lambda c, t: number(c) < 3),
    "all rejected": Kind(lambda c, t: False, {"status": lambda c, t: "rejected"}),
    "half missing": Kind(every(2, None, True)),
    "half never asked": Kind(lambda c, t: True, promised=2),
    "agent errors": Kind(every(3, False, True), {"status": every(3, "agent_error", "ok")}),
    "cut replies": Kind(every(4, False, True), {"finish_reason": every(4, "length", "stop")}),
    "one component only": Kind(lambda c, t: True, components=("action",)),
    "one component lost": Kind(lambda c, t: taxonomy.component_of(t) != "reward"),
    "one type lost": Kind(lambda c, t: t != "same_name_A"),
    "coins": Kind(coin(7)),
}


@pytest.mark.parametrize("samples", [0, 1, 3, 12, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_is_braver_than_the_evidence(kind: str, samples: int, tmp_path: Path) -> None:
    found = KINDS[kind]
    codes = {taxonomy.CLEAN, *(code for name in found.components for code in codes_of(name))}
    rows = [one for one in pairs(clean_ids({"bfcl_v3": samples})) if one[1] in codes]
    record = {"expected": found.promised * len(rows)}
    folder = write_run(tmp_path / "run", found.verdict, rows, record=record, **found.fields)
    if not rows:
        refuses("holds no predictions", runs.read, folder)
        return
    run = runs.read(folder)
    [outcomes] = runs.align([run])
    said = answer(run, outcomes)
    check_answer(said, run, outcomes)
    check_gate(run, outcomes, said)
    check_compare(
        run, write_run(tmp_path / "oracle", lambda c, t: True, rows, record={"expected": len(rows)})
    )
    check_board(said)


def check_answer(said: Answer, run: runs.Run, outcomes: Outcomes) -> None:
    """The headline and its words against the rows themselves."""
    assert len(said.sentence) <= WIDE and "nothing" not in said.sentence and "not worse" not in said.sentence
    gaps = int(outcomes.missing.sum()) + outcomes.unaccounted
    for name, one in {**said.lines, **said.types}.items():
        matched, sizes = outcomes.matched(codes_of(name))
        assert one.drop.value == pytest.approx(matched.sum() / sizes.sum())
        assert one.drop.low <= one.drop.value <= one.drop.high
        assert bool(one.why) == (one.word == "cannot tell")
        if one.word == "holds":
            assert not gaps and one.right >= 10 and one.drop.high <= 0.15 * one.before
        if one.word == "loses":
            assert (matched > 0).sum() >= LOST_AT_LEAST and one.drop.low > 0 and one.p_holm <= 0.05
        assert one.keeps is None or one.keeps <= 1 - one.drop.value / one.before + 1e-9
    heads = [one for name, one in said.lines.items() if name != "perturbed"]
    if kept := re.search(r"Keeps at least (\d+) %", said.sentence):
        held = [one.keeps or 0 for one in heads if one.word == "holds"]
        assert min(held) == int(kept[1]) / 100
        assert all(one.word != "cannot tell" for one in heads)
    if "No loss" in said.sentence:
        assert all(one.drop.low <= 0 <= one.drop.high for one in heads)
    if "Loses" in said.sentence:
        assert any(one.word == "loses" for one in (*heads, *said.types.values()))
    status, cut = run.rows["status"].tolist(), (run.rows["finish_reason"] == "length").mean()
    if "agent_error" in status or "rejected" in status or cut > 0.05:
        assert (
            said.sentence.startswith(("The agent failed", "The server rejected"))
            or "cut off" in said.sentence
        )
    assert not gaps or any("no verdict" in one for one in said.warnings)


def check_gate(run: runs.Run, outcomes: Outcomes, said: Answer) -> None:
    """The gate's line, by the same drop."""
    found = gate.judge(run)
    line = found.sentence
    assert line.startswith(
        {"pass": "passed: ", "fail": "failed: ", "inconclusive": "inconclusive: "}[found.outcome]
    )
    assert found.exit_code == {"pass": 0, "fail": 1, "inconclusive": 3}[found.outcome]
    left_out = any(note.startswith("left out") for note in found.notes)
    for one in found.lines:
        assert left_out or one.rows == said.lines[one.name].drop.n
        same = said.lines[one.name].drop
        assert left_out or (one.drop.value, one.drop.low, one.drop.high, one.drop.p) == pytest.approx(
            (same.value, same.low, same.high, same.p), abs=1e-12
        )
    if found.outcome == "pass":
        assert not int(outcomes.missing.sum()) + outcomes.unaccounted
        assert all(one.right >= 10 and one.drop.high <= max(0.05, 0.25 * one.before) for one in found.lines)
    if "agent_error" in run.rows["status"].tolist():
        assert found.outcome == "fail" and "the agent failed on" in line


def check_compare(run: runs.Run, oracle: Path) -> None:
    """Against a run that is right everywhere, nobody is better without enough cases that differ."""
    base = runs.read(oracle)
    found = compare.compare_runs(base, run)
    first, second = runs.align([base, run])
    differ = (first.correct != second.correct)[:, 1:].any(axis=1).sum()
    if "is better than" in found.verdict:
        assert differ >= LOST_AT_LEAST and found.overall["perturbed"].p < 0.05
    else:
        assert found.verdict.startswith("No significant difference")
    assert found.sentences[1] == answer(run, second).sentence


def check_board(said: Answer) -> None:
    """A run's page says the headline; its badge is grey and says so where the run cannot tell."""
    entry = made.entry(1)
    assert entry.core is not None
    words = {name: one.word for name, one in said.lines.items()}
    entry = replace(entry, core=replace(entry.core, sentence=said.sentence, words=words))
    row = Row(entry=entry, tier="reproduced")
    unsure = said.lines["perturbed"].word == "cannot tell" if said.lines else False
    assert ("inconclusive" in pages.badge(row)) == (pages.colour(row) == pages.GREY) == unsure
    assert dict(pages.facts(row, 1))["Finding"] == said.sentence
