"""A type and a source, added as docs/extending.md says and by nothing else: every command takes them."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, nightly

ROOMS = "src builders audits eval sql dataset_cards train_recipes scripts docs".split()

ERRANDS = (
    {
        "id": "stamps",
        "question": "Buy 12 stamps at the quay office.",
        "tools": [
            {
                "name": "buy_stamps",
                "description": "Buys stamps.",
                "parameters": {
                    "type": "object",
                    "properties": {"office": {"type": "string"}, "count": {"type": "integer"}},
                    "required": ["office", "count"],
                },
            },
            {
                "name": "post_letter",
                "description": "Posts a letter.",
                "parameters": {"type": "object", "properties": {"office": {"type": "string"}}},
            },
        ],
        "call": {"name": "buy_stamps", "parameters": {"office": "quay", "count": 12}},
    },
    {
        "id": "shoes",
        "question": "Have the red shoes mended in Mill Lane.",
        "tools": [
            {
                "name": "repair",
                "description": "Has a thing repaired.",
                "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
            }
        ],
        "call": {"name": "repair", "parameters": {"what": "red shoes"}},
    },
)


def modules() -> tuple[str, str]:
    """The type's and the source's module, as the page prints them."""
    page = (ROOT / "docs" / "extending.md").read_text("utf-8")
    kind, source = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    return kind, source


def python(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, timeout=600
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with a module for a type, one for a source, and the source's pins; then `make facts`."""
    folder = tmp_path_factory.mktemp("extending")
    for room in ROOMS:
        # Compiled modules come along: Python takes one only beside a source of the same size and time.
        shutil.copytree(ROOT / room, folder / room, symlinks=True, ignore=shutil.ignore_patterns(".*"))
    kind, source = modules()
    (folder / "builders" / "perturb" / "reversed_tools.py").write_text(kind)
    for package in ("", "builders", "builders/perturb"):
        (folder / "tests" / package).mkdir()
        shutil.copy(ROOT / "tests" / package / "__init__.py", folder / "tests" / package)
    for name in ("cases.py", "planted.py", "clean.yaml", "golden.yaml", "defects.yaml"):
        shutil.copy(ROOT / "tests" / "builders" / "perturb" / name, folder / "tests" / "builders" / "perturb")
    page = (ROOT / "docs" / "extending.md").read_text("utf-8")
    for name, block in zip(
        ("golden.yaml", "defects.yaml"), re.findall(r"```yaml\n(.*?)```", page, re.DOTALL), strict=True
    ):
        with (folder / "tests" / "builders" / "perturb" / name).open("a", encoding="utf-8") as file:
            file.write(block)
    (folder / "builders" / "sources" / "errands.py").write_text(source)
    unpinned = python(folder, "scripts/write_facts.py")
    assert unpinned.returncode == 1
    assert "errands/errands.jsonl is not pinned in builders/data/pins.json" in unpinned.stderr

    records = b"".join(json.dumps(record).encode() + b"\n" for record in ERRANDS)
    place = folder / "builders" / "sources" / "bundled" / "errands" / "errands.jsonl"
    place.parent.mkdir()
    place.write_bytes(records)
    path = folder / "builders" / "data" / "pins.json"
    pins: dict[str, Any] = json.loads(path.read_bytes())
    pins["sources"]["errands"] = {
        "repository": "acme/errands",
        "commit": "0" * 40,
        "commit_date": "2026-01-01",
        "licence": "Apache-2.0",
        "licence_file": "errands/LICENSE",
        "citation": "Acme, Errands, 2026",
    }
    pins["files"].append(
        {
            "path": "errands/errands.jsonl",
            "source": "errands",
            "upstream_path": "errands.jsonl",
            "bytes": len(records),
            "sha256": hashlib.sha256(records).hexdigest(),
        }
    )
    path.write_text(json.dumps(pins))
    written = python(folder, "scripts/write_facts.py")
    assert written.returncode == 0, written.stderr
    assert "out of date" not in python(folder, "scripts/write_facts.py", "--check").stdout
    return folder


def test_the_page_keeps_its_promise_of_one_short_file() -> None:
    assert all(len(module.splitlines()) <= 60 for module in modules())


