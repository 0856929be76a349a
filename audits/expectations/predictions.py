"""The suites of a predictions file, held against the dataset that was asked."""

from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.io import parquet
from robustbench_tc.schema import STAGES, Prediction, Sample, Verdict, content_hash, dumps, record

from ..checks import HOLDS, DoesNotApply, check, columns, given, native, verdicts
from ..folder import Folder, type_name
from ..report import Check
from .gx import run, run_over
from .layout import beside, contract


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
    checks = run("predictions", columns(found, ("id", "key"), "predictions"))
    return [*_columns(path), *map(_unless_unscored, checks)]


def _unless_unscored(found: Check) -> Check:
    """A file without scores is not a worse for it: scoring is another step."""
    if found.id != "rows.score_and_verdict_agree" or found.status != "not_run":
        return found
    return msgspec.structs.replace(
        found, reason="the file holds no scores", may_be_left_out="`rbtc score` writes them later"
    )


def _columns(path: Path) -> list[Check]:
    import pyarrow.parquet as pq

    found = [(field.name, type_name(field.type)) for field in pq.read_schema(path)]
    verdict = [Verdict] if any(name == "score" for name, _ in found) else []
    return run_over("prediction_columns", beside(path.name, contract(Prediction, *verdict), found))


class Answer(NamedTuple):
    """A prediction, and the row that was asked."""

    raw: dict[str, Any]
    one: Prediction
    row: Sample | None


given("predictions", "rows", {"decodes": "A row that is not a prediction cannot be scored."})
native(
    "predictions",
    "rows.one_answer_per_question",
    "A row that is answered twice in a repeat counts twice.",
    "ExpectColumnValuesToBeUnique",
    column="key",
)


def _row(number: int, raw: dict[str, Any], rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    id = str(raw.get("id") or f"[{number}]")
    try:
        one = record(raw, Prediction)
    except ValueError as error:
        return {"id": id, "decodes": f"it does not decode: {str(error)[:120]}"}
    answer = Answer(raw, one, record(rows[one.id], Sample) if one.id in rows else None)
    return {
        "id": id,
        "key": dumps((one.id, one.model, one.mode, one.repeat)),
        "decodes": HOLDS,
        **verdicts("predictions", answer),
    }


@check("predictions")
def anchored(answer: Answer) -> None:
    """Every prediction answers a row of this dataset."""
    assert answer.row is not None, "the dataset has no such row"


@check("predictions")
def asked_in_these_words(answer: Answer) -> None:
    """An answer never meets another text: the row's hash is the one that was asked."""
    if answer.row is None:
        raise DoesNotApply
    same = answer.one.sample_hash == content_hash(answer.row)
    assert same, "sample_hash is another row's or version's"


_ORIGIN = attrgetter("clean_id", "type_code", "component", "source", "category")


@check("predictions")
def origin_is_the_rows(answer: Answer) -> None:
    """Type, component, source and category are the row's: tables are grouped by them."""
    if answer.row is None:
        raise DoesNotApply
    same = _ORIGIN(answer.one) == _ORIGIN(answer.row)
    assert same, "type, component, source or category are not the row's"


@check("predictions")
def an_answer_is_there(answer: Answer) -> None:
    """Status ok means that there is a reply, any other that there is a reason."""
    one = answer.one
    if one.status == "ok":
        assert one.raw_output is not None or one.tool_calls is not None, "status ok without a reply"
    else:
        assert (one.error or "").strip(), f"status {one.status} without a reason"


@check("predictions")
def injected_where_it_should(answer: Answer) -> None:
    """An error is injected in transition rows alone, and the first reply is kept."""
    one = answer.one
    answered = taxonomy.known(one.type_code) and taxonomy.get(one.type_code).answered_calls > 0
    assert (one.injected is None) != answered or one.status != "ok", (
        "injected is set for a row without an error, or not set for one with it"
    )
    kept = one.first_output is not None or one.first_tool_calls is not None
    assert not one.injected or kept, "an error was injected, but the first reply is not kept"


@check("predictions")
def score_and_verdict_agree(answer: Answer) -> None:
    """`correct` is a score of 1, and a wrong answer has its error mode."""
    raw = answer.raw
    if "score" not in raw:
        raise DoesNotApply
    score, correct = raw["score"], raw["correct"]
    if score is None:
        assert raw["status"] == "request_error" and correct is None, "an answer without a score"
        return
    assert 0 <= score <= 1 and bool(correct) == (score == 1), "correct is not a score of 1"
    assert (raw["error_mode"] is None) == bool(correct), "error_mode does not fit the verdict"
    if "stage" in raw:
        stage, detail = raw["stage"], raw["stage_detail"]
        fits = stage is None if correct else detail in STAGES.get(stage, ())
        assert fits, "stage does not fit the verdict"
