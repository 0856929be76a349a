"""`check`: the way of a run by pull request, and the same bytes however it is killed, ordered or spread."""

import itertools
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard import check, checker, datasets, repository, submit
from robustbench_tc.eval.leaderboard.check import Remark
from robustbench_tc.eval.leaderboard.entry import Submission
from tests.hub import ADA, MALLORY, READER, STRANGER, WRITER

from ...conftest import NIGHTLY
from ...refusals import refuses
from .. import small
from . import made
from .conftest import RunOf
from .hubs import Results, account

POINTS = 20 if NIGHTLY else 5
"""At which a check is killed: `make nightly` tries all twenty."""


def killed_at(point: int, work: Callable[[], object], owner: Any, name: str) -> int:
    """Does the work in a child that dies by SIGKILL at a point: before or after a call of `owner.name`. How
    many points it reached."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        real, numbers, checker = getattr(owner, name), itertools.count(), os.getpid()

        def reach() -> None:
            if os.getpid() != checker:  # but a child of its own, which scores a run
                return
            os.write(writing, b".")
            if next(numbers) == point:
                os.kill(checker, signal.SIGKILL)

        def counted(*args: Any, **how: Any) -> Any:
            reach()
            given = real(*args, **how)
            reach()
            return given

        setattr(owner, name, counted)
        work()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        reached = len(pipe.read())
    os.waitpid(child, 0)
    return reached


def spread(total: int) -> list[int]:
    """POINTS of so many, the first and the last among them."""
    return sorted({round(at * (total - 1) / (POINTS - 1)) for at in range(POINTS)})


def test_a_killed_check_is_made_good_by_the_next(listed: Results, local_run_of: RunOf) -> None:
    """With pull requests to answer and to refuse, a run to enter, one that came otherwise than checked."""
    listed.submit(local_run_of("oracle"))
    listed.submit(local_run_of("oracle", mode="fc"))
    listed.check()
    listed.submit(local_run_of("gives-up-on-error", mode="fc"))
    listed.push({"status.yaml": b"format: 1\ndataset: evil\n"}, onto=3, token=ADA)
    for number in (2, 3):
        listed.merge(number)
    listed.push({"README.md": b"x"})

    def after(result: Results) -> tuple[object, ...]:
        result.check()
        return (result.files, *(result.comments(number) for number in range(1, 6)))

    wanted = after(listed.copy("acme/whole"))
    points = spread(killed_at(-1, listed.copy("acme/counted").check, repository.Hub, "step"))
    assert len(points) == POINTS
    for point in points:
        copy = listed.copy(f"acme/killed-{point}")
        assert killed_at(point, copy.check, repository.Hub, "step") == point + 1
        assert after(copy) == wanted, point
    assert wanted[0] != listed.files and len(listed.copy("acme/whole").read()[0]) == 1


class Local:
    """Results in a folder."""

    def __init__(self, folder: Path, data: datasets.Datasets) -> None:
        self.folder, self.data = folder, data
        submit.init(str(folder), data.core.name)

    def submit(self, run: Path, org: str) -> submit.Submitted:
        return submit.submit(run, str(self.folder), Submission(model="Alpha-3B"), org=org)

    def check(self, everything: bool = False, **how: Any) -> check.Report:
        return check.Checker(str(self.folder), **how).check(None, everything)

    @property
    def files(self) -> dict[str, bytes]:
        """All but the card, which names the place, and what killed processes leave."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*.*")
            if path.name[0] != "." and path.name != "README.md"
        }


@pytest.fixture(scope="module")
def three(data: datasets.Datasets, local_run_of: RunOf, tmp_path_factory: pytest.TempPathFactory) -> Local:
    """A folder with three runs that have no entry yet."""
    made = Local(tmp_path_factory.mktemp("three") / "results", data)
    for org in ("c", "a", "b"):
        assert not made.submit(local_run_of("oracle"), org).again
    return made


def test_order_and_processes_change_no_byte(
    three: Local, data: datasets.Datasets, local_run_of: RunOf, tmp_path: Path
) -> None:
    one = Local(tmp_path / "one", data)
    for org in ("a", "b", "c"):
        assert one.submit(local_run_of("oracle"), org).number is None
        assert [entry.run.split("/")[0] for entry in one.check().new] == [org]
    assert one.submit(local_run_of("oracle"), "a").again
    many = Local(tmp_path / "many", data)
    shutil.copytree(three.folder / "runs", many.folder / "runs")
    assert len(many.check(jobs=3).new) == 3
    assert one.files == many.files
    assert many.check(everything=True, jobs=2).entries == 3 and one.files == many.files
    _, found, dropped = repository.read_entries(repository.Folder(many.folder))
    assert [entry.submitter for entry in found] == [None] * 3 and not dropped


