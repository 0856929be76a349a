"""What is flagged, and what is not."""

import random

import msgspec
import numpy as np
import pytest

from robustbench_tc.eval.leaderboard import flags
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.predictions import table
from robustbench_tc.eval.verdicts import BatchScorer
from robustbench_tc.schema import GOLD_NOT_STATED, Prediction, Verdict

from . import made

Judged = tuple[list[Prediction], list[Verdict]]


def judged(agent: str, asked: Asked, repeat: int = 1) -> Judged:
    answers = made.answers(agent, asked, made.settings(asked, "X-3B", repeat=repeat))
    verdicts = [one for one in BatchScorer(asked.rows).judged(answers, table(answers))[0] if one]
    return answers, verdicts


@pytest.fixture(scope="session")
def oracle(asked: Asked) -> Judged:
    return judged("oracle", asked)


@pytest.fixture(scope="session")
def silent(asked: Asked) -> Judged:
    return judged("silent", asked)


def mixed(
    share: float, of: Judged, rest: Judged, never: frozenset[str] = frozenset(), seed: int = 0
) -> Judged:
    """`of` in a share of the rows but those of `never`, else `rest`."""
    draw = random.Random(seed)
    pairs = zip(zip(*of, strict=True), zip(*rest, strict=True), strict=True)
    chosen = [a if draw.random() < share and a[0].id not in never else b for a, b in pairs]
    return [one for one, _ in chosen], [verdict for _, verdict in chosen]


def found(run: Judged, asked: Asked) -> dict[str, flags.Flag]:
    return {flag.code: flag for flag in flags.of_run(*run, asked, asked.known)}


@pytest.mark.parametrize("agent", sorted({"oracle", *flags.NULL_MODELS, "silent", "rambler", "name-biased"}))
@pytest.mark.parametrize("repeat", [1, 2])
def test_reference_agents_and_null_models_are_flagged(agent: str, repeat: int, asked: Asked) -> None:
    flag = found(judged(agent, asked, repeat), asked)["reference-agent"]
    assert flag.value == 1.0 and flag.n == repeat * len(asked.rows)
    # Agents with the same verdicts are one: their first stands for all.
    known = asked.known.agents
    assert flag.of in known and flags.says(flag).endswith(f"the reference agent {flag.of}")
    assert flag.of == agent or agent not in known


def test_the_gold_to_the_letter_is_flagged_with_its_figure(oracle: Judged, asked: Asked) -> None:
    flag = found(oracle, asked)["near-gold"]
    assert (flag.of, flag.value) == ("letter", 1.0)
    assert flags.says(flag) == f"1.000 of {flag.n} replies equal the golden answer to the letter"


def test_right_answers_that_are_not_the_gold_to_the_letter_are_flagged_too(
    oracle: Judged, asked: Asked
) -> None:
    answers, verdicts = oracle
    spelled = [msgspec.structs.replace(one, calls=(*one.calls, *one.calls)) for one in verdicts]
    flag = found((answers, spelled), asked)["near-gold"]
    assert (flag.of, flag.value) == ("right", 1.0) and "rows are right" in flags.says(flag)


def test_what_a_good_model_does_is_not_flagged(oracle: Judged, silent: Judged, asked: Asked) -> None:
    for share in (0.2, 0.5, 0.8):
        assert found(mixed(share, oracle, silent), asked) == {}


def with_unsaid(asked: Asked, samples: int) -> tuple[Asked, frozenset[str]]:
    """The dataset with the flag on the rows of some samples, and these rows."""
    chosen = sorted({row.clean_id for row in asked.rows})[:samples]
    rows = tuple(
        msgspec.structs.replace(row, flags=(GOLD_NOT_STATED,)) if row.clean_id in chosen else row
        for row in asked.rows
    )
    return Asked(name="x", rows=rows), frozenset(row.id for row in rows if GOLD_NOT_STATED in row.flags)


