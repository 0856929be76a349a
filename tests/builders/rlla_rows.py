"""Made-up rows in the form of ToolRL's rlla_4k, for tests."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

THOUGHT = (
    "<think> I should use the appropriate tool with proper parameters to respond to the user's need. </think>"
)
HEAD = "Answer with tools.\n\n**Available Tools**\nIn your response, you can use the following tools:\n"
TAIL = "\n\n**Steps for Each Turn**\n1. **Think:** Mind the goal.\n2. **Decide:** Choose."

FERRY = {
    "name": "findFerryTimes",
    "description": "Lists the departures of a ferry line.",
    "parameters": {
        "harbour": {"description": "Where the ferry leaves.", "type": "str", "default": ""},
        "after": {"description": "Earliest hour, 0 to 23.", "type": "int, optional", "default": "0"},
    },
}
MUSHROOM = {
    "name": "identify_mushroom",
    "description": "Names a mushroom from what it looks like.",
    "parameters": {"cap": {"description": "Colour of the cap.", "type": "string", "default": ""}},
}
LIBRARY = {
    "name": "Library Hours",
    "description": "Opening hours of the town's library.",
    "parameters": {"day": {"description": "A day of the week.", "type": "List[int]", "default": ""}},
}
NO_ARGUMENTS = {"name": "ping", "description": "Says whether the service is up.", "parameters": {}}


def system(*tools: dict[str, Any]) -> str:
    entries = [
        f"{n}. Name: {t['name']}\nDescription: {t['description']}\nParameters: {json.dumps(t['parameters'])}"
        for n, t in enumerate(tools, start=1)
    ]
    return HEAD + "\n".join(entries) + TAIL


def user(text: str) -> str:
    return f"**Dialogue Records History**\n<user> {text} </user>"


def gold(*calls: tuple[str, dict[str, Any]]) -> str:
    lines = "\n".join(json.dumps({"name": name, "parameters": given}) for name, given in calls)
    return f"{THOUGHT}\n<tool_call>\n{lines}\n</tool_call>"


def reply(text: str = "It opens at nine.") -> str:
    return f"<think> I should directly respond to the user's need. </think>\n<response> {text} </response>"


Row = tuple[str, str, str]


def ferry_row(number: int) -> Row:
    """A row with three tools and one call; every number another query."""
    query = user(f"When does the next boat leave harbour {number} tomorrow after 5 in the early morning?")
    harbour = {"harbour": f"harbour {number}", "after": 5}
    return system(FERRY, MUSHROOM, LIBRARY), query, gold(("findFerryTimes", harbour))


def dialogue_row() -> Row:
    """A row whose transcript already calls the gold tool."""
    past = json.dumps({"name": "findFerryTimes", "parameters": {"harbour": "Naantali"}})
    obs = json.dumps([{"name": "findFerryTimes", "results": {"name": "findFerryTimes is a line"}}])
    text = (
        f"{user('Which boats leave from Naantali this fine evening?')}\n\n{THOUGHT}\n<tool_call>\n{past}\n"
        f"</tool_call>\n<obs> {obs} </obs>\n\n<think> x </think>\n"
        "<response> findFerryTimes said so. </response>\n\n"
        "<user> And which ones leave from Turku after eight in the morning? </user>"
    )
    return system(FERRY, MUSHROOM), text, gold(("findFerryTimes", {"harbour": "Turku", "after": 8}))


def write_parquet(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "prompt": [
                [{"content": s, "role": "system"}, {"content": u, "role": "user"}] for s, u, _ in rows
            ],
            "reward_model": [{"ground_truth": g, "style": "rule"} for _, _, g in rows],
        }
    )
    pq.write_table(table, path)


def write(folder: Path, train: list[Row], test: list[Row]) -> Path:
    """Both RL files; the folder."""
    write_parquet(folder / "train.parquet", train)
    write_parquet(folder / "test.parquet", test)
    return folder


def write_json(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([{"instruction": s, "input": u, "output": g} for s, u, g in rows]))
