"""What leaves the house: the sdist, the wheel, and the lock with its checksums."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from .conftest import ROOT
from .test_layout import ROOMS

BUILD = (
    "import sys, hatchling.build as b; print(b.build_sdist(sys.argv[1])); print(b.build_wheel(sys.argv[1]))"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(sdist, wheel), made by the real backend of a copy that git would make: tracked files and links."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no git checkout to build from")
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("dist")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and os.path.lexists(ROOT / name):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name, follow_symlinks=False)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(out)], cwd=copy, capture_output=True, text=True, check=True
    )
    sdist, wheel = done.stdout.split()[-2:]
    return out / sdist, out / wheel


def in_sdist(path: Path) -> set[str]:
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def in_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def package_files() -> set[str]:
    """What the package needs when it runs: every file of the rooms and of the contract that git holds."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    rooms = {name for name in names.decode().split("\0") if name.split("/")[0] in ROOMS}
    own = {name for name in names.decode().split("\0") if name.startswith("src/robustbench_tc/")}
    links = {f"src/robustbench_tc/{room}" for room in ROOMS}
    there = {f"robustbench_tc/{name}" for name in rooms} | {name.removeprefix("src/") for name in own - links}
    return {name for name in there if (ROOT / "src" / name).exists()}


def test_the_sdist_holds_what_a_distributor_needs(built: tuple[Path, Path]) -> None:
    found = in_sdist(built[0])
    assert {"src/" + name for name in package_files()} <= found
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert len(pages) >= 12 and pages <= found
    for name in (
        "README.md",
        "LICENSE",
        "NOTICE",
        "CITATION.cff",
        "CHANGELOG.md",
        "pyproject.toml",
        "Makefile",
    ):
        assert name in found, name
    assert {"requirements.lock", "scripts/locked.py", "tests/conftest.py", "PKG-INFO"} <= found
    strange = [name for name in found if re.search(r"(^|/)(\.venv|out|dist|__pycache__|\.git)/|\.pyc$", name)]
    assert strange == []


def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    found = in_wheel(built[1])
    assert package_files() <= found
    inside = {name.split("/")[0] for name in found}
    assert len(inside) == 2 and "robustbench_tc" in inside, (
        "no `eval` or `builders` in anybody's site-packages"
    )
    licences = {name.rpartition("/")[2] for name in found if "/licenses/" in name}
    assert licences == {"LICENSE", "NOTICE"}


def test_the_notice_names_every_source_as_pinned() -> None:
    notice = (ROOT / "NOTICE").read_text()
    sources = json.loads((ROOT / "builders/data/pins.json").read_text())["sources"]
    assert len(sources) == 7
    for origin in sources.values():
        assert f"{origin['repository']}, commit {origin['commit']}, {origin['licence']}" in notice
        assert f"https://github.com/{origin['repository']}" in notice
    for path in re.findall(r"^  ([\w/]+\.[\w.]+|[\w/]+/)(?:, ([\w/.]+))?$", notice, re.MULTILINE):
        assert all((ROOT / one).exists() for one in path if one)


