"""A world as its author writes it: schemas, arguments, copies, each mistake in one line, and its page."""

import asyncio
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.schema import At, Fault, LiveTool
from robustbench_tc.worlds import find
from robustbench_tc.worlds.check import check
from robustbench_tc.worlds.handle import LocalHandle, Start, load_file

from ..conftest import ROOT, Done
from ..refusals import refuses
from .purse import TASKS, Purse

FILE = Path(__file__).with_name("purse.py")


def test_a_registry_is_made_from_signatures_and_docstrings() -> None:
    tools = [LiveTool(**tool) for tool in Purse.tools()]
    assert [tool.name for tool in tools] == [
        "count_coins",
        "list_receipts",
        "add_coins",
        "take_coins",
        "whisper",
    ]
    assert tools[2].parameters == {
        "type": "object",
        "properties": {"amount": {"type": "integer", "description": "How many coins to put in."}},
        "required": ["amount"],
    }
    assert [(tool.writes, tool.idempotent, tool.undo) for tool in tools[1:4]] == [
        (False, True, None),
        (True, False, "take_coins"),
        (True, False, "add_coins"),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("add_coins", {"amount": "2"}, "parameter 'amount' must be of type integer"),
        ("add_coins", {"amount": True}, "parameter 'amount' must be of type integer"),
        ("add_coins", {}, "missing parameter 'amount'"),
        ("add_coins", {"amount": 1, "self": 2}, "unknown parameter 'self'"),
        ("add_coins", {"amount": 0}, "amount must be at least 1"),
        ("__init__", {"state": {}}, "there is no tool '__init__'"),
        ("new_id", {"prefix": "x"}, "there is no tool 'new_id'"),
    ],
)
def test_a_call_that_fails_says_why_and_changes_nothing(
    name: str, arguments: dict[str, object], said: str
) -> None:
    world = Purse(TASKS[0].state)
    assert json.loads(world.call(name, arguments)) == {"error": said}
    assert world.state() == TASKS[0].state and world.generated() == []


def test_a_copy_has_met_the_same_calls_and_is_another_world() -> None:
    async def run() -> None:
        handle = LocalHandle(load_file(FILE), Start(TASKS[0].state))
        await handle.call("add_coins", {"amount": 2})
        other = await handle.copy()
        assert await other.snapshot() == await handle.snapshot()
        await other.call("take_coins", {"amount": 1})
        assert (await handle.snapshot()).state["coins"] == 5

    asyncio.run(run())


def test_a_file_without_a_world_is_refused_by_name(tmp_path: Path) -> None:
    for text in ("x = 1\n", "WORLD = dict\n", "WORLD = {}\n"):
        (tmp_path / "empty.py").write_text(text)
        refuses("has no WORLD that is a class and inherits from World", load_file, tmp_path / "empty.py")


def test_a_fault_is_placed_by_exactly_one_count() -> None:
    assert Fault(At(write=1), "silent_no_op").repeat == "once"
    for wrong in ({}, {"call": 1, "tool": "add_*"}, {"read": 0}):
        with pytest.raises(ValueError):
            At(**wrong)


def test_equal_faults_have_equal_bytes_wherever_they_come_from() -> None:
    fault = Fault(At(tool="add_*"), "silent_no_op")
    for other in (
        pickle.loads(pickle.dumps(fault)),
        msgspec.json.decode(b'{"at":{"tool":"add_*"},"kind":"silent_no_op","repeat":"once"}', type=Fault),
        msgspec.structs.replace(fault, repeat="".join(("on", "ce"))),
    ):
        assert msgspec.json.encode(other) == msgspec.json.encode(fault)


# --- `check`: each mistake of an author in one line that names the file, the place and what to do


LAMP = '''
from typing import Annotated, Any, Literal
import itertools
from robustbench_tc.worlds.base import Failure, Task, ToolClass, Turn, World, call, read, write

COUNTER = itertools.count()


class Lamp(World):
    """A lamp."""

    name = "lamp"

    @read
    def look(self) -> dict[str, Any]:
        """Shows the lamp."""
        return self.data

    @write(undo="switch")
    def switch(self, on: Annotated[bool, "Whether it is on."]) -> str:
        """Switches the lamp."""
        if self.data["broken"]:
            raise Failure("the lamp is broken")
        self.data["on"] = on
        self.data["times"] = self.data.get("times", 0) + 1
        return f"done {self.new_id('L-')}"


WORLD = Lamp
STATE = {"on": False, "broken": False}
TASKS = [Task("lamp_1", STATE, [Turn("Light, please.", [call("look"), call("switch", on=True)])])]
'''

