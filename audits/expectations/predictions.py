"""The suite of a predictions file, held against the dataset that was asked."""

from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.schema import (
    STAGES,
    Prediction,
    Sample,
    Verdict,
    arrow_schema,
    content_hash,
    dumps,
    record,
)

from ..folder import Folder, type_name
from ..report import Check
from .gx import Expectation, all_hold, frame_of, native, run, same_columns

VERDICTS = {
    "decodes": "A row that is not a prediction cannot be scored.",
    "anchored": "Every prediction answers a row of this dataset.",
    "asked_in_these_words": "An answer never meets another text: the row's hash is the one that was asked.",
    "origin_is_the_rows": "Type, component, source and category are the row's: tables are grouped by them.",
    "an_answer_is_there": "Status ok means that there is a reply, any other that there is a reason.",
    "injected_where_it_should": "An error is injected in transition rows alone, and the first reply is kept.",
    "score_and_verdict_agree": "`correct` is a score of 1, and a wrong answer has its error mode.",
}


def suite(path: Path, dataset: Folder) -> list[Check]:
    """Columns and rows of a predictions (or scores) Parquet file. Raises UserError if there is none."""
    if not path.is_file():
        raise UserError(f"no predictions at {path}: name the Parquet file that `rbtc eval` wrote")
    rows = {
        raw["id"]: raw
        for config in dataset.configs()
        if config == taxonomy.CLEAN or taxonomy.known(config)
        for raw in dataset.rows(config)
    }
    found = [_row(number, raw, rows) for number, raw in enumerate(parquet.read_rows([path]))]
    data = frame_of(("id", "key", *VERDICTS), found)
    return [
        *_columns(path),
        *(_unless_unscored(one) for one in run("predictions", data, _ROWS_EXPECTATIONS)),
    ]


def _unless_unscored(found: Check) -> Check:
    """A file without scores is not a worse for it: scoring is another step."""
    if found.id != "rows.score_and_verdict_agree" or found.status != "not_run":
        return found
    return msgspec.structs.replace(
        found, reason="the file holds no scores", may_be_left_out="`rbtc score` writes them later"
    )


_ROWS_EXPECTATIONS: tuple[Expectation, ...] = (
    *all_hold("rows", VERDICTS),
    native(
        "rows",
        "one_answer_per_question",
        "A row that is answered twice in a repeat counts twice.",
        "ExpectColumnValuesToBeUnique",
        column="key",
    ),
)


def _columns(path: Path) -> list[Check]:
    import pyarrow.parquet as pq

    found = [f"{field.name} {type_name(field.type)}" for field in pq.read_schema(path)]
    verdict = [Verdict] if any(name.startswith("score ") for name in found) else []
    wanted = [f"{f.name} {type_name(f.type)}" for f in arrow_schema(Prediction, *verdict)]
    protects = "Predictions of all models lie in the same columns, so that marts can join them."
    return same_columns("prediction_columns", protects, [(path.name, wanted, found)])


_ORIGIN = attrgetter("clean_id", "type_code", "component", "source", "category")


def _row(number: int, raw: dict[str, Any], rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {"id": str(raw.get("id") or f"[{number}]")}
    try:
        one = record(raw, Prediction)
    except ValueError as error:
        return values | {"decodes": f"it does not decode: {str(error)[:120]}"}
    asked = rows.get(one.id)
    values |= {
        "key": dumps((one.id, one.model, one.mode, one.repeat)),
        "decodes": "",
        "anchored": "" if asked else "the dataset has no such row",
        "an_answer_is_there": _answer(one),
        "injected_where_it_should": _injected(one),
        "score_and_verdict_agree": _scored(raw) if "score" in raw else None,
    }
    if asked is not None:
        sample = record(asked, Sample)
        values["asked_in_these_words"] = (
            "" if one.sample_hash == content_hash(sample) else "sample_hash is another row's or version's"
        )
        values["origin_is_the_rows"] = (
            "" if _ORIGIN(one) == _ORIGIN(sample) else "type, component, source or category are not the row's"
        )
    return values


def _answer(one: Prediction) -> str:
    if one.status == "ok":
        return "" if one.raw_output is not None or one.tool_calls is not None else "status ok without a reply"
    return "" if (one.error or "").strip() else f"status {one.status} without a reason"


def _injected(one: Prediction) -> str:
    answered = taxonomy.known(one.type_code) and taxonomy.get(one.type_code).answered_calls > 0
    if (one.injected is None) == answered and one.status == "ok":
        return "injected is set for a row without an error, or not set for one with it"
    if one.injected and one.first_output is None and one.first_tool_calls is None:
        return "an error was injected, but the first reply is not kept"
    return ""


def _scored(raw: dict[str, Any]) -> str:
    score, correct = raw["score"], raw["correct"]
    if score is None:
        return "" if raw["status"] == "request_error" and correct is None else "an answer without a score"
    if not 0 <= score <= 1 or bool(correct) != (score == 1):
        return "correct is not a score of 1"
    if (raw["error_mode"] is None) != bool(correct):
        return "error_mode does not fit the verdict"
    if "stage" not in raw:
        return ""
    stage, detail = raw["stage"], raw["stage_detail"]
    fits = stage is None if correct else detail in STAGES.get(stage, ())
    return "" if fits else "stage does not fit the verdict"