def test_knowing_what_nobody_says_is_flagged(oracle: Judged, silent: Judged, asked: Asked) -> None:
    flagged, unsaid = with_unsaid(asked, 5)
    run = mixed(0.7, oracle, silent)
    flag = found(run, flagged)["knows-unsaid"]
    assert flag.n == len(unsaid) and 0.5 < flag.value < 0.9 and flag.rest is not None
    assert "whose golden answer nobody could know" in flags.says(flag)
    # A model is wrong there, however good it is elsewhere; one that guesses half of them is no oracle.
    assert found(mixed(0.8, oracle, silent, never=unsaid), flagged) == {}
    half = frozenset(sorted(unsaid)[::2])
    assert "knows-unsaid" not in found(mixed(0.9, oracle, silent, never=half), flagged)
    few, _ = with_unsaid(asked, 3)
    assert found(run, few) == {}


def test_a_larger_dataset_is_held_against_agents_over_a_part_of_its_rows(
    monkeypatch: pytest.MonkeyPatch, oracle: Judged, asked: Asked
) -> None:
    monkeypatch.setattr(flags, "PROBED", 50)
    facts = flags.known(asked)
    assert 40 <= len(facts.probed) <= 50 and len(set(facts.probed)) == len(facts.probed)
    flag = {one.code: one for one in flags.of_run(*oracle, asked, facts)}["reference-agent"]
    assert (flag.of, flag.n) == ("oracle", len(facts.probed))


# --- beside others ----------------------------------------------------------------------------------------


def test_a_copy_names_the_earlier_run_and_the_share(oracle: Judged, silent: Judged) -> None:
    runs = {
        "first": oracle[0],
        "other": silent[0],
        "renamed": [msgspec.structs.replace(one, model="Y-9B", latency_s=9.0) for one in oracle[0]],
        "touched": mixed(0.97, oracle, silent)[0],
        "half": mixed(0.5, oracle, silent)[0],
    }
    sketches = {name: flags.replies_of(flags.sketch(run)) for name, run in runs.items()}
    made_of = flags.copies(sketches)
    assert {name: flag.of for name, flag in made_of.items()} == {"renamed": "first", "touched": "first"}
    assert made_of["renamed"].value == 1.0 and 0.95 <= made_of["touched"].value < 1.0
    assert flags.says(made_of["renamed"]).endswith("rows have the replies of submission first")
    # Who came first is what counts, and a run that is no sketch is equal to nothing.
    assert list(flags.copies(dict(reversed(sketches.items())))) == ["renamed", "first"]
    assert flags.copies({"a": np.empty(0, np.uint16), "b": np.empty(0, np.uint16)}) == {}
    assert len(flags.replies_of("no base64!")) == 0


def test_ids_of_native_calls_and_the_order_of_repeats_do_not_count(asked: Asked) -> None:
    answers = made.answers("oracle", asked, made.settings(asked, "X-3B", "fc", repeat=2))
    renamed = [
        msgspec.structs.replace(
            one, tool_calls=[{**call, "id": f"x{n}"} for n, call in enumerate(one.tool_calls)]
        )
        if one.tool_calls
        else one
        for one in answers
    ]
    assert any(one.tool_calls for one in answers)
    assert flags.sketch(renamed) == flags.sketch(answers)
    swapped = [answers[i ^ 1] for i in range(len(answers))]
    assert flags.sketch(swapped) == flags.sketch(answers)


def test_copies_among_many_are_found_from_groups_of_rows() -> None:
    draw = np.random.default_rng(1)
    runs = {f"r{i}": draw.integers(0, 2**16, 400, dtype=np.uint16) for i in range(200)}
    expected = {}
    for i in range(0, 200, 10):
        copied = runs[f"r{i}"].copy()
        copied[draw.choice(400, 20, replace=False)] += 1  # 0.95 stay
        runs[f"copy{i}"] = copied
        expected[f"copy{i}"] = f"r{i}"
    assert {name: flag.of for name, flag in flags.copies(runs).items()} == expected
