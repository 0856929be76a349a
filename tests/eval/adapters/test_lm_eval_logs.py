"""Sample logs of lm-eval as runs: foreign tasks, filters, and what somebody may send."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.eval.adapters import lm_eval_log
from robustbench_tc.eval.adapters.figures import Row, figures
from tests.conftest import Done
from tests.refusals import refuses

DATE = "2026-11-23T15-49-47.028658"


def write(place: Path, tasks: dict[str, list[dict[str, Any]]], **more: Any) -> Path:
    """A results file of foreign tasks, with its samples beside it."""
    place.mkdir(exist_ok=True)
    for task, samples in tasks.items():
        lines = "".join(json.dumps(one) + "\n" for one in samples)
        (place / f"samples_{task}_{DATE}.jsonl").write_text(lines)
    head = {
        "configs": {task: {"generation_kwargs": {"temperature": 0.0}} for task in tasks},
        "n-samples": {
            task: {"original": len(found), "effective": len(found)} for task, found in tasks.items()
        },
        "model_name": place.name,
        "lm_eval_version": "0.4.13",
    }
    path = place / f"results_{DATE}.json"
    path.write_text(json.dumps(head | more))
    return path


def sample(
    number: int, *, filter: str = "none", doc: dict[str, Any] | None = None, **scores: Any
) -> dict[str, Any]:
    metrics = {"metrics": list(scores), "doc_hash": f"hash of {number}"}
    return {"doc_id": number, "doc": doc or {"question": f"q{number}"}, "filter": filter} | metrics | scores


def test_two_evaluations_of_one_task_pair_by_number(tmp_path: Path) -> None:
    a = write(tmp_path / "a", {"gsm8k": [sample(n, acc=float(n < 4)) for n in range(12)]})
    b = write(tmp_path / "b", {"gsm8k": [sample(n, acc=n < 11) for n in range(12)]})
    found = api.compare(a, b)
    pair = found.overall["clean"]
    assert (found.a, found.b) == ("a", "b")
    assert (pair.n, pair.only_a, pair.only_b) == (12, 0, 7) and pair.p == pytest.approx(2 * 0.5**7, abs=1e-12)
    # Numbers of several tasks are no pair keys by themselves.
    both = {"one": [sample(0, acc=1)], "two": [sample(0, acc=0)]}
    assert api.compare(write(tmp_path / "c", both), write(tmp_path / "d", both)).overall["clean"].n == 2


def test_filters_are_scores(tmp_path: Path) -> None:
    rows = []
    for n in range(6):
        rows.append(sample(n, filter="strict", exact_match=float(n % 2)))
        rows.append(sample(n, filter="flexible", exact_match=1.0))
    log = write(tmp_path / "a", {"gsm8k": rows})
    for kind, right in (("strict", 0.5), ("flexible", 1.0)):
        found = api.compare(log, log, log_keys=[f"score=exact_match,{kind}"]).overall["clean"]
        assert (found.n, found.a) == (6, right)
    refuses("2 samples have clean_id", api.compare, log, log)


def test_keys_of_the_document(tmp_path: Path) -> None:
    rows = []
    for n in range(16):
        kind = "clean" if n % 2 else "realistic_typos"
        rows.append(sample(n, doc={"q": f"q{n // 2}", "kind": kind}, acc=float(n % 2), f1=0.5))
    log = write(tmp_path / "a", {"mine": rows})
    found = api.compare(log, log, log_keys=["clean_id=q", "type=kind", "score=acc"])
    assert found.overall["clean"].a == 1.0 and found.types["realistic_typos"].a == 0.0
    notes = api.compare(log, log, log_keys=["clean_id=q", "type=kind", "score=f1"]).notes
    assert any("16 scores lie between right and wrong" in line for line in notes)


SENT: list[tuple[str | None, dict[str, Any], str]] = [
    ("{", {}, "cannot be read"),
    ('{"doc_id": "one", "doc": {}}', {}, "is not as lm-eval writes it"),
    ("[" * 100_000, {}, "is not as lm-eval writes it"),
    ('{"x":' * 100_000, {}, "cannot be read"),
    (json.dumps(sample(0, acc="much")), {}, "its score is neither C nor I nor a number"),
    (json.dumps(sample(0, acc=1, f1=1)), {}, "has 2 scores (acc, f1): choose one with --log-key"),
    (json.dumps(sample(0, acc=1, doc={"type": "\x1b[31m"})), {}, "neither clean nor a type"),
    ("", {}, "no samples"),
    (None, {}, "run lm-eval with --log_samples"),
    ("", {"configs": {"../t": {}}}, "the name of a task is '../t'"),
    ("", {"configs": {}}, "is no results_DATE.json of lm-eval"),
    ("", {"configs": {"t": {"metadata": {"robustbench_tc": {"dataset": 1}}}}}, "is not as lm-eval writes it"),
]
"""Text of the samples, changes of the results, and what is said."""


@pytest.mark.parametrize(("text", "more", "said"), SENT)
def test_what_somebody_may_send(
    tmp_path: Path, rbtc: Callable[..., Done], text: str | None, more: dict[str, Any], said: str
) -> None:
    path = write(tmp_path / "a", {"t": []}, **more)
    samples = path.with_name(f"samples_t_{DATE}.jsonl")
    samples.unlink() if text is None else samples.write_text(text)
    found = rbtc("compare", path, path).refusal
    assert said in found and "\x1b" not in found


@pytest.mark.parametrize("bound", ["LINE", "RESULTS"])
def test_sizes_are_bounded(
    tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    path = write(tmp_path / "a", {"t": [sample(0, acc=1.0)]})
    monkeypatch.setattr(lm_eval_log, bound, 20)
    assert "has more than 20 bytes" in rbtc("compare", path, path).refusal
    monkeypatch.undo()
    path = path.rename(path.with_name("results.json"))
    assert "is no results_DATE.json" in rbtc("compare", path, path).refusal


# --- The table that a harness prints: our values, and what it says of a part of the types


REWARD = [kind.code for kind in taxonomy.types() if kind.component == "reward"]


def repeated(code: str, clean_id: str, *right: bool) -> list[Row]:
    return [Row(clean_id, code, repeat, one) for repeat, one in enumerate(right)]


WHOLE = [Row(one, "clean", 0, one != "c") for one in "abcd"]
WHOLE += [Row(one, code, 0, one in "ac") for code in REWARD for one in "abc"]
WHOLE += [Row(one, "same_name_A", 0, one == "a") for one in "ab"]
EPOCHS = [one for code in REWARD for one in repeated(code, "a", False, True)]
LIVE = [Row(one, "clean", 0, one != "c") for one in "abc"]
LIVE += [Row("a", "live_timeout", 0, False, True), Row("b", "live_timeout", 0, True, False)]
TABLES: dict[str, tuple[list[Row], dict[str, float], set[str] | None]] = {
    "a whole component and a part of one": (
        WHOLE,
        {
            "clean": 0.75,
            "accuracy_reward": 2 / 3,
            "delta_reward": 0.75 - 2 / 3,
            "delta_matched_reward": 0.0,  # b is lost, c is gained
            "accuracy_same_name_A": 0.5,
            "delta_same_name_A": 0.25,
        },
        {"accuracy_action", "retention", "perturbed", f"accuracy_{REWARD[0]}"},
    ),
    "types without their clean rows": (
        [Row("a", "CD_AB", 0, True), Row("b", "CD_AB", 0, False)],
        {"accuracy_CD_AB": 0.5},
        None,  # nothing else
    ),
    "epochs pair with their own clean row": (
        [*repeated("clean", "a", True, False), *EPOCHS],
        {"delta_matched_reward": 0.0, "accuracy_reward": 0.5},
        set(),
    ),
    "a live row that never met its fault is in no pair": (
        LIVE,
        {"accuracy_live_timeout": 0.5, "delta_matched_live_timeout": 1.0},
        set(),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_table_of_a_harness(name: str) -> None:
    rows, values, absent = TABLES[name]
    found = figures(rows)
    assert {one: found.get(one) for one in values} == pytest.approx(values)
    assert found.keys() == values.keys() if absent is None else not absent & found.keys()
