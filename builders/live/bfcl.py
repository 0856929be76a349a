"""BFCL multi-turn (Patil et al., ICML 2025) as clean rows of the live dataset: 4 categories of 200 tasks.

Questions, answers and function docs are upstream's files; what the world is after gold's calls is found by
carrying them out. Task n is the same story in every category.

Which of BFCL's 128 functions write, which of those can be repeated, and which take another back.

A function writes if it changes a public attribute in the replay of some gold; a writing function is
idempotent if no gold call of it changes anything more when it is carried out twice in a row. A test derives
both from all 800 golds. Of the functions that no gold calls six write as well (`NEVER_IN_GOLD`): another test
calls them.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc.builders.sources.base import json_lines
from robustbench_tc.builders.sources.upstream import must_be_pinned
from robustbench_tc.errors import unknown
from robustbench_tc.eval.prompts import json_schema
from robustbench_tc.schema import Call, Json, LiveRow, LiveTool, Message, Turn, dumps
from robustbench_tc.worlds.handle import Start

_ONCE = (
    "authenticate_travel",
    "book_flight",
    "comment",
    "create_ticket",
    "delete_message",
    "fillFuelTank",
    "fund_account",
    "mention",
    "place_order",
    "post_tweet",
    "purchase_insurance",
    "register_credit_card",
    "send_message",
    "withdraw_funds",
)

IDEMPOTENT = frozenset(
    (
        "activateParkingBrake",
        "add_contact",
        "add_to_watchlist",
        "authenticate_twitter",
        "cancel_booking",
        "cancel_order",
        "close_ticket",
        "cp",
        "echo",
        "edit_ticket",
        "lockDoors",
        "message_login",
        "mkdir",
        "mv",
        "pressBrakePedal",
        "remove_stock_from_watchlist",
        "resolve_ticket",
        "retweet",
        "rm",
        "rmdir",
        "setCruiseControl",
        "setHeadlights",
        "set_budget_limit",
        "set_navigation",
        "startEngine",
        "ticket_login",
        "touch",
        "trading_logout",
    )
)
"""Writing functions that change nothing more when they are repeated: most answer with an error then."""

NEVER_IN_GOLD = frozenset(
    (
        "adjustClimateControl",
        "follow_user",
        "logout",
        "releaseBrakePedal",
        "trading_login",
        "unfollow_user",
    )
)
"""Functions that write although no gold calls them; they change nothing more when they are repeated."""

WRITES = IDEMPOTENT | frozenset(_ONCE) | NEVER_IN_GOLD

UNDO = {
    "add_to_watchlist": "remove_stock_from_watchlist",
    "book_flight": "cancel_booking",
    "cp": "rm",
    "mkdir": "rmdir",
    "touch": "rm",
}
"""Functions that leave the public state as it was. Not here, because they leave a trace: cancel_order (the
order stays, cancelled), delete_message (messages stay counted), withdraw_funds (two transactions),
close_ticket (the ticket stays)."""


FOLDER = "bfcl/berkeley-function-call-leaderboard/bfcl_eval/data"

CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")

DOCS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""The file in which each class's functions are documented."""

RELEASED = "More tools are available now. Please go on with what I asked for."
"""What the user says where held-out functions come back; upstream's turn has no words of its own."""

DOUBTFUL: dict[str, tuple[tuple[int, ...], str]] = {
    "gold_unobtainable": ((4,), "Gold posts a text that no call returns (ShishirPatil/gorilla#1367)."),
    "gold_ignores_refusal": ((153, 188), "A check answers false, and gold goes on as if it were true."),
    "gold_does_nothing": ((167, 180), "A request that a tool could serve has no call in gold."),
    "gold_wrong_type": ((173,), "An argument is a text where an integer is documented."),
    "gold_finds_nothing": ((36,), "A search that cannot find anything, by construction."),
    "gold_value_unstated": ((174,), "A price of 187.5 that stands in no earlier text."),
    "gold_id_questioned": ((198,), "The booking's id is in a result only (ShishirPatil/gorilla#1267)."),
}
"""Flags of rows whose gold is doubtful: the numbers of the tasks, in every category, and why."""

HELD_OUT = "gold_uses_held_out"
HELD_OUT_TASK = "multi_turn_miss_func_49"
"""Gold calls `tail` two turns before it is offered: this task cannot be solved with what is offered."""


class Question(msgspec.Struct):
    """A line of a category's file."""

    id: str
    question: list[list[Message]]
    initial_config: dict[str, Json]
    involved_classes: list[str]
    missed_function: dict[str, list[str]] = {}
    """Turn, as text, to the functions that are offered from then on."""


