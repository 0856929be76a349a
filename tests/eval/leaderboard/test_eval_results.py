"""`rbtc export hub`: the form is that of the Hub's page *Evaluation Results* (hub docs of 2026-08-22, read on
2026-11-27), read by huggingface_hub's own parser; the values are those of `rbtc summary`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from huggingface_hub import HfApi, hf_hub_download, parse_eval_result_entries

from robustbench_tc import api
from robustbench_tc.eval import record
from robustbench_tc.eval.leaderboard.eval_results import NAME
from robustbench_tc.eval.stats.values import HEADS
from tests.conftest import Done
from tests.hub import ADA, READER, WRITER, Hub

from ...refusals import refuses
from .. import small
from .hubs import account
from .made import changed

RunOf = Callable[..., Path]
DATASET = "acme/robustbench-tc"
OF_AN_ENTRY = {"dataset", "value", "verifyToken", "date", "source", "notes"}
OF_A_DATASET, OF_A_SOURCE = {"id", "task_id", "revision"}, {"url", "name", "user", "org"}


@pytest.fixture(scope="module")
def run(local_run_of: RunOf) -> Path:
    folder = local_run_of("name-biased")
    api.score(folder)
    return folder


def exported(run: Path, out: Path, **how: Any) -> Any:
    return api.export_hub(run, out=out, **{"dataset": DATASET, **how})


def test_the_values_are_those_of_the_summary_to_the_last_digit(
    run: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    words = ("--source-url", "https://a.b/r.html", "--source-name", "Report", "--source-user", "ada")
    done = rbtc("export", "hub", run, "--dataset", f"{DATASET}@v1.0.0", "--out", tmp_path / "out", *words)
    assert done.code == 0 and str(tmp_path / "out" / NAME) in done.out
    plain = yaml.safe_load((tmp_path / "out" / NAME).read_bytes())
    for one in plain:
        assert set(one) <= OF_AN_ENTRY and {"dataset", "value"} <= set(one)
        assert set(one["dataset"]) <= OF_A_DATASET and set(one["source"]) <= OF_A_SOURCE
    lines = api.summary(run).overview.summary.lines  # type: ignore[union-attr]
    shown = {line[:13].strip(): line for line in rbtc("summary", run).out.splitlines()}
    found = parse_eval_result_entries(plain)
    assert [one.task_id for one in found] == list(HEADS)
    for one in found:
        assert one.value == 100 * lines[one.task_id].accuracy  # type: ignore[operator]
        assert f"{one.value:.1f}" == shown[one.task_id].split()[1]
        assert (one.dataset_id, one.dataset_revision, one.date) == (DATASET, "v1.0.0", "2026-11-20")
        assert (one.source_url, one.source_name, one.source_user) == ("https://a.b/r.html", "Report", "ada")
        for said in ("prompt", "10 samples", "dataset ", "95 % interval"):
            assert said in (one.notes or "")
    assert any(one.value != 100 for one in found)


def test_a_run_that_is_not_whole_is_refused_or_said_to_be_partial(
    run: Path, release: Path, data: Any, tmp_path: Path
) -> None:
    def reply(row: Any) -> dict[str, Any]:
        return {"status": "request_error" if row.id.endswith("::CD") else "ok", "raw_output": "no"}

    answers = small.scored_run(tmp_path / "answers", release, "m", reply)
    rows = api.evaluate(
        str(release), agent="oracle", types=("clean", "CD"), out=tmp_path / "rows"
    ).folder.path
    cases = (("answers are missing", answers), ("not every row of the dataset was asked", rows))
    for number, (lack, folder) in enumerate(cases):
        out = tmp_path / f"out-{number}"
        assert lack in refuses("--partial", exported, folder, out) and not out.exists()
        found = exported(folder, out, partial=True).entries
        assert found and all(one["notes"].startswith(f"partial ({lack})") for one in found)
    assert [one["dataset"]["task_id"] for one in found] == ["clean", "perturbed", "reward"]


def test_what_would_not_be_true_is_refused(run: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out", changed(run, tmp_path / "other")
    made = record.open_run(other)
    made.record.dataset_version = "1.0.0"
    made.save()
    refuses("version 1.0.0 of its dataset", exported, other, out, dataset=f"{DATASET}@v1.0.1")
    refuses("give a name on the Hub", exported, run, out, dataset="robustbench-tc")
    refuses("--source-url", exported, run, out, source_name="Report")
    refuses("--date", exported, run, out, date="yesterday")
    made.record.live = True
    made.save()
    refuses("live run", exported, other, out)
    assert not out.exists()
    revision = "5503434ddd753f426f4b38109466949a1217c2bb"
    made.record = msgspec.structs.replace(
        made.record, live=False, dataset=DATASET, dataset_revision=revision, sessions=[]
    )
    made.save()
    for one in exported(other, out).entries:  # the run itself knows the commit
        assert one["dataset"]["revision"] == revision and "date" not in one
    refuses("not empty", exported, run, out)


def test_a_pull_request_has_the_file_and_is_opened_once(hub: Hub, run: Path, tmp_path: Path) -> None:
    model = "acme/alpha-3b"
    with account(WRITER):
        HfApi().create_repo(model)
        HfApi().create_repo(DATASET, repo_type="dataset", exist_ok=True)
        head = hub.there(f"datasets/{DATASET}").head
        HfApi().create_tag(DATASET, tag="v1.0.0", repo_type="dataset")
    push = {"push": model, "dataset": f"{DATASET}@v1.0.0"}
    with account(READER):
        refuses("opening a pull request", exported, run, tmp_path / "reader", **push)
    assert not (tmp_path / "reader").exists() and not hub.there(f"models/{model}").pulls
    with account(ADA):
        first = exported(run, tmp_path / "first", **push)
        again = exported(run, tmp_path / "again", **push)
        assert again.url == first.url and list(hub.there(f"models/{model}").pulls) == [1]
        refuses("has no version", exported, run, tmp_path / "gone", **push | {"dataset": f"{DATASET}@v9.9.9"})
        other = exported(run, tmp_path / "other", **push, date="2026-11-27")
    assert other.url != first.url and list(hub.there(f"models/{model}").pulls) == [1, 2]
    there = hf_hub_download(model, NAME, revision="refs/pr/1", cache_dir=tmp_path / "cache")
    assert Path(there).read_bytes() == (tmp_path / "first" / NAME).read_bytes()
    assert {one["dataset"]["revision"] for one in first.entries} == {head}
    assert NAME not in hub.tree(f"models/{model}")
