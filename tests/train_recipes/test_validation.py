"""What a validation during training says."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc.train_recipes import rows, verl_validation
from robustbench_tc.train_recipes.validation import BASELINE, Row, Scored, compared, row, scored, summary

GOLD = '<think> a </think>\n<tool_call>\n{"name": "a", "parameters": {}}\n</tool_call>'


def answers(**right: dict[str, bool]) -> list[Scored]:
    return [
        Scored(clean_id, component, 4.0 if value else -3.0, value)
        for component, rows in right.items()
        for clean_id, value in rows.items()
    ]


def test_delta_is_that_of_the_pairs() -> None:
    found = summary(
        answers(
            clean={"a": True, "b": True, "c": False, "d": False},
            action={"a": False, "b": True},
            reward={"c": True},
            retry={"a": False, "d": False},
        )
    )
    assert found["val-core/clean/accuracy"] == 0.5
    assert found["val-core/action/accuracy"] == 0.5 and found["val-core/action/delta"] == -0.5
    assert found["val-core/reward/delta"] == 1.0 and found["val-core/retry/delta"] == -0.5
    # The three components together: what the paper validates on.
    assert found["val-core/perturbed/accuracy"] == pytest.approx(2 / 3)
    assert found["val-core/perturbed/delta"] == 0.0 and found["val-aux/perturbed/pairs"] == 3
    assert found["val-aux/action/reward"] == 0.5 and found["val-aux/action/pairs"] == 2
    assert not any("gap_closure" in name for name in found)
    assert not any(name.startswith("val-core/observation") for name in found)


def test_gap_closure_is_measured_from_the_first_validation() -> None:
    clean = {str(n): True for n in range(4)}
    first = summary(answers(clean=clean, action=dict.fromkeys(clean, False), reward=clean))
    found = summary(answers(clean=clean, action={name: int(name) < 2 for name in clean}, reward=clean), first)
    assert found["val-core/action/gap_closure"] == 0.5
    assert "val-core/reward/gap_closure" not in found  # nothing was lost to begin with
    assert summary(answers(clean=clean, action=clean), first)["val-core/action/gap_closure"] == 1.0


def test_several_answers_to_a_row_count_with_their_mean() -> None:
    twice = [
        *answers(clean={"a": True}, action={"a": True}),
        *answers(clean={"a": True}, action={"a": False}),
    ]
    found = summary(twice)
    assert found["val-core/action/delta"] == -0.5 and found["val-aux/action/pairs"] == 1


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["clean", "action", "retry"]), st.booleans()))
)
def test_order_changes_nothing_and_values_are_bounded(given: list[tuple[str, str, bool]]) -> None:
    rows = [Scored(clean_id, component, float(right), right) for clean_id, component, right in given]
    found = summary(rows)
    assert summary(list(reversed(rows))) == pytest.approx(found)
    for name, value in found.items():
        if name.endswith(("accuracy", "delta")):
            assert -1 <= value <= 1


def test_an_answer_is_right_if_it_earns_what_its_gold_does() -> None:
    assert row({"clean_id": "x", "component": "reward"}, GOLD) == Row("x", "reward", 4.0)
    assert (
        row({"clean_id": "x", "component": None, "retry": {"type_code": "server_error"}}, GOLD).component
        == "retry"
    )
    reply = row(
        {"clean_id": "x", "component": None, "retry": None}, "<think> a </think>\n<response> b </response>"
    )
    assert reply == Row("x", "clean", 1.0)
    assert scored(reply, 1.0).correct and not scored(reply, 0.0).correct
    # verl gives rewards back as 32-bit numbers.
    assert (
        scored(Row("x", "action", 4.0), 3.9999998).correct
        and not scored(Row("x", "action", 4.0), 3.5).correct
    )


def test_the_first_validation_is_kept_for_a_resumed_run(tmp_path: Path) -> None:
    rows = (Row("a", "clean", 4.0), Row("a", "action", 4.0))

    def at(step: int, earned: float) -> dict[str, float]:
        answers = [scored(one, reward) for one, reward in zip(rows, (4.0, earned), strict=True)]
        return compared(answers, tmp_path / "run", step)

    assert at(0, -3.0)["val-core/action/gap_closure"] == 0.0
    assert at(10, 4.0)["val-core/action/gap_closure"] == 1.0
    kept = json.loads((tmp_path / "run" / BASELINE).read_text())
    assert kept["step"] == 0 and kept["metrics"]["val-core/action/delta"] == -1.0
    # A run that begins anew in the same folder has a baseline of its own.
    assert "val-core/action/gap_closure" not in at(0, 4.0)


def test_rows_are_found_by_the_ids_that_the_trainer_gives_them(tmp_path: Path) -> None:
    """The trainer here does what verl's does around its GPUs (test_verl.py has verl's own)."""

    class Config:
        class trainer:
            default_local_dir = str(tmp_path)

    class Trainer:
        config, global_steps = Config, 0
        val_dataloader: Any = tuple(
            {
                "extra_info": [
                    {"clean_id": str(n), "component": None},
                    {"clean_id": str(n), "component": "action"},
                ],
                "reward_model": [{"ground_truth": GOLD}] * 2,
            }
            for n in range(3)
        )

        def _validate(self) -> dict[str, float]:
            uids: list[str] = []
            earned: list[float] = []
            for batch in self.val_dataloader:
                batch["uid"] = [f"u{len(uids)}", f"u{len(uids) + 1}"]
                uids += reversed(batch["uid"])  # answers come back in any order
                earned += [-3.0, 4.0]
            return self._val_metrics_update(
                [], uids[:-1], {"reward": earned[:-1]}, [], expected_acc_counts=None
            )

        def _val_metrics_update(
            self, sources: Any, uids: Any, infos: Any, turns: Any, expected_acc_counts: Any = None
        ) -> dict[str, float]:
            return {"theirs": 1.0}

    verl_validation.install(Trainer)
    verl_validation.install(Trainer)
    trainer, loader = Trainer(), Trainer.val_dataloader
    found = trainer._validate()
    assert found["theirs"] == 1.0 and trainer.val_dataloader is loader
    assert found["val-core/action/accuracy"] == 0.0 and found["val-core/clean/accuracy"] == 1.0
    assert found["val-aux/action/pairs"] == 2  # one answer was lost on the way


def test_the_retry_recipe_validates_on_clean_rows_too(training_data: Path) -> None:
    names = [path.parent.name for path in rows.locate(str(training_data), "retry").validation]
    assert names == ["retry", "full"]
    assert [path.parent.name for path in rows.locate(str(training_data), "full").validation] == ["full"]
