"""`rbtc build toolrl-dr` as a user meets it, with an endpoint on the loopback interface."""

import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.io import parquet
from tests.loopback import LoopbackServer

from ..conftest import Rbtc
from . import rlla_rows as made


def rewritten(body: Any) -> str:
    """What the endpoint answers: the marked text in other words, or a new tool."""
    asked = body["messages"][-1]["content"]
    if "-CONVERSATION>" in asked:
        name = f"old_{zlib.crc32(asked.encode())}"
        schema = {"type": "object", "properties": {}, "required": []}
        return json.dumps({"tools": [{"name": name, "description": f"Keeps {name}.", "parameters": schema}]})
    found = re.search(r"<(TEXT-\w+)>\n(.*?)\n</\1>", asked, re.DOTALL)
    assert found is not None
    return f"In other words: {found.group(2)}"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "rlla"
    made.write_parquet(folder / "train.parquet", [made.ferry_row(n) for n in range(60)])
    made.write_parquet(folder / "test.parquet", [made.ferry_row(1_000)])
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path / "no sources"))


def test_an_endpoint_writes_the_texts_of_the_drawn_types_and_a_second_build_asks_nothing(
    source: Path, tmp_path: Path, rbtc: Rbtc
) -> None:
    with LoopbackServer(rewritten) as server:
        spec = f"openai:tiny@{server.url}"
        command = ("build", "toolrl-dr", "--rlla", source, "--generator", spec, "--json", "--out")
        first = json.loads(rbtc(*command, "one").out)
        asked = len(server.bodies)
        assert rbtc(*command, "two").code == 0
        assert len(server.bodies) == asked > 0
    assert first["not_generated"] == [] and len(first["types"]) == 16
    assert first["rows"]["full"] == {
        "train": 60,
        "perturbed": 60,
        "validation": 2,
        "validation_perturbed": 1,
    }
    found = [
        json.loads(r["extra_info"]) for r in parquet.read_rows(parquet.shards(tmp_path / "one/full", "train"))
    ]
    written = [info for info in found if info["generator"] != "rule"]
    assert {info["generator"] for info in written} == {"tiny@v1"}
    assert {info["type_code"] for info in written} == set(first["generators"])
    one, two = (
        {p.name: p.read_bytes() for p in (tmp_path / x).rglob("*.parquet") if "full" in str(p)}
        for x in ("one", "two")
    )
    assert one == two


def test_without_an_endpoint_and_sources_the_report_says_what_was_not_done(source: Path, rbtc: Rbtc) -> None:
    said = " ".join(rbtc("build", "toolrl-dr", "--rlla", source).out.split())
    assert "Not generated (no generator): realistic_typos" in said
    assert "Leak check: not done: no benchmark sources at hand" in said
    assert "toolrl-dr" in said


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--ratio", "half"], "--ratio 'half' is not a number: give a share from 0 to 1"),
        (["--ratio", "1.5"], "--ratio 3/2 is not a share: give a number from 0 to 1"),
        (["--types", "CD,transient_timeout"], "transient_timeout happens at run time"),
        (["--config", "fulll"], "unknown config 'fulll': did you mean full?"),
        (["--max-cost", "3"], "--max-cost needs --price"),
        (["--sources", "nowhere"], "no benchmark sources in nowhere"),
        (["--generator", "redundant=recorded:nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    source: Path, tmp_path: Path, rbtc: Rbtc, arguments: list[str], line: str
) -> None:
    assert line in rbtc("build", "toolrl-dr", "--rlla", source, *arguments).refusal
    assert not (tmp_path / "toolrl-dr").exists()
