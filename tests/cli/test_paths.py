"""What the command line says of paths: a line each, whatever a path is called."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import Done

ONE = """version: 1
tools: [shop.json]
cases:
- {id: a, request: "What is the status of order 7?", expect: [{call: get, arguments: {order: 7}}]}
- {id: b, request: "Thanks!", expect: no_call}
"""
TOOLS = """[{"name": "get", "description": "The status of an order.", "parameters": {"type": "object",
"properties": {"order": {"type": "integer", "description": "Its number."}}, "required": ["order"]}},
{"name": "cancel", "description": "Cancels an order.", "parameters": {"type": "object", "properties": {}}}]"""


@pytest.fixture(autouse=True)
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("shop.json").write_text(TOOLS)
    Path("cases.yaml").write_text(ONE)
    return Path("cases.yaml")


def test_a_line_end_in_a_path_makes_no_second_line(cases: Path, rbtc: Callable[..., Done]) -> None:
    out = "a\nrbtc: forged\x1b[2J"
    build = "build", "--cases", cases, "--types", "clean", "--out", out
    done = rbtc(*build)
    assert done.code == 0 and Path(out).is_dir(), done.err
    assert r"2 rows in a\x0arbtc: forged\x1b[2J" in done.out.splitlines()
    assert not any(line.startswith("rbtc:") for line in done.out.splitlines())
    again = rbtc(*build)
    assert again.code == 1 and again.err.count("\n") == 1
    assert r"a\x0arbtc: forged\x1b[2J exists" in again.err
    assert rbtc("eval", out, "--agent", "oracle", "--out", "r\nun").code == 0
    gate = rbtc("gate", "r\nun")
    assert gate.code == 1 and gate.err.startswith(r"rbtc: r\x0aun has no pair") and gate.err.count("\n") == 1


@pytest.mark.parametrize("length", [245, 252, 300])
def test_a_name_that_is_too_long_is_what_the_message_says(
    length: int, cases: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    name = "x" * length
    done = rbtc("build", "--cases", cases, "--types", "clean", "--out", name)
    assert done.code == 1 and done.err.count("\n") == 1
    assert done.err.endswith(f"{name}: File name too long (choose a shorter one)\n")
    assert "." + name not in done.err, "a file of ours beside it is named"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.yaml", "shop.json"]


def test_types_without_a_row_are_an_error_and_clean_rows_alone_are_asked_for(
    cases: Path, rbtc: Callable[..., Done]
) -> None:
    cases.write_text(
        'version: 1\ntools: [shop.json]\ncases: [{id: b, request: "Thanks!", expect: no_call}]\n'
    )
    done = rbtc("build", "--cases", cases, "--types", "CD,paraphrase_tool_description", "--out", "out")
    assert done.code == 1 and done.err.count("\n") == 1 and not Path("out").exists()
    assert "no type makes a row of these cases (skipped pairs: " in done.err
    assert "--generator" in done.err and "--types clean" in done.err
    assert rbtc("build", "--cases", cases, "--types", "clean", "--out", "out").code == 0
