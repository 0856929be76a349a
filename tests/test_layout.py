"""The house: every room is a link, and rooms talk through the contract only."""

import ast
import sys
from pathlib import Path

import pytest

from robustbench_tc.builders.perturb import REGISTRY
from robustbench_tc.taxonomy import types

from .conftest import ROOT

ROOMS = ("builders", "audits", "eval", "train_recipes", "sql", "dataset_cards")
SHARED = ("io", "llm", "compute", "worlds", "own", "release")
CONTRACT = {
    "schema",
    "live",
    "worlds",
    "own",
    "taxonomy",
    "steps",
    "mixtures",
    "languages",
    "sources",
    "column_types",
    "errors",
    "seeding",
    "json_schema",
    "rlla_form",
    "transcript",
    "plain",
    "safe_text",
    "io",
    "llm",
    "compute",
    "",
    "__version__",
}


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_a_link_to_the_top_level_folder(room: str) -> None:
    link = ROOT / "src" / "robustbench_tc" / room
    assert link.is_symlink()
    assert link.resolve() == ROOT / room


def _imported(path: Path) -> set[str]:
    """Full names of everything a file imports, relative imports resolved."""
    package = ["robustbench_tc", *path.relative_to(ROOT).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_the_contract_and_itself_only(room: str) -> None:
    foreign = set()
    for path in (ROOT / room).rglob("*.py"):
        for name in _imported(path):
            top, _, rest = name.partition(".")
            assert top not in ROOMS, f"{path} imports {name}: say robustbench_tc.{name}"
            part = rest.split(".")[0]
            if top == "robustbench_tc" and part not in CONTRACT | {room}:
                foreign.add(f"{path.relative_to(ROOT)} imports {name}")
    assert not foreign


def test_the_contract_imports_no_room() -> None:
    package = ROOT / "src" / "robustbench_tc"
    for path in [*package.glob("*.py"), *(p for d in SHARED for p in (package / d).glob("*.py"))]:
        package_names = {name for name in _imported(path) if name.split(".")[0] == "robustbench_tc"}
        assert not {name for name in package_names if name.split(".")[1] in ROOMS}, path


def test_the_doors_stand_above_the_rooms() -> None:
    """`proxy` composes two rooms, so no room and no layer below may know it."""
    package = ROOT / "src" / "robustbench_tc"
    below = list(package.glob("*.py"))
    below += [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    below += [path for layer in SHARED for path in (package / layer).glob("*.py")]
    assert (package / "proxy").is_dir()
    assert not [path for path in below if any("robustbench_tc.proxy" in name for name in _imported(path))]


def test_every_type_of_the_taxonomy_has_a_unit_and_no_unit_is_without_a_type() -> None:
    assert set(REGISTRY) == {t.code for t in types("all")}


def test_heavy_packages_wait_for_their_use() -> None:
    """`rbtc --help` must not pay for datasets, openai or pyarrow."""
    import subprocess

    code = (
        "import sys; from robustbench_tc.cli._launch import app; app(); "
        "print([m for m in ('datasets', 'openai', 'pandas', 'great_expectations') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_function_of_the_product_is_over_80_lines() -> None:
    """The other bound, complexity 20, is ruff's C901."""
    folders = (*ROOMS, "src", "scripts")
    long = {
        f"{path.relative_to(ROOT)}: {node.name}": lines
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and (lines := node.end_lineno - node.lineno + 1) > 80
    }
    assert long == {}