SHOWS = """
from tests.builders.perturb import cases, planted
clean, row = cases.pair("reversed_tools")
assert cases.difference(clean, row) == cases.GOLDEN["reversed_tools"][0].reads
print([check for check, plant in planted.defects_of("reversed_tools") if plant(clean, row) != row])
"""


def test_the_pages_golden_case_and_defects_are_those_of_its_type(copy: Path) -> None:
    shown = python(copy, "-c", SHOWS)
    assert shown.stdout == "['gold_index_means_the_clean_tool', 'unit_finds_nothing']\n", shown.stderr
    page = (copy / "docs" / "types.md").read_text("utf-8").partition("## reversed_tools")[2]
    assert "caught by `rows.gold_index_means_the_clean_tool` and `rows.unit_finds_nothing`" in page
    assert "+ gold tool: reserve(place: Where, seats: How many) Books a table." in page


RELEASE = "releases/1.0.0/robustbench-tc"


def tried(copy: Path, dataset: str, *before: str, after: tuple[str, ...] = ()) -> dict[str, str]:
    """What commands say in the copy: those on the way to the dataset, a run of it, and those behind."""
    (copy / "trial.py").write_text((ROOT / "tests" / "extending_trial.py").read_text())
    commands = (
        *before,
        f"eval {dataset} --agent first-of-duplicates --out run",
        "report run --out report",
        "sql heatmap --run run --json",
        "sql by_source --run run --json",
        "failures run --type reversed_tools",
        *after,
    )
    done = python(copy, "trial.py", *commands)
    assert done.returncode == 0, done.stderr
    found = {command.split()[0] + command.split()[1]: said for command, _, said in json.loads(done.stdout)}
    assert [(command, said[-800:]) for command, code, said in json.loads(done.stdout) if code] == []
    assert "verdicts on the agent first-of-duplicates are the known ones" in found[f"eval{dataset}"]
    card = (copy / dataset / "README.md").read_text("utf-8")
    assert (
        "| reversed_tools | RevTools | action | 63 |" in card and "### reversed_tools\n\nThe registry" in card
    )
    assert "| errands | acme/errands |" not in card  # the bundled samples are nobody's upstream
    page = (copy / "report" / "report.html").read_text("utf-8")
    assert "RevTools" in page and "errands" in page
    assert json.loads(found["sqlheatmap"])[0]["reversed_tools"] == 1.0
    assert {row["source"] for row in json.loads(found["sqlby_source"])} >= {"errands", "tooleyes"}
    return found


def test_every_command_takes_a_new_type_and_a_new_source(copy: Path) -> None:
    found = tried(
        copy,
        "robustbench-tc",
        "build --profile bundled --types reversed_tools --out robustbench-tc",
        "show robustbench-tc errands__stamps::reversed_tools",
        "list types --json",
    )
    (listed,) = (one for one in json.loads(found["listtypes"]) if one["code"] == "reversed_tools")
    assert listed["pack"] == "registry" and listed["status"] == "extension"
    assert listed["sources"][-1] == "errands"
    assert "buy_stamps, post_letter" in found["showrobustbench-tc"]


@nightly  # all types, so that the gate lets it through to the board
def test_so_do_the_gate_the_release_and_the_board(copy: Path) -> None:
    for name in ("robustbench-tc", "run", "report"):
        shutil.rmtree(copy / name, ignore_errors=True)
    types = "observation,action,reward,transition,reversed_tools"
    found = tried(
        copy,
        RELEASE,
        f"build --profile bundled --allow-missing --types {types} --out robustbench-tc",
        "audit robustbench-tc",
        f"release robustbench-tc --version 1.0.0 --out {RELEASE} --trial",
        f"verify {RELEASE}",
        after=(
            "audit run",
            f"leaderboard init results {RELEASE}",
            "leaderboard submit run --to results --model acme/first --dry-run --json",
        ),
    )
    assert "may be released" in found["auditrobustbench-tc"] and "failed 0" in found["auditrobustbench-tc"]
    said = found["leaderboardsubmit"]
    checked = json.loads(said[said.index("{") :])
    assert "reversed_tools" not in checked["entry"]["core"]["types"], "an extension is in no headline number"
