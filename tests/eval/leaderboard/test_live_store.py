"""Live runs beside the others: sent over HTTP, stored, made again from their journals, hidden, verified."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard import live_board
from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.client import NotTaken, submit
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.index import Index
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.live_data import LiveAsked, load_live
from robustbench_tc.eval.leaderboard.live_verify import verify_live
from robustbench_tc.eval.leaderboard.matched import match
from robustbench_tc.eval.leaderboard.moderation import Decision
from robustbench_tc.eval.leaderboard.rebuild import look, rebuild, verify
from robustbench_tc.eval.leaderboard.scoring import entries_of_paper
from robustbench_tc.eval.leaderboard.serve import worker_command
from robustbench_tc.eval.leaderboard.store import FILES, Store
from robustbench_tc.eval.leaderboard.worker import Job, Pool
from robustbench_tc.eval.live.score import score_episodes
from robustbench_tc.eval.stats.live import clean_success, lines
from robustbench_tc.worlds.host import Worlds

pytest.importorskip("fastapi", reason="the board is served with the extra leaderboard (make env-leaderboard)")

from . import desks, live_runs
from .conftest import RunOf
from .served import Served, serving

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def at_desk(store: Store, asked: Asked, live: LiveAsked | None) -> Desk:
    return Desk(store, desks.InProcess(asked, Limits(), live), Limits(), lambda: NOON)


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory,
    asked: Asked,
    live_asked: LiveAsked,
    live_run: Path,
    run_of: RunOf,
) -> Iterator[tuple[Served, dict[str, str]]]:
    """A board over HTTP with one run over the rows, one live run and one live run of a scripted agent."""
    folder = tmp_path_factory.mktemp("live-site")
    oracle = live_runs.played(folder / "oracle", live_asked, "oracle", model="Agent-9B")
    with serving(folder / "results", asked, limits=Limits(per_day=50), live=live_asked) as served:
        ids = {
            "core": served.listed(run_of("silent", model="Alpha-3B")),
            "live": served.listed(live_run),
            "agent": served.listed(oracle),
        }
        yield served, ids


Site = tuple[Served, dict[str, str]]


def test_a_live_run_over_http_is_stored_as_its_journal(site: Site) -> None:
    served, ids = site
    folder = served.store.path(ids["live"])
    assert {path.name for path in folder.iterdir()} == set(FILES["live"])
    one = served.store.submission(ids["live"])
    assert one.kind == "live"
    assert sha256((folder / "journal.jsonl").read_bytes()).hexdigest() == one.predictions_sha256


def test_the_figures_are_those_of_the_run_itself(site: Site, live_asked: LiveAsked, live_run: Path) -> None:
    """`rbtc live score` and `summary` over the very folder say the same numbers."""
    import asyncio

    from robustbench_tc.eval.leaderboard.live_journal import load
    from robustbench_tc.eval.live.episode import Place, kept
    from robustbench_tc.eval.live.record import open_run

    served, ids = site
    run = open_run(live_run)
    with run.journal() as journal:
        places = [Place.of(row, run.record.settings, 0) for row in live_asked.data.rows]
        episodes = [one for place in places if (one := kept(place, journal)) is not None]
    scores = asyncio.run(
        score_episodes(episodes, live_asked.by_id, Worlds(), world_of=live_asked.worlds.__getitem__)
    )
    entry = served.store.live_entry(ids["live"])
    assert entry is not None
    assert list(entry.lines) == lines(scores) and entry.clean == clean_success(scores)
    assert len(load(served.store.path(ids["live"]) / "journal.jsonl")) == (
        (live_run / "journal.jsonl").read_bytes().count(b"\n")
    )


def test_no_live_run_is_on_a_board_of_the_others(site: Site) -> None:
    served, ids = site
    boards = served.boards.all()
    there = {row.id for board in boards.values() for row in (*board.rows, *board.past, *board.defended)}
    assert ids["core"] in there and not {ids["live"], ids["agent"]} & there
    [board] = served.boards.live().values()
    assert [row.id for row in board.rows] == [ids["live"], ids["agent"]], "scripted agents stand below"
    assert [row.rank for row in board.rows] == [0, 0], "nobody has vouched for them"
    assert board.rows[1].flags == ("reference-agent",)


def test_a_rebuild_gives_the_same_bytes(
    site: Site, asked: Asked, live_asked: LiveAsked, tmp_path: Path
) -> None:
    served, ids = site
    copy = tmp_path / "results"
    shutil.copytree(served.store.folder, copy)
    store = Store(copy)
    rebuild(store, [asked], live=[live_asked])
    before = {path: path.read_bytes() for path in copy.rglob("*.json")}
    assert f"live-{next(iter(served.boards.live()))}.json" in {path.name for path in before}
    for path in [*store.entries.iterdir(), *store.live_entries.iterdir()]:
        path.unlink()
    found = rebuild(store, [asked], live=[live_asked], num_proc=2)
    assert set(found.new) == set(ids.values()) and not found.boards_changed and not found.not_possible
    assert {path: path.read_bytes() for path in copy.rglob("*.json")} == before
    found = rebuild(store, [asked], live=[live_asked])
    assert set(found.same) == set(ids.values()) and not found.changed
    found = rebuild(store, [asked])
    assert "--live-dataset" in found.not_possible[ids["live"]]
    entry = store.live_entry(ids["live"])
    assert entry is not None
    store.put_entry(ids["live"], msgspec.structs.replace(entry, episodes=1))
    assert rebuild(store, [asked], live=[live_asked]).changed == (ids["live"],)
    journal = store.path(ids["live"]) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"executed"', b'"executeD"', 1) + b"\n")
    found = rebuild(Store(copy), [asked], live=[live_asked])
    assert "is not what was submitted" in found.not_possible[ids["live"]]


def test_broken_files_of_a_live_run_leave_out_that_run_alone(site: Site, tmp_path: Path) -> None:
    served, ids = site
    copy = tmp_path / "results"
    shutil.copytree(served.store.folder, copy)
    (copy / "submissions" / ids["live"] / "journal.jsonl").unlink()
    entry = Store(copy).live_entries / f"{ids['agent']}.json"
    entry.write_bytes(b'{"x":1}')
    store = Store(copy)
    looked = look(store, entries_of_paper(), Index(store))
    assert any("journal.jsonl" in line and ids["live"] in line for line in looked.damaged)
    assert any("made again" in line and ids["agent"] in line for line in looked.damaged)
    assert looked.live == {} and ids["core"] in looked.submissions


def test_a_live_run_is_hidden_and_put_back(site: Site) -> None:
    served, ids = site
    store = served.store

    def decide(action: str) -> None:
        with store.locked():
            store.decide(
                Decision(
                    submission=ids["live"],
                    action=action,  # type: ignore[arg-type]
                    reason="a test",
                    by="me",
                    at=NOON.isoformat(),
                )
            )
        served.boards.refresh(always=True)

    decide("hide")
    try:
        [board] = served.boards.live().values()
        assert [row.id for row in board.rows] == [ids["agent"]]
    finally:
        decide("unhide")
    [board] = served.boards.live().values()
    assert board.row(ids["live"]) is not None


def test_a_repeated_run_vouches_for_it_and_an_endpoint_cannot(
    site: Site, asked: Asked, live_asked: LiveAsked, live_run: Path, tmp_path: Path
) -> None:
    served, ids = site
    copy = tmp_path / "results"
    shutil.copytree(served.store.folder, copy)
    store = Store(copy)
    with pytest.raises(UserError, match="no endpoint can be matched to one"):
        match(store, ids["live"], asked, lambda seed, out: None, base_url="http://x/v1", model=None,
              work=tmp_path / "work", by="me")  # fmt: skip
    with pytest.raises(UserError, match="is a live run: it is verified by playing it again"):
        verify(store, ids["live"], live_run, asked, by="me")
    with pytest.raises(UserError, match="is no live run"):
        verify_live(store, ids["core"], live_run, live_asked, by="me")
    with pytest.raises(UserError, match="is not a live run: it has no journal"):
        verify_live(store, ids["live"], tmp_path, live_asked, by="me")
    prompt = live_runs.played(tmp_path / "prompt", live_asked, "oracle", mode="prompt")
    with pytest.raises(UserError, match="another mode"):
        verify_live(store, ids["live"], prompt, live_asked, by="me")
    made = verify_live(store, ids["live"], live_run, live_asked, by="me", now=NOON)
    faulted = sum(row.fault is not None for row in live_asked.data.rows)
    assert (made.rows, made.agree, made.p) == (faulted, faulted, 1.0)
    with pytest.raises(UserError, match="verified already"):
        verify_live(store, ids["live"], live_run, live_asked, by="me")
    verify_live(store, ids["agent"], served_run(store, ids["agent"], tmp_path), live_asked, by="me")
    [board] = look(store, entries_of_paper(), Index(store)).live.values()
    assert [(row.tier, row.rank) for row in board.rows] == [("reproduced", 1), ("reproduced", 0)]
    assert not live_board.is_ranked(board.rows[1]), "an agent's flag takes its rank in any tier"
    assert next(row.id for row in live_board.ranked(board.rows, "clean")) == ids["live"]


def served_run(store: Store, submission_id: str, folder: Path) -> Path:
    """A stored live run as a run folder."""
    made = folder / submission_id
    made.mkdir()
    shutil.copyfile(store.path(submission_id) / "journal.jsonl", made / "journal.jsonl")
    shutil.copyfile(store.path(submission_id) / "run.json", made / "live_run.json")
    return made


def test_a_refused_upload_leaves_nothing(site: Site, live_run: Path, tmp_path: Path) -> None:
    served, _ = site

    def boasts(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        next(line for line in lines if "results" in line)["results"][0]["text"] = "all is well"
        return lines

    before = set((served.store.folder / "incoming").rglob("journal.jsonl"))
    upload_id = served.uploaded(live_runs.edited(live_run, tmp_path / "bad", boasts))
    served.post(f"/api/v1/submissions/{upload_id}/finish")
    state = served.done(upload_id)
    failed = [step for step in state["result"]["steps"] if step["passed"] is False]
    assert [step["code"] for step in failed] == ["replay"] and "listable" not in state
    assert "is answered differently now" in failed[0]["text"]
    assert served.post(f"/api/v1/submissions/{upload_id}/list").status == 429
    assert set((served.store.folder / "incoming").rglob("journal.jsonl")) == before


def test_the_client_submits_a_live_run(
    site: Site, asked: Asked, live_asked: LiveAsked, tmp_path: Path
) -> None:
    served, _ = site
    run = live_runs.played(tmp_path / "run", live_asked, "liar", model="Sent-2B")
    done = submit(run, served.url)
    assert done.submission is not None and done.not_checked_here is None
    assert done.page == f"{served.url}/live/{done.submission.id}"
    assert done.checked.live is not None and done.checked.live.flags[0].of == "gives-up", "a liar calls alike"
    assert submit(run / "journal.jsonl", served.url).submission == done.submission, "the same run is the same"
    cut = live_runs.copied(run, tmp_path / "cut")
    (cut / "journal.jsonl").write_bytes((run / "journal.jsonl").read_bytes()[:-30])
    with pytest.raises(NotTaken, match=r"before the upload.*is cut off in line"):
        submit(cut, served.url)
    other = live_runs.said(run, tmp_path / "other", settings={"fingerprint": "0" * 32})
    with pytest.raises(UserError, match="play that version"):
        submit(other, served.url)
    closed = pytest.raises(UserError, match="takes no live runs")
    with serving(tmp_path / "results", asked, limits=Limits()) as without, closed:
        submit(run, without.url)


def test_the_real_process_replays_a_live_run(
    release: Path, live_release: Path, live_run: Path, site: Site, tmp_path: Path
) -> None:
    """In the bounded child, and a second time from what is stored."""
    served, ids = site
    pool = Pool(worker_command(release, Limits(), live_release), size=1)
    try:
        job = tmp_path / "job"
        job.mkdir()
        for source, target in zip(desks.files(live_run), ("upload", "run.json"), strict=True):
            shutil.copyfile(source, job / target)
        made = pool.run(Job(folder=str(job), user="local", now="2026-11-20T10:00:00+00:00"))
        entry = served.store.live_entry(ids["live"])
        assert made.refused is None and made.live == entry
        (tmp_path / "again").mkdir()
        again = (str(served.store.path(ids["live"])), served.store.submission(ids["live"]))
        folder = str(tmp_path / "again")
        assert pool.run(Job(folder=folder, user="a", now=NOON.isoformat(), again=again)).live == entry
    finally:
        pool.close()


def test_a_dataset_that_cannot_be_replayed_is_refused_in_a_line(live_asked: LiveAsked) -> None:
    rows = live_asked.data.rows
    bfcl = msgspec.structs.replace(rows[0], world="bfcl")
    with pytest.raises(UserError, match="rows of the world bfcl: a board replays the bundled worlds alone"):
        LiveAsked.of(msgspec.structs.replace(live_asked.data, rows=(*rows[1:], bfcl)))
    clean = tuple(row for row in rows if row.clean)
    with pytest.raises(UserError, match="no row with a fault"):
        LiveAsked.of(msgspec.structs.replace(live_asked.data, rows=clean))
    with pytest.raises(UserError):
        load_live("no/such/folder/here")
