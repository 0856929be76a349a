"""Hostile run folders: each refused in a line or without effect, in a bounded child; none costs another."""

from pathlib import Path

import msgspec
import pytest

from robustbench_tc.eval.leaderboard import checker
from robustbench_tc.eval.leaderboard.child import Exceeded, Limits, in_child
from robustbench_tc.eval.leaderboard.datasets import Datasets
from robustbench_tc.eval.leaderboard.entry import Entry, Refused, Status

from . import hostile, live_runs, made
from .conftest import RunOf
from .hostile import Bad

AGENT = "gives-up-on-error"
OF_ROWS = (*hostile.PARQUET, *hostile.RECORD, *hostile.FILES, *hostile.STATED)
ID = f"{made.DAY}-{'0' * 12}"


@pytest.fixture(scope="module")
def both(release: Path, live_release: Path) -> Datasets:
    return Datasets.of_status(Status(dataset=str(release), live=str(live_release)))


@pytest.fixture(scope="module")
def live_run(both: Datasets, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert both.live is not None
    folder = tmp_path_factory.mktemp("live-runs")
    return made.as_handed_in(live_runs.mixed(folder, both.live), folder / "handed-in")


def judged(folder: Path, data: Datasets) -> Entry | Refused:
    """What the checker says, under the name that fits the files."""
    try:
        name = made.name_of(folder)
    except Refused:
        name = f"ann/Alpha-3B/{ID}"
    try:
        return checker.checked(folder, name, data)
    except Refused as refused:
        return refused


def figures(entry: Entry | Refused) -> bytes:
    """An entry without what names its files."""
    assert isinstance(entry, Entry), entry
    return checker.encode(msgspec.structs.replace(entry, run="", inputs={}))


def test_there_are_eighty() -> None:
    bad = [*OF_ROWS, *hostile.LIVE]
    assert len({one.name for one in bad}) == len(bad) >= 80


@pytest.mark.parametrize("bad", OF_ROWS, ids=lambda bad: bad.name)
def test_a_hostile_run_is_refused_or_without_effect(
    bad: Bad, both: Datasets, run_of: RunOf, tmp_path: Path
) -> None:
    folder = made.changed(run_of(AGENT), tmp_path / "run")
    bad.spoil(folder)
    refused_or_same(bad, judged(folder, both), run_of(AGENT), both)


@pytest.mark.parametrize("bad", hostile.LIVE, ids=lambda bad: bad.name)
def test_a_hostile_live_run_is_refused_or_without_effect(
    bad: Bad, both: Datasets, live_run: Path, tmp_path: Path
) -> None:
    folder = made.changed(live_run, tmp_path / "run")
    bad.spoil(folder)
    refused_or_same(bad, judged(folder, both), live_run, both)


def refused_or_same(bad: Bad, found: Entry | Refused, honest: Path, data: Datasets) -> None:
    if bad.step is None:
        assert figures(found) == figures(judged(honest, data))
        return
    assert isinstance(found, Refused), found
    assert (found.step, bad.name) == (bad.step, bad.name), str(found)
    for line in (str(found), *found.details):
        assert line.replace("…", "").isascii() and "\n" not in line and len(line) < 700
    assert not Path("/tmp/rbtc-unpickled").exists() and not Path("/tmp/rbtc-yaml").exists()


def test_scripts_in_every_text_are_in_no_entry(both: Datasets, run_of: RunOf, tmp_path: Path) -> None:
    tried = 0
    for name, spoil in hostile.scripts_in_texts(run_of(AGENT)):
        folder = made.changed(run_of(AGENT), tmp_path / f"run{tried}")
        spoil(folder)
        found = judged(folder, both)
        tried += 1
        if isinstance(found, Entry):
            of_us = msgspec.structs.replace(found, submission=made.entry(0).submission)
            assert "<script" not in checker.encode(of_us).decode() + checker.table(found), name
        else:
            assert "<script" not in str(found) or "'<script" in str(found), name  # quoted, as it came
    assert tried > 30


@pytest.mark.parametrize("seed", range(24))
def test_random_damage_costs_nothing_but_the_run(
    seed: int, both: Datasets, run_of: RunOf, live_run: Path, tmp_path: Path
) -> None:
    honest = live_run if seed % 4 == 0 else run_of(AGENT)
    folder = made.changed(honest, tmp_path / "run")
    hostile.random_damage(seed)(folder)
    found = judged(folder, both)
    assert isinstance(found, Refused) or found.checker == checker.CHECKER


@pytest.mark.parametrize(
    "name",
    [
        "", "a", "a/b", "a/b/c/d", f"../b/{ID}", f"a/../{ID}", f"a/b/../{ID}", f"/a/{ID}", f"a//{ID}",
        f"<img>/b/{ID}", f"a/=HYPERLINK(1)/{ID}", f"a/Qw\u0435n/{ID}", f"a/b c/{ID}", f"a/{'b' * 200}/{ID}",
        "a/b/20261399-000000000000", "a/b/2026-000000000000", f"a/b/{made.DAY}-00000000000G", f"a/b/{ID}\n",
        f".git/b/{ID}", f"a/.hidden/{ID}", f"a\\b/c/{ID}", f"a/b\x00/{ID}",
    ],
)  # fmt: skip
def test_a_name_that_no_path_bears_is_refused(name: str, both: Datasets, run_of: RunOf) -> None:
    with pytest.raises(Refused) as refused:
        checker.checked(run_of(AGENT), name, both)
    assert refused.value.step == "name"
    assert str(refused.value).replace("…", "").isascii()


def test_a_run_under_the_id_of_another_is_refused(both: Datasets, run_of: RunOf) -> None:
    with pytest.raises(Refused, match="does not fit the files"):
        checker.checked(run_of(AGENT), made.name_of(run_of("oracle")), both)


def test_a_live_run_is_refused_where_none_are_taken(data: Datasets, live_run: Path) -> None:
    with pytest.raises(Refused, match="no live runs are taken"):
        checker.checked(live_run, made.name_of(live_run), data)


# --- the child -----------------------------------------------------------------------------------------


def endless(_: Path) -> bytes:
    while True:
        pass


def greedy(_: Path) -> bytes:
    return bytes(8 << 30)


def asleep(_: Path) -> bytes:
    import time

    time.sleep(600)
    return b""


def wasteful(scratch: Path) -> bytes:
    return str((scratch / "large").write_bytes(bytes(2 << 20))).encode()


def test_a_child_is_killed_where_it_exceeds_its_limits() -> None:
    few = Limits(memory=3 << 30, cpu_s=1, wall_s=3, file=1 << 20)
    for work, says in (
        (endless, "time"),
        (asleep, "time"),
        (greedy, "memory"),
        (wasteful, "crash"),
        (lambda _: bytes(1 // 0), "crash"),
    ):
        with pytest.raises(Exceeded, match=says):
            in_child(work, few)
    assert in_child(lambda _: b"x" * 500_000, few) == b"x" * 500_000
