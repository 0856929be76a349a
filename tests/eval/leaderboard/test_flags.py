"""What is flagged, and what is not."""

import random
from itertools import product

import msgspec
import pytest

from robustbench_tc.eval.agents.null_models import NULL_MODELS
from robustbench_tc.eval.leaderboard import flags
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.tiers import Flag
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


def found(run: Judged, asked: Asked) -> dict[str, Flag]:
    return {flag.code: flag for flag in flags.of_run(*run, asked, asked.known)}


def test_reference_agents_and_null_models_are_flagged(asked: Asked, subtests: pytest.Subtests) -> None:
    for agent, repeat in product(
        sorted({"oracle", *NULL_MODELS, "silent", "rambler", "name-biased"}), [1, 2]
    ):
        with subtests.test(agent=agent, repeat=repeat):
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
