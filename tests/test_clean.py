"""`make clean` and `make quickstart` in a copy of the folder: what make made goes, everything else stays."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT
from .test_folders import run
from .trees import tree, write

VENV = {"pyvenv.cfg": "home = x", "bin/python": "", "lib/python3.11/site-packages/x.py": ""}
TAGGED = {"CACHEDIR.TAG": "Signature: x", "v/cache": "x"}


def clean(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "clean.py")],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make quickstart` leaves."""
    out = tmp_path_factory.mktemp("quickstart") / "out"
    run("quickstart", "--out", out)
    return out


def test_what_make_made_is_removed(tmp_path: Path, outputs: Path) -> None:
    shutil.copytree(outputs, tmp_path / "out")
    write(tmp_path / ".venv", {**VENV, ".core": "", ".dev": ""})
    write(tmp_path / ".venv-3.12", {**VENV, ".core": ""})
    write(tmp_path / ".venv-scale", {**VENV, ".done": ""})
    for name in (".pytest_cache", ".mypy_cache", ".ruff_cache"):
        write(tmp_path / name, TAGGED)
    write(tmp_path, {"dist/robustbench_tc-1.0.0.tar.gz": "", "README.md": "mine"})
    done = clean(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(tree(tmp_path)) == {"README.md"}
    assert clean(tmp_path).returncode == 0


def test_everything_else_stays_and_is_said(tmp_path: Path, outputs: Path) -> None:
    shutil.copytree(outputs, tmp_path / "out")
    write(tmp_path / "out", {"thesis.txt": "years", "robustbench-tc/notes.txt": "mine"})
    write(tmp_path / "out", dict.fromkeys(("robustbench-tc-live/a.txt", "live-run/b.txt"), "mine"))
    write(tmp_path / "out", {"run/verdicts.csv": "mine"})
    write(tmp_path / ".venv", VENV)  # somebody's own
    write(tmp_path / ".venv-train", {**VENV, ".done": "", "notes.txt": "mine"})
    write(tmp_path / ".venv-mine", {**VENV, ".done": ""})
    write(tmp_path / "elsewhere", {**VENV, ".done": ""})
    (tmp_path / ".venv-scale").symlink_to("elsewhere")
    write(tmp_path, {".mypy_cache/notes.txt": "mine", "dist/thesis.pdf": "mine"})
    before = tree(tmp_path)
    done = clean(tmp_path)
    assert done.returncode == 1
    assert tree(tmp_path) == before
    for name in (
        "notes.txt",
        "verdicts.csv",
        ".venv:",
        ".venv-train",
        ".venv-scale",
        ".mypy_cache",
        "thesis.pdf",
    ):
        assert name in done.stderr
    assert ".venv-mine" not in done.stderr and "Traceback" not in done.stderr


def test_outputs_that_are_links_stay(tmp_path: Path, outputs: Path) -> None:
    shutil.copytree(outputs / "robustbench-tc", tmp_path / "real")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "robustbench-tc").symlink_to(tmp_path / "real")
    before = tree(tmp_path)
    assert "is a link" in clean(tmp_path).stderr
    assert tree(tmp_path) == before


def test_no_recipe_deletes_by_itself() -> None:
    """What a recipe removes, it removes through a command that looks first."""
    makefile = (ROOT / "Makefile").read_text()
    for word in ("rm ", "rmdir", "git clean", "-delete", "mv "):
        assert word not in makefile
    for script in (ROOT / ".ci" / "run", *(ROOT / "train_recipes").rglob("*.sh")):
        assert "rm -" not in script.read_text()
