"""The package inside an exported Space is enough for the board: tried without the rest of the repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...test_folders import SPACE, run, without_gradio


def test_a_space_holds_all_that_the_board_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_gradio(monkeypatch)
    assert run(*SPACE.format(out=tmp_path / "space").split(" ")) == 0
    code = (
        "import sys, robustbench_tc\n"
        "from robustbench_tc.cli import leaderboard\n"
        "from robustbench_tc.eval.leaderboard.serve import open_store\n"
        "from robustbench_tc.eval.leaderboard import app, desk, hub, rebuild, site, store, worker\n"
        "store = open_store('results', None)\n"
        "rebuild.rebuild(store, [], only_missing=True)\n"
        "from robustbench_tc.eval.leaderboard.scoring import entries_of_paper\n"
        "site.Boards(store, entries_of_paper(), None).all()\n"
        "from robustbench_tc.worlds.find import find, tasks\n"
        "assert tasks(find('orders')) and tasks(find('calendar'))\n"
        "print(robustbench_tc.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "space",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "space")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "space" / "robustbench_tc" / "__init__.py")
