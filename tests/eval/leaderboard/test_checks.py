"""Every check of an upload: what passes, what is refused, and with which words."""

import json
import shutil
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.eval import predictions, record
from robustbench_tc.eval.leaderboard import worker
from robustbench_tc.eval.leaderboard.checks import Asked, Trail, check
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.records import Checked, Usage
from robustbench_tc.eval.leaderboard.refusal import APART, LIVE, STEPS, Refused
from robustbench_tc.eval.leaderboard.scoring import usage_of
from robustbench_tc.eval.leaderboard.submitting import Stated
from robustbench_tc.eval.verdicts import score_run

from .bad_files import BAD, Bad, Upload
from .conftest import RunOf

LIMITS = Limits(file_bytes=4_000_000)


def examined(asked: Asked, folder: Path, upload: Upload) -> Checked:
    """What the worker says, without its process."""
    shutil.copyfile(upload.predictions, folder / worker.UPLOAD)
    if upload.record is not None:
        shutil.copyfile(upload.record, folder / worker.RECORD)
    said = Stated(name=upload.name)
    job = worker.Job(folder=str(folder), user="ann", now="2026-11-20T10:00:00+00:00", stated=said)
    return worker.examine(job, asked, LIMITS)


READ = [bad for bad in BAD if bad.name != "too large"]
"""That one is refused while it is copied: see test_desk."""


@pytest.mark.parametrize("bad", READ, ids=[bad.name for bad in READ])
def test_a_bad_file_is_refused_by_its_check_with_its_words(
    bad: Bad, asked: Asked, run_of: RunOf, tmp_path: Path
) -> None:
    (tmp_path / "made").mkdir()
    upload = bad.make(run_of("oracle"), tmp_path / "made")
    (tmp_path / "job").mkdir()
    answer = examined(asked, tmp_path / "job", upload)
    assert answer.refused is not None and answer.submission is None and answer.entry is None
    assert answer.refused.code == bad.step
    assert bad.says in answer.refused.text
    assert answer.refused.text.isascii() or "…" in answer.refused.text
    reached = [step.code for step in answer.steps if step.passed]
    order = list(STEPS)
    assert all(order.index(code) < order.index(bad.step) for code in reached if bad.step != "size")
    assert not Path("/tmp/rbtc-unpickled").exists()


def test_a_good_file_passes_every_check_and_is_scored_like_rbtc_score(
    asked: Asked, run_of: RunOf, tmp_path: Path
) -> None:
    run = run_of("name-biased")
    answer = examined(asked, tmp_path, Upload(run / "predictions.parquet", run / "run.json"))
    assert [step.code for step in answer.steps] == [code for code in STEPS if code not in (*APART, *LIVE)]
    assert all(step.passed for step in answer.steps)
    assert answer.entry is not None and answer.submission is not None and answer.claims is None
    folder = record.RunFolder(tmp_path / "by-hand", record.open_run(run).record)
    folder.path.mkdir()
    judged = score_run(folder, asked, predictions.read(run / "predictions.parquet"))
    right: dict[str, tuple[int, int]] = {}
    for row, verdict in zip(asked.rows, judged, strict=True):
        assert verdict is not None
        correct, n = right.get(row.type_code, (0, 0))
        right[row.type_code] = (correct + verdict.correct, n + 1)
    assert {code: answer.entry.counts[code] for code in right} == right
    assert answer.entry.metrics["delta_reward"].value == pytest.approx(
        right["clean"][0] / right["clean"][1] - (answer.entry.metrics["accuracy_reward"].value or 0)
    )


def test_json_lines_and_parquet_are_the_same_submission(asked: Asked, run_of: RunOf, tmp_path: Path) -> None:
    run = run_of("oracle", mode="fc")
    lines = tmp_path / "predictions.jsonl"
    predictions.write(lines, predictions.read(run / "predictions.parquet"))
    answers = []
    for upload in (run / "predictions.parquet", lines):
        folder = tmp_path / upload.suffix[1:]
        folder.mkdir()
        answers.append(examined(asked, folder, Upload(upload, run / "run.json")))
    assert answers[0].submission == answers[1].submission is not None


def test_repeats_are_taken_and_have_to_be_whole(asked: Asked, run_of: RunOf, tmp_path: Path) -> None:
    run = run_of("oracle", repeat=2)
    found = check(run / "predictions.parquet", run / "run.json", asked, limits=LIMITS, trail=Trail())
    assert len(found.predictions) == 2 * len(asked.rows)
    table = pq.read_table(run / "predictions.parquet")
    pq.write_table(table.slice(1), tmp_path / "short.parquet")
    with pytest.raises(Refused, match="1 missing; the same `rbtc eval` without --samples, --limit"):
        check(tmp_path / "short.parquet", run / "run.json", asked, limits=LIMITS, trail=Trail())


