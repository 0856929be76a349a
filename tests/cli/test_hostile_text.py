"""What models, servers and files wrote is shown on a terminal, and never obeyed."""

import ast
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import schema
from robustbench_tc.cli import _console
from robustbench_tc.safe_text import safe, safe_json

from ..conftest import ROOT, Done
from ..eval import small

CLEAR, COLOUR, TITLE, BELL = "\x1b[2J", "\x1b[48;5;201m", "\x1b]0;owned\x07", "\x07"
LINK = "\x1b]8;;http://evil.example/\x1b\\click\x1b]8;;\x1b\\"
C1, BIDI, UP = "\x9b31m", "\u202eesrever\u202c", "\x1b[9A\x1b[K"
MARKUP = "[red]not red[/red] [link=http://evil.example]x[/link] :bomb: [/]"
EVIL = f"a{CLEAR}b{COLOUR}c{TITLE}d{LINK}e{C1}f{BIDI}g{UP}h\rover{BELL}\b\x7f\x85\u2066\U000e0041 {MARKUP}"

OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)|\r")
"""What rich itself sends to a terminal: styles, hiding the cursor, taking a status line back."""


@given(st.text())
def test_nothing_that_is_obeyed_passes(text: str) -> None:
    assert not OBEYED.search(safe(text)) and not OBEYED.search(
        safe_json(json.dumps(text, ensure_ascii=False))
    )
    assert "\n" not in safe(text, keep="")
    if text.isprintable():
        assert safe(text) == text


def test_every_code_point_is_seen_or_escaped() -> None:
    for code in range(sys.maxunicode + 1):
        c = chr(code)
        shown = safe(c)
        assert shown.startswith("\\") if OBEYED.match(c) else shown == c or shown.startswith("\\")
    assert safe("\x1b\x9b\u202e\ud800\U000e0041\x00\x7f") == r"\x1b\x9b\u202e\ud800\U000e0041\x00\x7f"
    assert safe("één 你好 हिन्दी क्‍ष 👩‍🚀\u3000\xa0\t\n") == "één 你好 हिन्दी क्‍ष 👩‍🚀\u3000\xa0\t\n"


@given(st.text())
def test_json_keeps_its_values(text: str) -> None:
    assert json.loads(safe_json(json.dumps({text: [text]}, ensure_ascii=False))) == {text: [text]}