def test_the_wheel_works_where_it_is_installed(built: tuple[Path, Path], tmp_path: Path) -> None:
    """In an environment of its own, which borrows the dependencies of this one and has no checkout near."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python*/site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    offline = ("--no-deps", "--no-index", "--no-compile", "--quiet")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", *offline, built[1]], check=True
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RBTC"))}

    def run(*words: str) -> str:
        done = subprocess.run(
            [home / "bin" / "rbtc", *words], cwd=tmp_path, env=clean, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    where = subprocess.run(
        [str(python), "-c", "import robustbench_tc; print(robustbench_tc.__file__)"],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(site))
    assert run("--version").startswith("rbtc ")
    assert list(tmp_path.iterdir()) == [home], "one command from nothing"
    said = run("quickstart").splitlines()
    known = said.index("all 1517 verdicts on the agent name-biased are the known ones")
    assert any(line.startswith("Loses 66 points when tool names or prices mislead") for line in said[known:])
    assert "100.0" in run("summary", "rbtc-quickstart/run")
    for name, file in (("inspect", "pyproject.toml"), ("verifiers", "README.md"), ("lm-eval", "_rbtc.yaml")):
        place = Path(run("list", name).strip())
        assert place.is_relative_to(site) and (place / file).is_file()
    assert "wrote 9 files" in run("init", "demo")
    assert "rows in bench" in run("build", "--cases", "demo/cases.yaml", "--out", "bench")
    assert (tmp_path / "bench" / "clean").is_dir()


# --- the lock -------------------------------------------------------------------------------------------


LOCK = (ROOT / "requirements.lock").read_text()


def wanted(*extras: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/locked.py"), *extras], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_every_entry_of_the_lock_is_pinned_and_has_hashes() -> None:
    entries = re.split(r"^(?=\w)", LOCK, flags=re.MULTILINE)[1:]
    assert len(entries) > 100
    for entry in entries:
        assert re.match(r"[a-z0-9-]+(\[[\w,]+\])?==[\w.!+]+( ;|\s*\\)", entry), entry[:80]
        assert re.findall(r"--hash=sha256:[0-9a-f]{64}", entry), entry[:80]
    assert not re.search(r"https?://|file:|--index|--extra-index|--find-links|--trusted", LOCK)


def test_the_lock_covers_what_the_project_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = re.findall(r"^([a-z0-9-]+)", LOCK, re.MULTILINE)
    extras = wanted("--extras").split()
    assert set(project["optional-dependencies"]) - set(extras) == {
        "train",
        "trl",
        "vllm",
        "serve",
        "inspect",
        "lm-eval",
    }
    assert set(re.findall(r"^([a-z0-9-]+)", wanted(*extras), re.MULTILINE)) == set(locked)


def test_an_environment_gets_its_part_only() -> None:
    core, audit, scale = wanted(), wanted("audit"), wanted("scale")
    for name in ("ray", "great-expectations", "gradio", "pytest", "mypy"):
        assert not re.search(rf"^{name}==", core, re.MULTILINE), name
    assert re.search(r"^great-expectations==", audit, re.MULTILINE) and "\nray==" not in audit
    assert re.search(r"^ray==", scale, re.MULTILINE) and "great-expectations" not in scale
    for text in (core, audit, scale):  # complete: whatever a package of it needs is in it too
        names = set(re.findall(r"^([a-z0-9-]+)", text, re.MULTILINE))
        for entry in re.split(r"^(?=\w)", LOCK, flags=re.MULTILINE)[1:]:
            needed_by = set(re.findall(r"#(?: via|  ) ([\w-]+)", entry))
            assert not needed_by & names or entry.split("==")[0].split("[")[0] in names


def test_what_the_lock_lacks_is_said(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    text = (ROOT / "pyproject.toml").read_text().replace('"rich>=', '"notlocked>=1", "rich>=')
    (tmp_path / "pyproject.toml").write_text(text)
    command = [sys.executable, str(tmp_path / "scripts/locked.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "run `make lock`" in done.stderr
    done = subprocess.run([*command, "dve"], capture_output=True, text=True)
    assert done.returncode == 1 and "no locked extra 'dve'" in done.stderr


# --- the interpreters -----------------------------------------------------------------------------------


def find_python(version: str, home: Path, *folders: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "scripts/find_python.sh"), version],
        env={"HOME": str(home), "PATH": ":".join(map(str, [*folders, "/usr/bin", "/bin"]))},
        capture_output=True,
        text=True,
    )


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    "place", [".pyenv/versions/3.12.1/bin/python", ".local/share/uv/python/cpython-3.12.7-linux/bin/python3"]
)
def test_an_interpreter_behind_a_dead_shim_is_found(place: str, tmp_path: Path) -> None:
    """pyenv puts a `python3.12` into the PATH that runs nothing while another version is selected."""
    script(tmp_path / "shims/python3.12", "echo 'pyenv: python3.12: command not found' >&2; exit 127")
    assert find_python("3.99", tmp_path, tmp_path / "shims").returncode == 1
    # Stands in for an interpreter: prints what the real one would.
    script(tmp_path / place, 'case "$2" in *3.12*) echo "$0";; *) exit 1;; esac')
    done = find_python("3.12", tmp_path, tmp_path / "shims")
    assert done.stdout.strip() == str(tmp_path / place) or "/usr" in done.stdout
    assert done.returncode == 0


def test_one_that_cannot_make_environments_is_passed_over(tmp_path: Path) -> None:
    script(tmp_path / "bin/python3.99", "exit 1")
    assert find_python("3.99", tmp_path, tmp_path / "bin").returncode == 1
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    base = Path(sys.base_prefix) / "bin"
    found = find_python(version, tmp_path, base)
    assert found.returncode == 0 and Path(found.stdout.strip()).is_file()


def test_every_hint_names_an_extra_that_brings_the_package() -> None:
    """`need_extra(package, extra)`: the extra exists in pyproject.toml and holds the package."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brings = {
        extra: {re.split(r"[^A-Za-z0-9_.-]", one)[0].lower().replace("-", "_") for one in wanted}
        for extra, wanted in extras.items()
    }
    found = {
        hint
        for room in (*ROOMS, "src")
        for path in (ROOT / room).rglob("*.py")
        for hint in re.findall(r'need_extra\("([\w-]+)", "([\w-]+)"\)', path.read_text())
    }
    assert len(found) >= 8
    missing = {hint for hint in found if hint[0].replace("-", "_") not in brings.get(hint[1], ())}
    assert missing == set()
