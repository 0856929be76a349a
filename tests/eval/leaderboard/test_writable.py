"""Where a Space writes: to what is kept, else to what can be written at all."""

import os
from pathlib import Path

import pytest

from robustbench_tc.eval.leaderboard import writable


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Folders for what is kept, the code, temporary files and the home; nothing is named by a variable."""
    made = {name: tmp_path / name for name in ("data", "code", "tmp", "home")}
    for folder in made.values():
        folder.mkdir()
    for name in (writable.RESULTS, "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made["home"]))
    monkeypatch.setattr("tempfile.tempdir", str(made["tmp"]))
    monkeypatch.setattr(writable, "KEPT", made["data"])
    monkeypatch.chdir(made["code"])
    return made


def forbid(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """As for a user who may not write there; root may everywhere."""
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) not in folders)


def test_results_go_to_what_is_kept_and_else_to_what_can_be_written(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert writable.results_folder() == places["data"] / "results"
    forbid(monkeypatch, places["data"])
    assert writable.results_folder() == places["code"] / "results"
    forbid(monkeypatch, places["data"], places["code"])
    new = writable.results_folder()
    assert new.is_dir() and new.parent == places["tmp"] and new.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(writable, "KEPT", places["data"] / "away")
    forbid(monkeypatch)
    assert writable.results_folder() == places["code"] / "results"
    monkeypatch.setenv(writable.RESULTS, "/named/results")
    assert writable.results_folder() == Path("/named/results")


def test_the_hub_has_a_cache_where_the_home_is_none(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cache() -> str | None:
        writable.give_hub_a_cache()
        found = os.environ.get("HF_HOME")
        monkeypatch.delenv("HF_HOME", raising=False)
        return found

    assert cache() is None  # its own
    forbid(monkeypatch, places["home"])
    given = cache()
    assert given is not None and Path(given).parent == places["tmp"]
    forbid(monkeypatch, Path("/"))
    monkeypatch.setenv("HOME", "/nonexistent/home")
    assert cache() is not None
    forbid(monkeypatch)
    with monkeypatch.context() as nobody_knows_the_user:
        nobody_knows_the_user.setattr(Path, "expanduser", _no_home)
        assert cache() is not None
    monkeypatch.setenv("XDG_CACHE_HOME", str(places["code"]))
    assert cache() is None
    monkeypatch.setenv("HF_HOME", "/named")
    writable.give_hub_a_cache()
    assert os.environ["HF_HOME"] == "/named"


def _no_home(_: Path) -> Path:
    raise RuntimeError("Could not determine home directory.")