def test_what_a_file_claims_is_shown_and_changes_nothing(asked: Asked, run_of: RunOf, tmp_path: Path) -> None:
    run = run_of("silent")
    table = pq.read_table(run / "predictions.parquet")
    claimed = table.append_column("correct", [[True] * table.num_rows])
    claimed = claimed.append_column("score", [[float("nan")] * table.num_rows])
    pq.write_table(claimed, tmp_path / "claimed.parquet")
    (tmp_path / "job").mkdir()
    answer = examined(asked, tmp_path / "job", Upload(tmp_path / "claimed.parquet", run / "run.json"))
    assert answer.entry is not None and answer.claims is not None
    assert answer.entry.counts["perturbed"][0] == 0
    assert answer.claims.too_good == len(asked.rows) and answer.claims.claimed_perturbed == 1.0
    assert len(answer.claims.examples) == 20


def test_identity_fields_of_an_upload_are_replaced_by_the_datasets(
    asked: Asked, run_of: RunOf, tmp_path: Path
) -> None:
    run = run_of("oracle")
    rows = predictions.read(run / "predictions.parquet")
    lies = [
        msgspec.structs.replace(one, type_code="CD", source="x", clean_id="y", category="z") for one in rows
    ]
    predictions.write(tmp_path / "lies.parquet", lies)
    found = check(tmp_path / "lies.parquet", run / "run.json", asked, limits=LIMITS, trail=Trail())
    assert [one.type_code for one in found.predictions] == [row.type_code for row in asked.rows]
    assert [one.source for one in found.predictions] == [row.source for row in asked.rows]


def test_the_stored_run_record_names_no_place_of_the_submitter(asked: Asked, run_of: RunOf) -> None:
    run = run_of("oracle")
    found = check(run / "predictions.parquet", run / "run.json", asked, limits=LIMITS, trail=Trail())
    assert str(Path(asked.name).parent) in (run / "run.json").read_text()
    assert str(Path(asked.name).parent) not in schema.dumps(found.record)


def test_without_a_run_record_the_dataset_is_known_by_its_rows(asked: Asked, run_of: RunOf) -> None:
    trail = Trail()
    with pytest.raises(Refused) as refusal:
        check(run_of("oracle") / "predictions.parquet", None, asked, limits=LIMITS, trail=trail)
    assert refusal.value.step == "record"
    assert [step.code for step in trail.steps()] == ["size", "format", "dataset", "ids"]


@pytest.mark.parametrize(
    "chain",
    [["dedupe", "\x1b[2J" * 50], ["namespace:prefix", "namespace"], ["vote"], ["retry"] * 70, ["schema"] * 2],
)
def test_defences_that_no_run_has_are_refused(
    asked: Asked, run_of: RunOf, tmp_path: Path, chain: list[str]
) -> None:
    run = run_of("oracle")
    said = json.loads((run / "run.json").read_text())
    said["settings"]["defend"] = chain
    record = tmp_path / "run.json"
    record.write_text(json.dumps(said))
    with pytest.raises(Refused, match="the run's defences") as refusal:
        check(run / "predictions.parquet", record, asked, limits=Limits(), trail=Trail())
    assert "\x1b" not in str(refusal.value) and len(str(refusal.value)) < 400


def test_refusals_list_ten_ids_of_each_kind(asked: Asked, run_of: RunOf, tmp_path: Path) -> None:
    run = run_of("oracle")
    pq.write_table(pq.read_table(run / "predictions.parquet").slice(30), tmp_path / "short.parquet")
    with pytest.raises(Refused) as refusal:
        check(tmp_path / "short.parquet", run / "run.json", asked, limits=LIMITS, trail=Trail())
    assert len(refusal.value.details) == 11
    assert refusal.value.details[-1] == "missing: … and 20 more"


def test_usage_is_what_every_answered_row_says(run_of: RunOf) -> None:
    answers = predictions.read(run_of("oracle") / "predictions.parquet")[:3]
    said = [
        msgspec.structs.replace(one, prompt_tokens=100 * i, completion_tokens=10, latency_s=float(i))
        for i, one in enumerate(answers, 1)
    ]
    assert usage_of(said) == Usage(200.0, 10.0, 2.0)
    assert usage_of([*said, msgspec.structs.replace(said[0], status="rejected", latency_s=None)]) == (
        Usage(200.0, 10.0, 2.0)
    )
    for wrong in (None, -1.0, float("nan"), float("inf"), 1e300):
        assert usage_of([*said, msgspec.structs.replace(said[0], latency_s=wrong)]).latency_s is None
    assert usage_of([]) == Usage()