def test_rich_obeys_no_text_whatever_it_is_put_into(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.markdown import Markdown
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table(EVIL, title=EVIL, caption=EVIL)
    table.add_column(EVIL, footer=EVIL)
    table.add_row(EVIL, Text(EVIL))
    for shown in (EVIL, table, Text(EVIL), Panel(EVIL), Markdown(f"`{EVIL}`\n\n{EVIL}")):
        _console.out.print(shown)
        _console.out.print(shown, markup=True, emoji=True)
    with _console.status(EVIL) as tell:
        tell(EVIL)
    _console.echo(EVIL + "\nforged")
    said = capsys.readouterr().out
    assert not OBEYED.search(said)
    assert r"\x1b[2J" in said and r"\u202eesrever" in said and "\nforged" not in said
    assert "[red]not red[/red]" in said and ":bomb:" in said


# --- the commands ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose every text is hostile."""
    rows = []
    for row in small.rows("CD", "transient_timeout", "same_name_A"):
        gold = row.tools[row.gold_tool_index or 0]
        tools = [msgspec.structs.replace(tool, description=EVIL + tool.description) for tool in row.tools]
        rows.append(
            msgspec.structs.replace(
                row,
                messages=(schema.Message("user", f"{EVIL} {gold.name}"),),
                tools=tuple(tools),
                generator=EVIL,
                flags=(EVIL,),
                injected_error=EVIL if row.injected_error else None,
                changes=(schema.Change("messages[0].content", before=EVIL, after=EVIL + " more"),)
                if row.type_code != "clean"
                else (),
            )
        )
    return small.write(tmp_path_factory.mktemp("hostile") / "robustbench-tc", rows)


@pytest.fixture(scope="module")
def runs(release: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of hostile models over it."""
    root = tmp_path_factory.mktemp("runs")

    def made(number: int) -> Path:
        def reply(row: schema.Sample) -> dict[str, Any]:
            return {
                "raw_output": f"{EVIL}\n[{row.tools[0].name}(a='{number}{MARKUP}')]",
                "injected": True if row.injected_error else None,
                "first_output": EVIL if row.injected_error else None,
                "finish_reason": EVIL,
            }

        model = f"{EVIL}{number}"
        return small.scored_run(
            root / f"run-{number}", release, model, reply, decoding={"stop": EVIL}, prompt_version=EVIL
        )

    return made(1), made(2)


BFCL = "bfcl_v3__made_1"


def test_no_command_passes_anything_on(
    release: Path,
    runs: tuple[Path, Path],
    rbtc: Callable[..., Done],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = runs
    commands: list[list[object]] = [
        ["show", release, BFCL],
        ["show", one, f"{BFCL}::CD", "--dataset", release],
        ["show", one, f"{BFCL}::transient_timeout", "--dataset", release],
        ["show", one, BFCL, "--dataset", release],
        ["failures", one],
        ["failures", one, "--type", EVIL],
        ["failures", one, "--json"],
        ["compare", one, two],
        ["compare", one, two, "--json"],
        ["compare", one, f"paper:{EVIL}"],
        ["summary", one, "--allow-missing"],
        ["summary", one, "--allow-missing", "--json"],
        ["summary", EVIL],
        ["score", one],
        ["sql", "accuracy", "--run", one, "--allow-missing"],
        ["sql", "hardest", "--run", one, "--allow-missing", "--json"],
        ["sql", EVIL, "--run", one],
        ["data", "diff", release, release],
        ["leaderboard", "submit", one, "--to", EVIL, "--dataset", release, "--model", EVIL],
        ["audit", one / "scores.parquet", "--dataset", release],
        ["eval", release, "--model", EVIL],
        ["eval", release, "--agent", EVIL],
        ["list", "models", EVIL],
        ["verify", EVIL],
        [EVIL],
        ["build", f"--{EVIL}"],
    ]
    for command in commands:
        done = rbtc(*command)
        assert "Traceback" not in done.err, (command[:1], done.err)
        assert not OBEYED.search(done.out + done.err), (command[:3], done.out, done.err)
        if command[-1] in ("json", "--json"):
            assert done.code in (0, 1) and done.out, (command[:3], done)
            json.loads(done.out)
    (tmp_path / "report").mkdir()
    done = rbtc("report", runs[0], runs[1], "--out", tmp_path / "report", "--allow-missing")
    assert done.code == 0 and not OBEYED.search(done.out + done.err)


def test_what_is_shown_is_what_was_written(
    release: Path, runs: tuple[Path, Path], rbtc: Callable[..., Done]
) -> None:
    """Nothing vanishes: the reader sees the characters that were there."""
    shown = rbtc("show", runs[0], f"{BFCL}::CD", "--dataset", release).out
    for part in (
        r"a\x1b[2Jb",
        r"\x1b]8;;http://evil.example/",
        r"\x9b31m",
        r"\u202eesrever",
        r"h\x0dover\x07\x08",
    ):
        assert part in shown
    assert MARKUP in shown
    rows = json.loads(rbtc("failures", runs[0], "--json").out)
    assert rows[0]["prediction"]["raw_output"].startswith(EVIL)


def test_on_a_real_terminal_too(release: Path, runs: tuple[Path, Path]) -> None:
    """With colours on: all that is left, once rich's own styles are taken away, is text."""
    said = on_a_terminal(
        ["show", release, f"{BFCL}::CD"],
        ["show", runs[0], f"{BFCL}::CD", "--dataset", release],
        ["failures", runs[0]],
        ["compare", runs[0], runs[1]],
        ["sql", "accuracy", "--run", runs[0], "--allow-missing"],
        ["audit", "predictions", runs[0] / "scores.parquet", "--dataset", release],
        ["summary", EVIL],
    )
    assert said.count("--- done") == 7 and r"\x1b[2J" in said and "\x1b[" in said
    assert "\x1b[48;5;201m" not in said
    assert not OBEYED.search(OURS.sub("", said))


SEVERAL = """
import json, sys
from robustbench_tc.cli import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["rbtc", *command]
    try:
        main()
    except SystemExit:
        print("--- done", flush=True)
"""


def on_a_terminal(*commands: list[object]) -> str:
    """What the commands, run one after the other, send to a terminal of their own."""
    ours, theirs = pty.openpty()
    listed = json.dumps([[str(word) for word in command] for command in commands])
    process = subprocess.Popen(
        [sys.executable, "-c", SEVERAL, listed],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "120"},
    )
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # the terminal is gone with its last process
        pass
    finally:
        os.close(ours)
        process.wait()
    return said.decode()


# --- nothing goes around the edge -----------------------------------------------------------------------

EDGE = {"_tables.py", "_console.py"}
PRINTS = {
    "print",
    "echo",
    "secho",
    "write",
    "writelines",
    "from_markup",
    "from_ansi",
    "Text",
    "Console",
    "input",
}


def test_no_verb_prints_in_another_way() -> None:
    """A call of one of these names outside the edge is a `_console` one, or a file's `write`."""
    verbs = [
        path
        for folder in ("cli", "api")
        for path in (ROOT / "src/robustbench_tc" / folder).glob("*.py")
        if path.name not in EDGE
    ]
    assert len(verbs) >= 25
    for path in verbs:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                name = called.rpartition(".")[2]
                allowed = (
                    called.startswith("_console.")
                    or called == "echo"
                    or called.startswith(("found.write", "gate.", "exchange."))
                )
                assert name not in PRINTS or allowed, f"{path.name}:{node.lineno} calls {called}"
            if isinstance(node, ast.Attribute):
                assert ast.unparse(node) != "sys.stdout.buffer", path
        text = path.read_text()
        assert all(line.strip() == "echo = _console.out.print" for line in re.findall(r"echo = .*", text))


def test_no_other_room_prints() -> None:
    """Rooms raise and return; what they print would go around the edge."""
    for room in ("builders", "audits", "eval", "sql", "dataset_cards"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    called = ast.unparse(node.func)
                    assert called not in ("print", "sys.stdout.write", "sys.stderr.write"), path
                if isinstance(node, ast.ImportFrom):
                    assert (node.module or "").split(".")[0] != "rich", path