def test_a_killed_check_of_a_folder_is_made_good(
    three: Local, data: datasets.Datasets, scored_once: None, tmp_path: Path
) -> None:
    def fresh(name: str) -> Local:
        made = Local(tmp_path / name, data)
        shutil.copytree(three.folder / "runs" / "a", made.folder / "runs" / "a")
        return made

    whole = fresh("whole")
    total = killed_at(-1, whole.check, os, "replace")
    assert total == 6  # before and after the entry and both files of all
    for point in range(total):
        killed = fresh(str(point))
        assert killed_at(point, killed.check, os, "replace") == point + 1
        killed.check()
        assert killed.files == whole.files


def test_what_does_not_fit_its_files_is_left_out_and_counted(three: Local, tmp_path: Path) -> None:
    local = Local(tmp_path / "results", three.data)
    shutil.copytree(three.folder / "runs", local.folder / "runs")
    local.check()
    changed, gone, whole = sorted(path.parent for path in local.folder.rglob("run.json"))
    (changed / "submission.yaml").write_text("model: Alpha-3B\nlicence: mit\n")
    (gone / "run.json").unlink()
    (whole / "entry.json").unlink()
    _, found, dropped = repository.read_entries(repository.Folder(local.folder))
    assert [entry.run for entry in found] == [str(whole.relative_to(local.folder / "runs"))]
    assert [*dropped.values()] == ["its files are not those that were scored"] * 2
    report = local.check()
    assert [entry.submission.licence for entry in report.new] == ["mit"] and report.entries == 2
    assert len(report.refused) == 1 and (whole / "entry.json").is_file()


@pytest.mark.parametrize("number", [3, 120])
def test_entries_are_read_in_five_requests_however_many_there_are(results: Results, number: int) -> None:
    found = made.entries_of(number)
    files: dict[str, bytes | None] = dict(repository.write_entries(found))
    for entry in found:
        files |= {f"runs/{entry.run}/{name}": entry.run.encode() for name in entry.inputs}
    results.push(files, main=True, token=WRITER)
    results.hub.log()
    fitting, dropped = results.read()
    asked = [route for _, route, _, _ in results.hub.log()]
    assert len(fitting) + len(dropped) == number
    assert sorted(asked) == ["info", *["resolve"] * 4]  # a listing; of two files the head and the bytes


def test_watch_goes_on_after_an_error(three: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local, said = tmp_path / "later", list[str]()

    def sleep(seconds: float) -> None:
        if seconds != 7:  # the wait for a child
            return
        if local.is_dir():
            raise KeyboardInterrupt
        submit.init(str(local), three.data.core.name)
        shutil.copytree(three.folder / "runs" / "a", local / "runs" / "a")

    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        check.watching(check.Checker(str(local), said=said.append), 7)
    assert "has no status.yaml" in said[0] and said[-1] == "1 entries, 1 new"


def test_a_dataset_folder_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("made").mkdir()
    submit.init("results", "made", own=["lab/own@v1"])
    found = repository.read_status(repository.open_place("results"))
    assert (found.dataset, found.own) == (str(tmp_path / "made"), ("lab/own@v1",))
    refuses(
        "nowhere is neither a folder nor a dataset of the Hub", submit.init, "others", "made", live="nowhere"
    )
    refuses("is not empty", submit.init, str(tmp_path / "made" / ".."), "made")
    assert not Path("others").exists()


# --- by pull request ----------------------------------------------------------------------------------


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
    space = repository.Hub(listed.name).read_file("status.yaml").replace(b"spaces: []", b"spaces: [mallory]")
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
    assert "x.txt" in str(listed.check().pulls[number])
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
    listed: Results, data: datasets.Datasets, local_run_of: RunOf, tmp_path: Path
) -> None:
    found, _ = listed.read()
    one_less = [row for row in data.core.rows if row.clean_id != data.core.rows[0].clean_id]
    newer = small.write(tmp_path / "newer", one_less)
    text = (
        repository.Hub(listed.name)
        .read_file("status.yaml")
        .replace(data.core.name.encode(), str(newer).encode())
    )
    listed.push({"status.yaml": text}, token=WRITER, main=True)
    report = listed.check(everything=True)
    assert (report.entries, report.new) == (1, []) and listed.read() == (found, {})
    refuses("evaluate on that one", listed.submit, local_run_of("oracle"))
    assert [entry.run for entry in listed.check(everything=True, dataset=data.core.name).new] == [
        found[0].run
    ]
    assert listed.read() == (found, {})
