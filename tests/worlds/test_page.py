"""docs/worlds.md: the file on the page works, and what was written from the page alone does."""

from pathlib import Path

import pytest

from robustbench_tc.worlds.check import check
from robustbench_tc.worlds.handle import load_file

from ..conftest import ROOT

TOY = Path(__file__).with_name("files_toy.py")


def page_blocks() -> list[str]:
    text = (ROOT / "docs" / "worlds.md").read_text()
    return [part.split("```")[0] for part in text.split("```python\n")[1:]]


def test_the_file_on_the_page_has_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "library.py"
    file.write_text(page_blocks()[0])
    module = load_file(file)
    assert check(module) == []
    tools = {tool["name"]: tool for tool in module.WORLD.tools()}
    assert [name for name, tool in tools.items() if tool["writes"]] == ["lend", "take_back", "set_weeks"]


def test_the_file_is_tried_by_hand_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "library.py").write_text(page_blocks()[0])
    monkeypatch.chdir(tmp_path)
    exec(compile(page_blocks()[1], "docs/worlds.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "[]",
        '[{"book_id": "B-74", "title": "A History of Tea", "copies": 1}]',
        '{"error": "there is no book \'B-99\'"}',
    ]


def test_a_clock_is_left_out_as_the_page_says(tmp_path: Path) -> None:
    file = tmp_path / "library.py"
    file.write_text(
        page_blocks()[0].replace('    name = "library"\n', f'    name = "library"\n\n{page_blocks()[2]}')
    )
    world = load_file(file).WORLD({"today": "2026-03-02", "books": {}})
    assert world.state() == {"books": {}} and world.data["today"] == "2026-03-02"


def test_a_world_written_from_the_page_alone_is_short_and_right() -> None:
    assert len(TOY.read_text().splitlines()) <= 120
    module = load_file(TOY)
    assert check(module) == []
    tools = module.WORLD.tools()
    assert len(tools) == 5 and {tool["undo"] for tool in tools} == {None, "restore_file"}
    changed = []
    for task in module.TASKS:
        world = module.WORLD(task.state, task.seed)
        for turn in task.turns:
            for gold in turn.gold:
                assert not world.attempt(gold.name, gold.arguments).failed
        changed.append(world.state() != task.state)
    assert changed == [True, True]
