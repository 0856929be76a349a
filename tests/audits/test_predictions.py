"""The suite of predictions, on answers to a bundled build."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.audits import gate
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.column_types import arrow_schema
from robustbench_tc.io import parquet
from robustbench_tc.schema import Prediction, Sample, content_hash, record

from ..eval.small import prediction
from ..refusals import refuses
from . import builds


@pytest.fixture(scope="module")
def answers(bundled: Path) -> list[Prediction]:
    rows = [
        record(raw, Sample)
        for config in ("clean", "CD", "transient_timeout")
        for raw in parquet.read_rows(parquet.shards(bundled / config))
    ]
    return [
        prediction(
            row,
            model="tiny",
            sample_hash=content_hash(row),
            raw_output="[f()]",
            injected=None if row.injected_error is None else True,
            first_output=None if row.injected_error is None else "[f()]",
        )
        for row in rows
    ]


def audited(found: list[Any], bundled: Path, path: Path) -> AuditReport:
    table = parquet.table(schema.columns(found, Prediction), arrow_schema(schema.prediction_columns()))
    pq.write_table(table, path)
    return gate.audit_predictions(path, bundled)


def test_sound_predictions_pass(answers: list[Prediction], bundled: Path, tmp_path: Path) -> None:
    report = audited(answers, bundled, tmp_path / "predictions.parquet")
    # Nothing is scored yet, so that check does not apply.
    assert [one.id for one in report.blocking] == []
    assert report.kind == "predictions" and report.passed
    assert report.seed == 0, "nothing is drawn"


DEFECTS: dict[str, tuple[str, Callable[[Prediction], Prediction]]] = {
    "an unknown row": ("rows.anchored", lambda p: _but(p, id="nobody::CD")),
    "another wording": ("rows.asked_in_these_words", lambda p: _but(p, sample_hash="0" * 16)),
    "another source": ("rows.origin_is_the_rows", lambda p: _but(p, source="tooleyes")),
    "no reply": ("rows.an_answer_is_there", lambda p: _but(p, raw_output=None)),
    "an error without a reason": ("rows.an_answer_is_there", lambda p: _but(p, status="request_error")),
    "an injection into a static row": ("rows.injected_where_it_should", lambda p: _but(p, injected=True)),
}


def _but(prediction: Prediction, **changes: Any) -> Prediction:
    return msgspec.structs.replace(prediction, **changes)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_caught_by_its_check(
    name: str, answers: list[Prediction], bundled: Path, tmp_path: Path
) -> None:
    check, change = DEFECTS[name]
    report = audited([change(answers[0]), *answers[1:]], bundled, tmp_path / "predictions.parquet")
    found = builds.find(report, check)
    assert found.status == "failed" and found.failed == 1


def test_an_answer_twice_is_caught(answers: list[Prediction], bundled: Path, tmp_path: Path) -> None:
    report = audited([*answers, answers[0]], bundled, tmp_path / "predictions.parquet")
    assert builds.find(report, "rows.one_answer_per_question").status == "failed"


def test_a_column_too_many_is_caught(answers: list[Prediction], bundled: Path, tmp_path: Path) -> None:
    path = tmp_path / "predictions.parquet"
    audited(answers, bundled, path)
    table = pq.read_table(path)
    pq.write_table(table.append_column("note", table.column("id")), path)
    report = gate.audit_predictions(path, bundled)
    assert builds.find(report, "columns.are_the_contracts").status == "failed"


def test_a_column_too_few_is_caught(answers: list[Prediction], bundled: Path, tmp_path: Path) -> None:
    """The last one, whose place nothing else takes."""
    path = tmp_path / "predictions.parquet"
    audited(answers, bundled, path)
    table = pq.read_table(path)
    pq.write_table(table.drop_columns([table.column_names[-1]]), path)
    report = gate.audit_predictions(path, bundled)
    assert builds.find(report, "columns.are_the_contracts").status == "failed"


def test_scores_are_held_against_their_verdicts(
    answers: list[Prediction], bundled: Path, tmp_path: Path
) -> None:
    path = tmp_path / "scores.parquet"
    columns = schema.columns(answers, Prediction)
    wrong = {
        "calls": "[]",
        "variant": None,
        "score": 0.5,
        "correct": True,
        "reason": None,
        "error_mode": None,
        "stage": None,
        "stage_detail": None,
    }
    good = {**wrong, "score": 1.0}
    for name in wrong:
        columns[name] = [wrong[name], *[good[name]] * (len(answers) - 1)]
    columns["flags"] = [[] for _ in answers]
    pq.write_table(parquet.table(columns, arrow_schema(schema.prediction_columns(scored=True))), path)
    check = builds.find(gate.audit_predictions(path, bundled), "rows.score_and_verdict_agree")
    assert check.status == "failed" and check.failed == 1 and check.applied == len(answers)


@pytest.mark.parametrize(
    ("correct", "stage", "detail", "failed"),
    [
        (False, None, None, 1),
        (False, "fill", "too_few", 1),
        (True, "fill", "invented", 1),
        (False, "fill", "invented", 0),
        (True, None, None, 0),
    ],
)
def test_a_wrong_answer_has_one_stage(
    answers: list[Prediction],
    bundled: Path,
    tmp_path: Path,
    correct: bool,
    stage: str | None,
    detail: str | None,
    failed: int,
) -> None:
    path, columns = tmp_path / "scores.parquet", schema.columns(answers[:1], Prediction)
    mode = None if correct else "wrong_parameters"
    columns |= {"calls": ["[]"], "variant": [None], "score": [float(correct)], "correct": [correct]}
    columns |= {"reason": [None], "error_mode": [mode], "flags": [[]]}
    columns |= {"stage": [stage], "stage_detail": [detail]}
    table = parquet.table(columns, arrow_schema(schema.prediction_columns(scored=True)))
    pq.write_table(table, path)
    report = gate.audit_predictions(path, bundled)
    assert (builds.find(report, "rows.score_and_verdict_agree").failed or 0) == failed
    assert builds.find(report, "columns.are_the_contracts").status == "passed"
    pq.write_table(table.drop_columns(["stage", "stage_detail"]), path)
    report = gate.audit_predictions(path, bundled)
    assert builds.find(report, "columns.are_the_contracts").status == "passed", "verdicts of before"
    assert not builds.find(report, "rows.score_and_verdict_agree").failed


def test_a_missing_file_is_said_in_one_line(bundled: Path, tmp_path: Path) -> None:
    refuses("no predictions at", gate.audit_predictions, tmp_path / "none.parquet", bundled)
