"""Results on the Hub: one commit per submission, nothing lost with an answer, a fresh machine catches up."""

import subprocess
import sys
import textwrap
from pathlib import Path

from ...conftest import ROOT
from ...hub import READER, WRITER, Hub
from .conftest import RunOf

REPO = "datasets/acme/results"

PROGRAM = """
import sys
from pathlib import Path
from robustbench_tc.errors import UserError
from robustbench_tc.eval.leaderboard.hub import HubStore
from robustbench_tc.eval.leaderboard.moderation import Decision
from robustbench_tc.eval.leaderboard.rebuild import load
from tests.eval.leaderboard.few import entry, submission

NOW = "2026-11-25T10:00:00+00:00"
store, run, what = HubStore(Path(sys.argv[1]), "acme/results"), Path(sys.argv[2]), sys.argv[3]
try:
    print("fetched", store.sync())
    for word in what.split():
        with store.locked():
            if word.isdigit():
                store.add(submission(int(word), "one"), run, entry({"CD": [1, 0]}))
            else:
                action, _, number = word.partition(":")
                one = submission(int(number), "one").id
                store.decide(Decision(submission=one, action=action, reason=word, by="ann", at=NOW))
except UserError as error:
    print("error", error)
print(len(store.submissions()[0]), "stored")
off, damaged = store.off_the_board()
boards = load(store, {})
shown = sorted(row.id[-1] for board in boards.values() for row in (*board.rows, *board.past))
print("shown", *shown, "off", *(f"{one[-1]}:{by.reason}" for one, by in sorted(off.items())), *damaged)
"""


def said(
    hub: Hub, home: Path, store: str, run: Path, what: str = "", token: str | None = WRITER
) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(home / store), str(run), what],
        cwd=ROOT,
        env=hub.environment(token, home / f"cache-{store}"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert WRITER not in done.stdout + done.stderr
    return done.stdout.splitlines()


def test_every_submission_is_one_commit_and_another_machine_gets_it(tmp_path: Path, run_of: RunOf) -> None:
    run = run_of("oracle")
    with Hub() as hub:
        assert said(hub, tmp_path, "a", run, "1 2") == ["fetched 0", "2 stored", "shown 1 2 off"]
        commits = hub.commits(REPO)
        assert said(hub, tmp_path, "a", run, "3") == ["fetched 0", "3 stored", "shown 1 2 3 off"]
        assert hub.commits(REPO) == commits + 1
        assert said(hub, tmp_path, "b", run) == ["fetched 3", "3 stored", "shown 1 2 3 off"]
        for name in ("record.json", "predictions.parquet", "run.json"):
            first = tmp_path / "a" / "submissions" / "20261121-000000000001" / name
            assert (tmp_path / "b").joinpath(*first.relative_to(tmp_path / "a").parts).read_bytes() == (
                first.read_bytes()
            )


def test_an_answer_that_got_lost_stores_once_and_a_refusal_not_at_all(tmp_path: Path, run_of: RunOf) -> None:
    run = run_of("oracle")
    with Hub() as hub:
        said(hub, tmp_path, "a", run)
        hub.fault("commit", drop=True, times=1)
        assert said(hub, tmp_path, "a", run, "1")[-2] == "1 stored"
        hub.repair()
        assert said(hub, tmp_path, "b", run) == ["fetched 1", "1 stored", "shown 1 off"]
        hub.fault("commit", status=500)
        lines = said(hub, tmp_path, "a", run, "2")
        assert "nothing was stored" in lines[1] and lines[-2] == "1 stored"
        hub.repair()
        assert said(hub, tmp_path, "a", run, "2")[-2] == "2 stored"


def test_who_may_not_write_gets_one_line(tmp_path: Path, run_of: RunOf) -> None:
    with Hub() as hub:
        lines = said(hub, tmp_path, "a", run_of("oracle"), "1", token=READER)
        assert lines[0].startswith("error acme/results: ") and lines[-2] == "0 stored"


def test_decisions_on_what_is_shown_come_to_every_machine(tmp_path: Path, run_of: RunOf) -> None:
    run = run_of("oracle")
    with Hub() as hub:
        said(hub, tmp_path, "a", run, "1 2 hide:1")
        commits = hub.commits(REPO)
        assert said(hub, tmp_path, "b", run)[-1] == "shown 2 off 1:hide:1"
        # Somebody decides elsewhere, also on what is nowhere; a sync brings it, and takes nothing back.
        lines = said(hub, tmp_path, "b", run, "unhide:1 withdraw:2 hide:9")
        assert lines[-1] == "shown 1 off 2:withdraw:2 9:hide:9"
        assert hub.commits(REPO) == commits + 3
        assert said(hub, tmp_path, "a", run)[-1] == "shown 1 off 2:withdraw:2 9:hide:9"
        # A refusal of the Hub's decides nothing here either.
        hub.fault("commit", status=500)
        lines = said(hub, tmp_path, "a", run, "hide:1")
        assert (
            lines[1].startswith("error acme/results: ") and lines[-1] == "shown 1 off 2:withdraw:2 9:hide:9"
        )
        hub.repair()
        assert said(hub, tmp_path, "c", run, "9")[-1] == "shown 1 off 2:withdraw:2 9:hide:9"
