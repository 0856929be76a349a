"""Submit, check, merge, check: the way of a run, with the real client on the tests' Hub."""

from pathlib import Path

import msgspec
import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard import checker, submit
from robustbench_tc.eval.leaderboard.datasets import Datasets
from robustbench_tc.eval.leaderboard.place import Hub as Place
from robustbench_tc.eval.leaderboard.pulls import Remark
from tests.hub import MALLORY, READER, STRANGER, WRITER

from ...refusals import refuses
from .. import small
from . import made
from .conftest import RunOf
from .hubs import Results, account


def test_a_run_gets_its_answer_and_after_the_merge_its_entry(results: Results, local_run_of: RunOf) -> None:
    sent = results.submit(local_run_of("gives-up-on-error"))
    assert sent.number == 1 and sent.url and sent.url.endswith("/discussions/1") and not sent.again
    report = results.check()
    assert report.pulls == {1: sent.entry} and report.entries == 0 and not report.problems
    [(author, text)] = results.comments(1)
    assert author == "maintainer" and "perturbed" in text
    assert f"Checked: commit `{results.head(1)}`" in text
    assert results.check().pulls == {} and len(results.comments(1)) == 1

    results.merge(1)
    assert results.read() == ([], {sent.entry.run: "it has no entry yet"})
    [entry] = results.check().new
    assert (entry.submitter, entry.member, entry.commit) == ("ada", True, results.head(1))
    assert entry == msgspec.structs.replace(sent.entry, submitter="ada", member=True, commit=results.head(1))
    assert results.read() == ([entry], {})
    before = results.files
    assert results.check().new == [] and results.files == before and len(results.comments(1)) == 1


def test_the_same_submission_finds_its_pull_request_and_then_its_run(
    results: Results, local_run_of: RunOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = local_run_of("gives-up-on-error")
    dry = results.submit(run, dry_run=True)
    assert dry.number is None and {path.rpartition("/")[2] for path in dry.files} == {
        "run.json", "predictions.parquet", "submission.yaml"
    }  # fmt: skip
    public = b"".join(dry.files.values())
    assert b"secret.example" not in public and b"somebody" not in public
    first = results.submit(run)
    again = results.submit(run)
    assert (again.number, again.url, again.again) == (first.number, first.url, True)
    assert results.submit(run, STRANGER, "stranger").number == 2
    results.check(pr=1)
    results.merge(1)
    assert results.submit(run).again and results.submit(run).number is None


def test_who_submitted_is_the_author_of_the_pull_request(listed: Results, local_run_of: RunOf) -> None:
    listed.submit(local_run_of("oracle", mode="fc"), MALLORY)
    listed.check(pr=2)
    listed.merge(2)
    [entry] = listed.check().new
    assert (entry.run.split("/")[0], entry.submitter, entry.member) == ("lab", "mallory", False)
    space = Place(listed.name).read("status.yaml").replace(b"spaces: []", b"spaces: [mallory]")
    listed.push({"status.yaml": space}, token=WRITER, main=True)
    listed.submit(local_run_of("oracle"), MALLORY)
    listed.merge(3)
    assert [entry.member for entry in listed.check().new] == [True]


def test_a_push_is_checked_anew_and_only_comments_of_the_checkers_account_count(
    listed: Results, local_run_of: RunOf
) -> None:
    number = listed.submit(local_run_of("oracle", mode="fc"), MALLORY).number
    assert number is not None
    listed.check()
    listed.push({"x.txt": b"x"}, onto=number)
    listed.comment(number, f"{Remark('taken', listed.head(number), 'lab/x/20261120-0123456789ab')}\n")
    report = listed.check()
    assert "x.txt" in str(report.pulls[number])
    assert [author for author, _ in listed.comments(number)] == ["maintainer", "mallory", "maintainer"]
    assert "not taken" in listed.comments(number)[-1][1]


def test_a_merge_without_a_check_is_judged_by_what_it_adds(listed: Results, local_run_of: RunOf) -> None:
    sent = listed.submit(local_run_of("oracle", mode="fc"))
    listed.merge(2)
    assert [entry.run for entry in listed.check().new] == [sent.entry.run]


def test_a_run_that_is_refused_costs_no_other_its_entry(
    listed: Results, run_of: RunOf, tmp_path: Path
) -> None:
    bad = made.changed(run_of("oracle"), tmp_path / "bad")
    (bad / "predictions.parquet").write_bytes(b"PAR1 and nothing")
    spoilt, good = (f"ann/Alpha-3B/{checker.run_id(one, '20261120')}" for one in (bad, run_of("oracle")))
    files = {
        f"runs/{run}/{path.name}": path.read_bytes()
        for run, folder in ((spoilt, bad), (good, run_of("oracle")))
        for path in folder.iterdir()
    }
    listed.push(files, token=WRITER, main=True)
    maintainer = listed.checker()
    report = maintainer.check()
    assert [entry.run for entry in report.new] == [good] and report.entries == 2
    assert set(report.refused) == {spoilt}
    assert listed.read()[1] == {spoilt: "it has no entry yet"}
    assert maintainer.check().refused == report.refused


def test_a_token_without_the_right_is_told_what_it_needs(results: Results, local_run_of: RunOf) -> None:
    no = r"the Hub answered 403: .* role `write`"
    refuses(f"opening a pull request: {no}", results.submit, local_run_of("oracle"), READER)
    with account(MALLORY), pytest.raises(UserError, match=f"creating the repository: {no}"):
        submit.init("acme/mine", "x/y@v1")


def test_a_new_dataset_version_empties_nothing(
    listed: Results, data: Datasets, local_run_of: RunOf, tmp_path: Path
) -> None:
    found, _ = listed.read()
    one_less = [row for row in data.core.rows if row.clean_id != data.core.rows[0].clean_id]
    newer = small.write(tmp_path / "newer", one_less)
    text = Place(listed.name).read("status.yaml").replace(data.core.name.encode(), str(newer).encode())
    listed.push({"status.yaml": text}, token=WRITER, main=True)
    report = listed.check(everything=True)
    assert (report.entries, report.new) == (1, []) and listed.read() == (found, {})
    refuses("evaluate on that one", listed.submit, local_run_of("oracle"))
    assert [entry.run for entry in listed.check(everything=True, dataset=data.core.name).new] == [
        found[0].run
    ]
    assert listed.read() == (found, {})
