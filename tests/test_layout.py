"""The house: every room is a link, and rooms stand in one order (pyproject.toml, for import-linter)."""

import ast
import graphlib
import re
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from pathlib import Path
from types import FrameType

import grimp
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.builders.perturb import REGISTRY

from .conftest import ROOT
from .loopback import LoopbackServer, reply

ROOMS = ("builders", "audits", "eval", "train_recipes", "sql", "dataset_cards", "integrations")
PACKAGE = "robustbench_tc"


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Which module imports which, inside functions too."""
    return grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_a_link_to_the_top_level_folder(room: str) -> None:
    link = ROOT / "src" / PACKAGE / room
    assert link.is_symlink()
    assert link.resolve() == ROOT / room


def test_every_module_of_the_house_stands_in_one_place_of_the_order(graph: grimp.ImportGraph) -> None:
    (order,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    placed = Counter(name.strip() for room in order["layers"] for name in room.split(":"))
    parts = {*graph.find_children(PACKAGE), *graph.find_children(f"{PACKAGE}.eval")} - {f"{PACKAGE}.eval"}
    assert placed == Counter(part.removeprefix(f"{PACKAGE}.") for part in parts)


def test_no_module_imports_itself_by_way_of_others(graph: grimp.ImportGraph) -> None:
    """Imports inside functions count: they hide a circle, they do not open it."""
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    graphlib.TopologicalSorter(imports).prepare()  # raises CycleError with the circle


def test_every_type_of_the_taxonomy_has_a_unit_and_no_unit_is_without_a_type() -> None:
    assert set(REGISTRY) == {t.code for t in taxonomy.types("all")}


IMPORTS_NONE = {
    # Neither the command line, nor an extra, nor the rooms.
    "import robustbench_tc.api": (
        "cyclopts rich robustbench_tc.cli datasets openai pandas great_expectations cryptography gradio "
        "fastapi ray torch transformers vllm duckdb pyarrow numpy jinja2 aiohttp robustbench_tc.eval.score "
        "robustbench_tc.builders.perturb"
    ),
    # A second at every start, for a schema; who reads a run does without pandas too.
    "from robustbench_tc import api, schema; from robustbench_tc.builders import build; "
    "from robustbench_tc.builders.live import build as live; from robustbench_tc.eval.stats import runs; "
    "from robustbench_tc.eval.live import score; "
    "schema.arrow_schema(schema.PublishedSample)": "datasets pandas duckdb",
}


@pytest.mark.parametrize("code", IMPORTS_NONE)
def test_heavy_packages_wait_for_their_use(code: str) -> None:
    listed = f"import sys; print([m for m in {IMPORTS_NONE[code].split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{code}; {listed}"], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_no_body_of_a_function_of_the_product_is_over_80_lines() -> None:
    """A verb's signature, which declares its options, is longer. Complexity 20 is ruff's C901."""
    folders = (*ROOMS, "src", "scripts")
    long = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and len(node.body) > 1
        and (node.end_lineno or 0) - node.body[int(ast.get_docstring(node) is not None)].lineno >= 80
    ]
    assert long == []


# --- docs/architecture.md ------------------------------------------------------------------------------

ARCHITECTURE = re.sub(r"(?s)```.*?```", "", (ROOT / "docs" / "architecture.md").read_text("utf-8"))
"""Without its picture."""


def chain(heading: str) -> list[str]:
    """The files of a numbered list, in order."""
    section = ARCHITECTURE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, re.MULTILINE)


REPLY, ROW = chain("A reply, from the endpoint to its verdict"), chain("A row, from its source to Parquet")


def test_every_place_that_the_architecture_names_is_there() -> None:
    named = [word for word in re.findall(r"`([^`]+)`", ARCHITECTURE) if "/" in word]
    assert len(named) > 40
    assert [place for place in named if not (ROOT / place).exists()] == []


def test_a_reply_and_a_row_go_through_nine_files_at_most() -> None:
    assert 5 <= len(REPLY) <= 9 and 5 <= len(ROW) <= 9


def test_the_architecture_has_a_line_for_every_room() -> None:
    (order,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = re.findall(r"`([\w/.]+)`", ARCHITECTURE.partition("## A reply")[0].partition("| room |")[2])
    places = {Path(room).as_posix().removeprefix(f"src/{PACKAGE}/").removesuffix(".py") for room in rooms}
    for layer in order["layers"]:
        for part in map(str.strip, layer.split(":")):
            top = part.replace(".", "/")
            inside = any(top == place or top.startswith(f"{place}/") for place in places)
            assert inside or not (ROOT / "src" / PACKAGE / top).is_dir(), part


def test_the_files_of_a_replys_way_are_gone_through(bundled: Path, tmp_path: Path) -> None:
    """One row that a model answers, from the endpoint to its verdict."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    with LoopbackServer(lambda body: reply("I do not know.")) as server:
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            api.evaluate(
                bundled, model="tiny", base_url=server.url, limit=1, probe=False, out=tmp_path / "run"
            )
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    gone_through = {Path(file).resolve() for file in seen}
    assert [file for file in REPLY if ROOT / file not in gone_through] == []
