"""Predictions in and out, ours and in the layout of the paper's release."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import schema
from robustbench_tc.eval import exchange, inputs, predictions, score

from ..refusals import refuses
from . import small

DATASET = inputs.Dataset(name="small", rows=tuple(small.rows()))
ROWS = {row.id: row for row in DATASET.rows}


def made(row: schema.Sample, **fields: Any) -> schema.Prediction:
    injected = None if row.injected_error is None else True
    plain = {"sample_hash": schema.content_hash(row), "raw_output": "[ping(a=1)]", "injected": injected}
    return small.prediction(row, **{"model": "tiny", **plain, **fields})


def mixed() -> list[schema.Prediction]:
    """One of every status, texts and native calls."""
    kinds: list[dict[str, Any]] = [
        {},
        {"raw_output": "I cannot."},
        {"raw_output": "", "tool_calls": [{"id": "call_0", "name": "ping", "arguments": '{"a":1}'}]},
        {"raw_output": None, "status": "rejected", "error": "names must be unique"},
        {"raw_output": None, "status": "too_long", "error": "too long"},
        {"raw_output": None, "status": "request_error", "error": "server_error: HTTP 500"},
        {"raw_output": None, "status": "agent_error", "error": "agent: it raised KeyError"},
    ]
    return [made(row, **kinds[number % len(kinds)]) for number, row in enumerate(DATASET.rows)]


def test_our_own_lines_and_parquet_come_back_as_they_were(tmp_path: Path) -> None:
    lines, table = tmp_path / "predictions.jsonl", tmp_path / "predictions.parquet"
    predictions.write_lines(lines, mixed())
    predictions.write(table, mixed())
    assert exchange.read_predictions(lines, DATASET, model="other", mode="fc") == (mixed(), {})
    assert predictions.read_predictions(table) == mixed()


def test_the_papers_layout_keeps_every_verdict(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    predictions.write_lines(path, (exchange.in_paper_layout(one, ROWS[one.id]) for one in mixed()))
    assert len(path.read_text().splitlines()) == len(ROWS)
    found, left_out = exchange.read_predictions(path, DATASET, model="tiny", mode="prompt")
    assert left_out == {}
    anchors = DATASET.anchors()
    for before, after in zip(mixed(), found, strict=True):
        assert (after.id, after.sample_hash, after.status) == (before.id, before.sample_hash, before.status)
        assert after.injected == before.injected
        if before.status != "request_error":
            row = ROWS[before.id]
            assert score.judge(after, row, anchors[row.id]) == score.judge(before, row, anchors[row.id])


def test_the_papers_example_lines_are_read(shared: Path) -> None:
    folder = shared / "spec" / "paper"
    dataset = inputs.load_samples(str(folder / "release_layout_example.jsonl"))
    found, left_out = exchange.read_predictions(
        folder / "release_layout_predictions_example.jsonl", dataset, model="m", mode="prompt"
    )
    assert [one.id for one in found] == ["apibank__level1_900::CD_NT"]
    assert left_out == {"row that the dataset does not have": 1}  # its transition file is not there
    row = {r.id: r for r in dataset.rows}[found[0].id]
    assert score.judge(found[0], row, dataset.anchors()[row.id]).correct


def line(row: schema.Sample, **prediction: Any) -> dict[str, Any]:
    return {
        "id": row.clean_id,
        "benchmark": row.source,
        "category": row.category,
        "perturbation": json.dumps({"type": row.type_code, "mdp_category": row.component}),
        "golden_answers": json.dumps(exchange.flat_gold(row)),
        "prediction": {"raw_output": "", "tool_calls": [], "error": None} | prediction,
    }


def write_lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_calls_beside_a_text_count_only_in_fc_mode(tmp_path: Path) -> None:
    row = DATASET.rows[0]
    native = [{"name": "ping", "parameters": {"a": 1}}]
    path = write_lines(tmp_path / "p.jsonl", line(row, raw_output="Let me see.", tool_calls=native))
    [prompt], _ = exchange.read_predictions(path, DATASET, model="m", mode="prompt")
    [fc], _ = exchange.read_predictions(path, DATASET, model="m", mode="fc")
    assert prompt.tool_calls is None
    assert fc.tool_calls == [{"id": "call_0", "name": "ping", "arguments": '{"a":1}'}]


def test_what_does_not_belong_is_left_out_and_counted(tmp_path: Path) -> None:
    row, other = DATASET.rows[0], DATASET.rows[1]
    foreign = line(row) | {"id": "bfcl_v3__elsewhere"}
    reworded = line(other) | {"golden_answers": [{"name": "another_tool", "parameters": {}}]}
    path = write_lines(tmp_path / "p.jsonl", line(row), line(row), foreign, reworded)
    with path.open("a") as file:
        file.write('{"id": "torn')
    found, left_out = exchange.read_predictions(path, DATASET, model="m", mode="prompt")
    assert [one.id for one in found] == [row.id]
    assert left_out == {
        "second answer to a row": 1,
        "row that the dataset does not have": 1,
        "answer to another text than the dataset's": 1,
        "torn last line": 1,
    }


def test_our_lines_about_another_wording_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    predictions.write_lines(path, [made(DATASET.rows[0]), made(DATASET.rows[1], sample_hash="0" * 16)])
    found, left_out = exchange.read_predictions(path, DATASET, model="m", mode="prompt")
    assert len(found) == 1
    assert left_out == {"answer to another text than the dataset's": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("[1]\n", "line 1 is not a JSON object"),
        ('{"id": 1}\n', "line 1: no id"),
        ("{\n{}\n", "line 1 is not JSON"),
        ('{"id": "apibank__level1_1"}\n', "line 1: no prediction in it"),
    ],
)
def test_a_file_that_holds_no_predictions_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "clean.jsonl"
    path.write_text(text)
    refuses(said, exchange.read_predictions, path, DATASET, model="m", mode="prompt")
