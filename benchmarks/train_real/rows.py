"""Training rows, and questions of held-out registries: a prompt with the calls that could answer it."""

import itertools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.builders.training_rows import TrainingRow
from robustbench_tc.eval.prompts.rlla_form import observation, parse_system
from robustbench_tc.own.yaml import load
from robustbench_tc.train_recipes import recipe
from robustbench_tc.train_recipes.retry_reward import permanent
from robustbench_tc.train_recipes.rows import choose

HEAD, TAIL, THOUGHT = (
    "**Available Tools**\n",
    "\n\nThink, then call.",
    "<think> A tool answers this. </think>",
)
"""ToolRL's form in few words, so that a small model reads a prompt quickly."""

HELD_OUT = 6
"""Registries at the end of the file that no train row is of."""

UNUSED = {"note": "Anything else."}
"""A parameter of every tool that no request gives: the `_moot` types ask for one, and for them alone it is
there, so that prompts stay short."""

GIVE_UP = "<response> That did not work, I am sorry. </response>"
"""What answers an error beside the calls."""


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tools that are listed together."""

    tools: dict[str, tuple[str, list[str], list[str]]]
    """Name → what it does, its parameters, requests with `{parameter}`s."""
    values: dict[str, tuple[str, list[str]]]
    """Parameter → what it is, values."""

    def entry(self, number: int, tool: str, more: Mapping[str, str]) -> str:
        """A tool as ToolRL's system text lists it, with `more` parameters."""
        about, parameters, _ = self.tools[tool]
        described = {**{name: self.values[name][0] for name in parameters}, **more}
        declared = {name: {"description": text, "type": "str"} for name, text in described.items()}
        return f"{number}. Name: {tool}\nDescription: {about}\nParameters: {json.dumps(declared)}"


def registries() -> tuple[list[Registry], list[Registry]]:
    """Those that are trained on, and those that are held out."""
    path = Path(__file__).with_name("registries.yaml")
    every = [*msgspec.convert(load(path.read_bytes(), path.name).data(), dict[str, Registry]).values()]
    return every[:-HELD_OUT], every[-HELD_OUT:]


def write(folder: Path, own: Sequence[Registry], many: int, seed: int, more: Mapping[str, str] = {}) -> None:
    """At most `many` different requests as ToolRL's train file. Each lists its tool and one other of the
    registry; a perturbation adds a third."""
    rng = random.Random(f"train-real {seed}")
    kinds = [(one, tool, text) for one in own for tool, (_, _, texts) in one.tools.items() for text in texts]
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(8):  # passes: the later ones find fewer requests that are new
        rng.shuffle(kinds)
        for registry, tool, text in kinds:
            values = {name: rng.choice(registry.values[name][1]) for name in registry.tools[tool][1]}
            listed = [tool, rng.choice([name for name in registry.tools if name != tool])]
            rng.shuffle(listed)
            if len(rows) <= many:
                entries = [registry.entry(number, name, more) for number, name in enumerate(listed, start=1)]
                rows.setdefault(text.format(**values), _row(entries, text.format(**values), tool, values))
    made = [*rows.values()]
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(made[:-1]), folder / "train.parquet")
    pq.write_table(pa.Table.from_pylist(made[-1:]), folder / "test.parquet")  # a build wants one


def _row(entries: Sequence[str], request: str, tool: str, values: dict[str, str]) -> dict[str, Any]:
    system = HEAD + "\n".join(entries) + TAIL
    user = f"**Dialogue Records History**\n<user> {request} </user>"
    gold = f"{THOUGHT}\n{_called(tool, values)}"
    return {
        "prompt": [{"content": system, "role": "system"}, {"content": user, "role": "user"}],
        "reward_model": {"ground_truth": gold, "style": "rule"},
    }


def _called(name: str, parameters: Mapping[str, str]) -> str:
    call = json.dumps({"name": name, "parameters": parameters})
    return f"<tool_call>\n{call}\n</tool_call>"


class Question(NamedTuple):
    """A prompt and the answers that a model chooses among; the first is right."""

    clean_id: str
    type_code: str
    messages: list[dict[str, str]]
    thought: str
    """Stands before each answer, so that only the call is compared."""
    answers: list[str]


def questions(build: Path, own: Sequence[Registry], data: str) -> list[Question]:
    """The train rows of a build under a recipe's `data`: clean, dr-full, or retry, as they go on after the
    row's error; rows whose error says that trying again will not help are left out there."""
    values = {name: texts for one in own for name, (_, texts) in one.values.items()}
    rows = choose(str(build), recipe.read_recipe("grpo", [f"data={data}"])[0]).train
    if data != "retry":
        return [question(row, values) for row in rows]
    faults = [row.extra_info["retry"] for row in rows]
    met = [(row, fault) for row, fault in zip(rows, faults, strict=True) if not permanent(fault)]
    return [after_error(question(row, values), fault) for row, fault in met]


def question(row: TrainingRow, values: Mapping[str, Sequence[str]]) -> Question:
    """A row with its gold call, a call of every tool that is listed, and gold calls with another value,
    without one of the arguments, and without any.

    `values`: parameter → values, of which only the gold's own stands in the request.
    """
    thought, start, rest = row.reward_model["ground_truth"].partition("<tool_call>\n")
    gold = json.loads(rest.removesuffix("\n</tool_call>"))
    name, given = gold["name"], gold["parameters"]
    answers = [start + rest]
    for tool in parse_system(row.prompt[0].content).tools:
        parameters = [one for one in tool.properties if one not in UNUSED]
        answers.append(_called(tool.name, dict(zip(parameters, itertools.cycle(given.values())))))
    answers.append(_called(name, {}))
    for parameter, value in given.items():
        other = next(one for one in values[parameter] if one != value)
        answers.append(_called(name, given | {parameter: other}))
        answers.append(_called(name, {key: text for key, text in given.items() if key != parameter}))
    return Question(
        str(row.extra_info["clean_id"]),
        str(row.extra_info["type_code"]),
        [{"role": turn.role, "content": turn.content} for turn in row.prompt],
        thought,
        [*dict.fromkeys(answers)],
    )


def after_error(asked: Question, fault: Mapping[str, Any]) -> Question:
    """The second turn: the right call met the error. Calling again is right, giving up is not."""
    made = {"role": "assistant", "content": asked.thought + asked.answers[0]}
    met = {"role": "user", "content": observation(str(fault["error"]))}
    return asked._replace(
        type_code=str(fault["type_code"]),
        messages=[*asked.messages, made, met],
        answers=[*asked.answers, GIVE_UP],
    )