class Answer(msgspec.Struct):
    """The matching line of `possible_answer`: Python calls as text, by turn."""

    id: str
    ground_truth: list[list[str]]


class Function(msgspec.Struct):
    """A documented function."""

    name: str
    description: str
    parameters: dict[str, Json]
    response: dict[str, Json]


def tasks(root: Path, categories: Sequence[str] = CATEGORIES) -> tuple[LiveRow, ...]:
    """The rows as their files say, without the hash of the gold state.

    Raises UserError for an unknown category, and for a file that is missing or is not the pinned one.
    """
    return tasks_in(root / FOLDER, categories)


def tasks_in(data: Path, categories: Sequence[str] = CATEGORIES) -> tuple[LiveRow, ...]:
    """As `tasks`, from the folder that holds the files: bfcl-eval installs them, too."""
    for category in categories:
        if category not in CATEGORIES:
            raise unknown("category", category, CATEGORIES)
    questions = [_file(category) for category in categories]
    for name in (*questions, *map(_answers, questions), *map(_doc, DOCS)):
        must_be_pinned(data, f"{FOLDER}/{name}", data / name)
    functions = {
        name: tuple(_tool(one) for _, one in json_lines(data, _doc(name), Function)) for name in DOCS
    }
    return tuple(row for category in categories for row in _rows(data, category, functions))


def _file(category: str) -> str:
    return f"BFCL_v4_{category}.json"


def _answers(file: str) -> str:
    return f"possible_answer/{file}"


def _doc(name: str) -> str:
    return f"multi_turn_func_doc/{DOCS[name]}.json"


def _tool(function: Function) -> LiveTool:
    """Upstream shows what a function returns too: it is the end of the description here."""
    name, returns = function.name, dumps(json_schema.normalise(function.response))
    return LiveTool(
        name=name,
        description=f"{function.description.strip()} Returns: {returns}",
        parameters=json_schema.normalise(function.parameters),
        writes=name in WRITES,
        idempotent=name not in WRITES or name in IDEMPOTENT | NEVER_IN_GOLD,
        undo=UNDO.get(name),
    )


def _rows(data: Path, category: str, functions: Mapping[str, tuple[LiveTool, ...]]) -> Iterator[LiveRow]:
    file = _file(category)
    answers = {answer.id: answer for _, answer in json_lines(data, _answers(file), Answer)}
    for _, question in json_lines(data, file, Question):
        yield _row(question, answers[question.id], category, functions)


def _row(
    question: Question, answer: Answer, category: str, functions: Mapping[str, tuple[LiveTool, ...]]
) -> LiveRow:
    tools = tuple(tool for name in question.involved_classes for tool in functions[name])
    parameters = {tool.name: tuple(tool.parameters["properties"]) for tool in tools}
    state = {
        "involved_classes": question.involved_classes,
        "initial_config": question.initial_config,
        "long_context": category.endswith("long_context"),
    }
    return LiveRow(
        id=f"{question.id}::clean",
        clean_id=question.id,
        type_code="clean",
        world="bfcl",
        category=category,
        turns=tuple(_turns(question)),
        tools=tools,
        initial_state=msgspec.to_builtins(Start(state)),
        golden_calls=tuple(
            tuple(golden_call(text, parameters) for text in turn) for turn in answer.ground_truth
        ),
        gold_state_sha256="",
        flags=flags(question.id),
    )


def _turns(question: Question) -> Iterator[Turn]:
    for index, messages in enumerate(question.question):
        adds = tuple(question.missed_function.get(str(index), ()))
        yield Turn(tuple(messages) or (Message("user", RELEASED),), adds)


def golden_call(text: str, parameters: Mapping[str, Sequence[str]]) -> Call:
    """A call as upstream writes it, its positional arguments bound to the names of the documentation."""
    node: Any = ast.parse(text.strip(), mode="eval").body
    given = dict(zip(parameters[node.func.id], node.args, strict=False))
    given |= {word.arg: word.value for word in node.keywords}
    return Call(node.func.id, {name: ast.literal_eval(value) for name, value in given.items()})


def flags(task_id: str) -> tuple[str, ...]:
    """What is doubtful in the gold of a task."""
    number = int(task_id.rpartition("_")[2])
    found = [flag for flag, (numbers, _) in DOUBTFUL.items() if number in numbers]
    return (*found, *([HELD_OUT] if task_id == HELD_OUT_TASK else ()))
