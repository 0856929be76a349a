"""Live runs on the Hub: one commit each, and another machine gets the very files."""

import subprocess
import sys
import textwrap
from pathlib import Path

from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.live_data import LiveAsked
from robustbench_tc.eval.leaderboard.store import FILES, Store

from ...conftest import ROOT
from ...hub import WRITER, Hub
from . import desks

PROGRAM = """
import sys
from pathlib import Path
from robustbench_tc.eval.leaderboard.hub import HubStore
from robustbench_tc.eval.leaderboard.rebuild import look
from robustbench_tc.eval.leaderboard.index import Index
from robustbench_tc.eval.leaderboard.store import Store

store = HubStore(Path(sys.argv[1]), "acme/results")
print("fetched", store.sync())
for given in sys.argv[2:]:
    here = Store(Path(given))
    [one] = here.submissions()[0]
    with store.locked():
        store.add(one, here.path(one.id), here.live_entry(one.id))
looked = look(store, {}, Index(store))
print("live", [row.id for board in looked.live.values() for row in board.rows], "others", looked.submissions)
"""


def test_a_live_run_is_one_commit_and_another_machine_gets_it(
    asked: Asked, live_asked: LiveAsked, live_run: Path, tmp_path: Path
) -> None:
    here = Store(tmp_path / "here")
    one = desks.listed(Desk(here, desks.InProcess(asked, Limits(), live_asked), Limits()), live_run)

    def said(hub: Hub, store: str, *given: Path) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / store), *map(str, given)],
            cwd=ROOT,
            env=hub.environment(WRITER, tmp_path / f"cache-{store}"),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    with Hub() as hub:
        there = f"live ['{one}'] others {{}}"
        said(hub, "a")
        commits = hub.commits("datasets/acme/results")
        assert said(hub, "a", here.folder) == ["fetched 0", there]
        assert hub.commits("datasets/acme/results") == commits + 1
        assert said(hub, "b") == ["fetched 1", there]
    a, b = Store(tmp_path / "a"), Store(tmp_path / "b")
    for name in FILES["live"]:
        assert (a.path(one) / name).read_bytes() == (b.path(one) / name).read_bytes()
    assert a.live_entry(one) == b.live_entry(one) == here.live_entry(one) is not None