HINT = 'Annotated[bool, "Whether it is on."]'
NAMED = '    name = "lamp"\n'
GOLD = 'call("look"), call("switch", on=True)'


def classes(tools: str) -> str:
    """The lamp's name, and a class with some tools."""
    return f'{NAMED}    classes = (ToolClass("light", ("lamp",), {tools}),)\n'


def problems(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "lamp.py"
    file.write_text(text)
    found = check(load_file(file))
    assert all(line.startswith(f"{file}: ") and "\n" not in line for line in found)
    return [line.removeprefix(f"{file}: ") for line in found]


def test_a_right_file_has_no_mistake(tmp_path: Path) -> None:
    assert problems(tmp_path, LAMP) == []
    odd = (
        NAMED + "    odd = type('Odd', (), {'__get__': lambda *_: [].no})()\n"
    )  # an attribute that is not there
    assert problems(tmp_path, LAMP.replace(NAMED, odd)) == []
    entry = LAMP.replace("TASKS = [", "TASKS = [STATE, ")
    assert problems(tmp_path, entry) == ["entry 1 of TASKS is not a Task"]


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (NAMED, "", "Lamp needs a name"),
        ('name = "lamp"', 'name = "a lamp"', "Lamp needs a name"),
        ('        """Shows the lamp."""\n', "", "tool 'look': it has no docstring"),
        (HINT, "set[str]", "parameter 'on': the type set[str]"),
        (f": {HINT}", "", "tool 'switch': parameter 'on' has no type"),
        (HINT, "int | str", "parameter 'on': the type int | str"),
        (HINT, '"Lamb"', "tool 'switch': its types cannot be read"),
        (HINT, "bool, *rest: int", "parameter 'rest' must be"),
        (HINT, "dict = {1: 2}", "the default of parameter 'on'"),
        ('undo="switch"', 'undo="swich"', "undo names 'swich', which is not a tool that writes"),
        ('undo="switch"', 'undo="look"', "undo names 'look', which is not a tool that writes"),
        ("def look(", "def state(", "tool 'state': World itself uses this name"),
        ("def look(", "async def look(", "tool 'look': it must be an ordinary method"),
        ("def look(", "def schön(", "tool 'schön': its name must be at most 64 letters"),
        ("TASKS = [", "TASKS = []\nX = [", "TASKS must be a list with at least one Task"),
        ('[Task("lamp_1"', '2 * [Task("lamp_1"', "two tasks are called 'lamp_1'"),
        ('"lamp_1"', '"lamp 1::x"', "task 'lamp 1::x': Expected `str` matching regex"),
        ("TASKS = [", "TASKS = [Task(3, STATE, []), ", "task '3': Expected `str`, got `int` - at `$.id`"),
        ('"on": False', '"on": {1, 2}', "task 'lamp_1': its state and answers must be JSON"),
        ('"on": False', '"on": {1: 2}', "task 'lamp_1': its state and answers must be JSON"),
        ('"on": False', '"on": float("nan")', "task 'lamp_1': its state and answers must be JSON"),
        ('"on": False', '"on": "\\ud800"', "task 'lamp_1': its state and answers must be JSON"),
        ('"Light, please."', '" "', "matching regex '\\\\S' - at `$.turns[0].says`"),
        (f"[{GOLD}]", 'call("look")', "Expected `array`, got `object` - at `$.turns[0].gold`"),
        (
            f"[{GOLD}]",
            f'[{GOLD}], {{"on": True}}',
            "got `object` - at `$.turns[0].answers`",
        ),
        (f"[{GOLD}]", f'[{GOLD}], [{{"on": True}}]', "Expected `array`, got `bool`"),
        (f", [{GOLD}]", "", "task 'lamp_1': no turn has gold"),
        ('call("look")', 'call("loook")', "call 1 (loook): there is no such tool; did you mean 'look'?"),
        ("on=True)", "off=True)", "call 2 (switch) fails: unknown parameter 'off': correct the call"),
        ("on=True)", "on=1)", "call 2 (switch) fails: parameter 'on' must be of type boolean"),
        ('"broken": False', '"broken": True', "call 2 (switch) fails: the lamp is broken"),
        ('"broken": False', '"whole": True', "call 2 (switch) fails: KeyError: 'broken'"),
        ("return self.data", "return next(COUNTER)", "(look) answers '1' when it is replayed"),
        ("return self.data", "return self.data.pop('on')", "(look) fails: TypeError: a tool that is"),
        ("return self.data", "return {1, 2}", "call 1 (look) fails: TypeError: Object of type set"),
        ('undo="switch"', "idempotent=True", "a second equal call changes the state"),
        ('.get("times", 0) + 1', '["on"], next(COUNTER)', "leaves another state when it is replayed"),
        (NAMED, f"{NAMED}    def __init__(self): pass\n", "replaying gold raises TypeError"),
        (NAMED, f"{NAMED}    def state(self): return 1 / 0\n", "replaying gold raises ZeroDivisionError"),
        (NAMED, f"{NAMED}    def state(self): raise SystemExit\n", "replaying gold raises SystemExit"),
        (NAMED, f"{NAMED}    def state(self): return {{1}}\n", "a state that is not JSON"),
        (
            f"[{GOLD}]",
            f'[{GOLD}], [{{"on": ["dim"]}}]',
            "turn 1: answers: no result of gold's by then has 'dim'",
        ),
        (NAMED, f'{NAMED}    classes = ("light",)\n', "classes must be a tuple of ToolClass"),
        (NAMED, f"{NAMED}    classes = 3\n", "classes must be a tuple of ToolClass"),
        (NAMED, classes('("swich",)'), "name 'swich', which is no tool; did you mean 'switch'?"),
        (NAMED, classes('("look", "look")'), "tool 'look' is in two classes"),
        (
            NAMED,
            f'{NAMED}    forbidden = ("switch", "Never.")\n',
            "forbidden must be a Forbidden(tool, policy)",
        ),
        (NAMED, f"{NAMED}    looks_first = ()\n", "looks_first a dict of lists of reads"),
        (NAMED, f'{NAMED}    looks_first = {{"lok": ()}}\n', "name 'lok', which is no tool"),
        (NAMED, f'{NAMED}    looks_first = {{"look": ("switch",)}}\n', "'switch', which 'look' comes after"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, right: str, wrong: str, said: str) -> None:
    assert LAMP.count(right) == 1
    found = problems(tmp_path, LAMP.replace(right, wrong))
    assert any(said in line for line in found), found


def test_a_tool_in_no_class_has_one_that_is_named_after_it(tmp_path: Path) -> None:
    file = tmp_path / "lamp.py"
    file.write_text(LAMP.replace(NAMED, classes('("switch",)')))
    declared, derived = find.classes(find.find(str(file)))
    assert (declared.name, declared.tools, derived.name, derived.tools) == (
        "light",
        ("switch",),
        "look",
        ("look",),
    )
    said = ["Both LAMPS are on.", "The lights are on.", "The lampshade is on."]
    assert [bool(declared.pattern.search(one)) for one in said] == [True, True, False]
    purse = {one.name: one.tools for one in find.classes(find.find(str(FILE)))}
    assert purse["coin"] == ("count_coins", "add_coins", "take_coins") and purse["receipt"] == (
        "list_receipts",
    )


def test_gold_that_names_a_made_id_wrongly_is_shown_the_ids(tmp_path: Path) -> None:
    second = 'call("switch", on=True), call("switch", on="L-1")'
    found = problems(tmp_path, LAMP.replace('call("switch", on=True)', second))
    assert len([line for line in found if "ids made before it: L-" in line]) == 1


def test_the_command_says_each_mistake_and_ends_with_1(tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    file = tmp_path / "lamp.py"
    file.write_text(LAMP)
    assert rbtc("lint", file).code == 0
    file.write_text(LAMP.replace('        """Shows the lamp."""\n', "").replace('"lamp"', '"a lamp"'))
    done = rbtc("lint", file)
    assert done.code == 1 and "errors 2" in done.out and "it has no docstring" in done.out, done
    done = rbtc("lint", tmp_path / "none.py")
    assert done.code == 1 and done.err.count("\n") == 1, done


def test_a_write_without_brackets_is_refused(tmp_path: Path) -> None:
    lamp = LAMP.replace('@write(undo="switch")', "@write")
    refuses("cannot be imported: TypeError: write", problems, tmp_path, lamp)


def test_many_mistakes_are_all_named(tmp_path: Path) -> None:
    task = 'Task("lamp_1", STATE, [Turn("Hello.", [call("dance")])])'
    found = problems(tmp_path, LAMP.replace("TASKS = [", f"TASKS = [{task}, "))
    assert [line.split(":")[0] for line in found] == ["task 'lamp_1'", "two tasks are called 'lamp_1'"]


# --- docs/worlds.md: the file on the page works, and what was written from the page alone does


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
