"""Tables on consoles of any width: no number loses digits, no id is broken, a pipe has a line per row."""

import io
from collections.abc import Sequence

import pytest
from rich.table import Table

from robustbench_tc.cli._console import SafeConsole
from robustbench_tc.cli._tables import UNBOUNDED

ID = "bfcl_v3__BFCL_v3_live_multiple__live_multiple_110-43-0::paraphrase_parameter_description"
ROWS = [
    ("CD_AB", "0.812", "+0.123", "[+0.010, +0.236]", "two words", ""),
    (ID, "1.000", "-1.000", "[-1.000, -1.000]", "", "5e-21"),
]
NAMES = ("type", "A", "B − A", "95 %", "why", "p (Holm)")


def shown(width: int, rows: Sequence[tuple[str, ...]] = ROWS) -> list[str]:
    console = SafeConsole(pipe=True) if width == UNBOUNDED else SafeConsole(width=width)
    file = console.file = io.StringIO()
    table = Table(title="a table", title_justify="left")
    table.add_column(NAMES[0], no_wrap=True)
    for name in NAMES[1:]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [20, 40, 60, 79, 80, 100, 120, 140, 200, UNBOUNDED])
def test_every_word_of_every_cell_is_there_whole(width: int) -> None:
    lines = shown(width)
    words = " ".join(lines).split()
    for row in ROWS:
        for cell in row:
            if cell != ID or width > len(ID):
                assert all(word in words for word in cell.split()), cell
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= width
    assert ID in "".join(line.strip() for line in lines)  # a longer one goes on in the next line


def test_a_pipe_has_a_line_for_each_row() -> None:
    lines = shown(UNBOUNDED)
    for row in ROWS:
        assert sum(all(cell in line for cell in row) for line in lines) == 1
    assert max(map(len, lines)) < 250


def test_a_narrow_console_breaks_between_words_first_and_drops_the_rules_then() -> None:
    short = ROWS[:1]
    whole = max(map(len, shown(UNBOUNDED, short)))
    assert any("[+0.010, │" in line for line in shown(whole - 1, short))
    without_rules = shown(48, short)
    assert not any("│" in line for line in without_rules)
    assert any(line.split()[:4] == ["CD_AB", "0.812", "+0.123", "[+0.010,"] for line in without_rules)
    stacked = shown(36, short)
    assert stacked[1:] == [
        "CD_AB",
        "  A 0.812   B − A +0.123",
        "  95 % [+0.010, +0.236]",
        "  why two words",
    ]


def test_an_empty_table_and_one_of_hostile_cells_are_shown() -> None:
    assert shown(20, [])
    text = "\n".join(shown(30, [("[bold]x[/bold]\x1b[31m", "a\nb", "", "", "", "")]))
    assert "[bold]x[/bold]" in text and "\x1b" not in text
