"""Whatever becomes of the files of a store: that submission is left out with one line, the rest stands."""

import shutil
import time
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.eval.leaderboard import index, moderation
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.index import Index, Kept
from robustbench_tc.eval.leaderboard.rebuild import load, rebuild
from robustbench_tc.eval.leaderboard.records import ENTRY_VERSION, encode
from robustbench_tc.eval.leaderboard.site import Boards
from robustbench_tc.eval.leaderboard.store import FILES, Store

from .conftest import RunOf
from .few import entry, submission
from .test_rebuild import listed

HUGE = b'{"a":' + b"9" * 5000 + b"}"

WRONG: dict[str, bytes] = {
    "empty": b"",
    "another object": b'{"x":1}',
    "not JSON": b"PAR1\0\xff",
    "not UTF-8": b'{"id":"\xff\xfe"}',
    "a giant number": HUGE,
    "not a number": b'{"params_b":NaN}',
    "nested": b"[" * 100_000,
    "too large": b" " * (17 * 2**20),
}

NO_DATES = tuple(
    b'{"submission":"ID","action":"unhide","reason":"x","by":"ann","at":%s,"verified_at":%s,"rows":1,'
    b'"agree":1,"submitted":1,"repeated":1,"p":1,"predictions_sha256":"","package_version":""}' % (when, when)
    for when in (b'"yesterday"', b'""')
)
"""A verification and a decision that are sound but for their date."""


def stored_with(folder: Path, run: Path, n: int = 3) -> Store:
    store = Store(folder)
    for number in range(1, n + 1):
        with store.locked():
            store.add(submission(number, f"m{number}"), run, entry({"CD": [1, number % 2]}))
    return store


def on_board(store: Store) -> set[str]:
    told: list[str] = []
    boards = Boards(Store(store.folder), {}, tell=told.append)
    found = {row.id for board in boards.all().values() for row in board.rows}
    assert all("\n" not in line and "Traceback" not in line for line in told)
    left_out = {one for line in told for one in line.split()}
    # Whoever is not there is named.
    everyone = {path.name for path in (store.folder / "submissions").iterdir()}
    assert everyone - found <= left_out
    return found


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_broken_record_or_entry_leaves_out_one_submission(
    wrong: bytes, tmp_path: Path, run_of: RunOf
) -> None:
    store = stored_with(tmp_path / "results", run_of("silent"))
    one, *others = (submission(number, f"m{number}").id for number in (1, 2, 3))
    for path in (store.path(one) / "record.json", store.entries / f"{one}.json"):
        before = path.read_bytes()
        path.write_bytes(wrong)
        assert on_board(store) == set(others), path
        path.write_bytes(before)
    assert on_board(store) == {one, *others}


@pytest.mark.parametrize("wrong", [*WRONG.values(), *NO_DATES], ids=[*WRONG, "bad date", "no date"])
def test_a_broken_verification_or_decision_is_one_line_and_the_board_goes_on(
    wrong: bytes, tmp_path: Path, run_of: RunOf
) -> None:
    store = stored_with(tmp_path / "results", run_of("silent"))
    one, other, third = (submission(number, f"m{number}").id for number in (1, 2, 3))
    path = store.folder / "verifications" / f"{one}.json"
    path.write_bytes(wrong.replace(b"ID", one.encode()))
    told: list[str] = []
    board = next(iter(Boards(Store(store.folder), {}, tell=told.append).all().values()))
    assert {row.id: row.tier for row in board.rows} == dict.fromkeys((one, other, third), "unverified")
    assert len(told) == 1 and told[0].startswith(f"verification {one} is left out: ") and "\n" not in told[0]
    assert next(iter(rebuild(store, []).not_possible)) == f"verifications/{one}.json"
    path.unlink()

    path = store.folder / "moderation" / f"{other}-0001.json"
    path.write_bytes(wrong.replace(b"ID", other.encode()))
    off, [line] = store.off_the_board()
    assert list(off) == [other] and off[other].reason == moderation.UNREADABLE
    assert line.startswith(f"moderation {other}-0001.json cannot be read") and len(line) < 400
    told = []
    board = next(iter(Boards(Store(store.folder), {}, tell=told.append).all().values()))
    assert {row.id for row in board.rows} == {one, third}
    assert told == [line]


def test_a_record_that_no_board_can_show_is_left_out(tmp_path: Path, run_of: RunOf) -> None:
    store = stored_with(tmp_path / "results", run_of("silent"), 2)
    one = submission(1, "m1")
    other = submission(2, "m2").id
    for changes in (
        {"submitted_at": "yesterday"},
        {"submitted_at": "2026-11-21T10:00:00"},
        {"id": other},
        {"id": "../../escape"},
        {"dataset_version": "../../escape"},
        {"fingerprint": ""},
        {"model": "x" * 5000},
        {"model": ""},
        {"repeats": 10**30},
        {"params_b": -1.0},
    ):
        (store.path(one.id) / "record.json").write_bytes(encode(msgspec.structs.replace(one, **changes)))
        assert on_board(store) == {other}, changes


def test_files_that_are_gone_folders_or_links_leave_out_one_submission(tmp_path: Path, run_of: RunOf) -> None:
    for name in FILES["core"]:
        for number in range(3):
            store = stored_with(tmp_path / f"{name}-{number}", run_of("silent"), 2)
            one, other = (submission(number, f"m{number}").id for number in (1, 2))
            _break(store.path(one) / name, number, tmp_path)
            assert on_board(store) == {other}, (name, number)
    (store.folder / "submissions" / "notes.txt").write_text("mine")
    assert on_board(store) == {other}


def _break(path: Path, how: int, folder: Path) -> None:
    if how == 2:
        path.rename(folder / "aside")
        path.symlink_to(folder / "aside")
        return
    path.unlink()
    if how == 1:
        path.mkdir()


def test_a_broken_run_is_not_scored_and_the_rest_is(tmp_path: Path, asked: Asked, run_of: RunOf) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("oracle"), "Alpha-3B")
    other = listed(store, asked, run_of("silent"), "Beta-7B")
    kept = {name: (store.path(one) / name).read_bytes() for name in FILES["core"]}
    for name, wrong in (
        *(("run.json", WRONG[key]) for key in ("another object", "not UTF-8", "nested")),
        ("predictions.parquet", kept["predictions.parquet"][:-40]),
        ("predictions.parquet", b""),
    ):
        (store.path(one) / name).write_bytes(wrong)
        found = rebuild(Store(store.folder), [asked])
        assert found.same == (other,) and list(found.not_possible) == [one], name
        assert "\n" not in found.not_possible[one]
        (store.path(one) / name).write_bytes(kept[name])
    assert set(rebuild(store, [asked]).same) == {one, other}


# --- the index --------------------------------------------------------------------------------------------


def test_an_index_gives_what_the_files_give_and_notices_every_change(tmp_path: Path, run_of: RunOf) -> None:
    store = stored_with(tmp_path / "results", run_of("silent"))
    first = Index(store)
    first.look()
    first.save()
    saved = (store.folder / "boards" / index.FILE).read_bytes()

    def boards() -> object:
        again = Index(Store(store.folder))
        found = load(again.store, {}, again)
        assert found == load(Store(store.folder), {}, None)
        return {row.id for board in found.values() for row in board.rows}

    one, two, three = (submission(number, f"m{number}").id for number in (1, 2, 3))
    assert boards() == {one, two, three}
    time.sleep(0.01)
    with store.locked():
        store.put_entry(one, entry({"CD": [0, 0]}))
        store.add(submission(4, "m4"), run_of("silent"), entry({"CD": [1, 1]}))
    shutil.rmtree(store.path(two))
    (store.path(three) / "record.json").write_bytes(encode(submission(3, "renamed")))
    assert boards() == {one, three, submission(4, "m4").id}
    for wrong in (
        b"",
        b"\xc1",
        saved[:-9],
        msgspec.msgpack.encode(["x", [], []]),
        saved.replace(b"m1", b"m9"),
    ):
        (store.folder / "boards" / index.FILE).write_bytes(wrong)
        assert boards() == {one, three, submission(4, "m4").id}


def test_entries_of_another_version_are_made_again(tmp_path: Path, asked: Asked, run_of: RunOf) -> None:
    store = Store(tmp_path / "results")
    one = listed(store, asked, run_of("silent"), "Alpha-3B")
    store.entries.rename(store.folder / "entries" / "reader0-scores0-x")
    boards = Boards(Store(store.folder), {}, (asked.label, asked.fingerprint()))
    [board] = [board for board in boards.all().values() if board.fingerprint is not None]
    assert board.rows == () and [missing.id for missing in boards.missing()] == [one]
    assert "1 submission is still being scored" in board.notice
    boards.cannot(one, "it cannot")
    assert boards.missing() == [] and not next(iter(boards.all().values())).notice
    assert store.entries.name == ENTRY_VERSION


def test_what_boards_keep_of_an_entry_is_small() -> None:
    assert len(msgspec.msgpack.encode(Kept.of(entry({"CD": [1] * 199})))) < 10_000
