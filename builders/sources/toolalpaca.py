"""ToolAlpaca (Tang et al., 2023): eval_real and eval_simulated, one sample per (API, instruction).

Tools are the entries of `Function_Description`, without `components` (an appendix of types). A golden answer
is a list of steps whose input is JSON text; all steps are the calls of one answer. Clean ids hold the API's
name and the instruction's index from 0; those of eval_simulated carry `eval_simulated__` before the name, so
that they never meet an id of eval_real even where both sets have an API of the same name.

Three real APIs need a key, and upstream's golden answers hold one. A model cannot know it from the query, so
the tool's schema keeps the parameter and the golden answer neither publishes nor compares it.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from robustbench_tc.eval.prompts import json_schema
from robustbench_tc.schema import Call, Json, Message, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import Item, Reader, Unusable, clean_row, item, json_list

SOURCE = "toolalpaca"
CREDENTIALS = frozenset({"api_key", "appid", "access_key"})
"""Parameters that carry a key, of APIs with authentication."""

_FUNCTION = re.compile(
    r"(?P<description>.*?)\s*Parameters: (?P<parameters>\{.*?\})(?:\nOutput:.*)?", re.DOTALL
)
_ONE_OF = re.compile(r"One of: \[([^\]]*)\]\.")


class Step(msgspec.Struct):
    """A golden call; the input is the text of a JSON object."""

    action: str = msgspec.field(name="Action")
    action_input: str = msgspec.field(name="Action_Input")


class Api(msgspec.Struct):
    """An API of ToolAlpaca's evaluation files: functions, instructions, a golden answer per instruction."""

    name: str = msgspec.field(name="Name")
    category: str = msgspec.field(name="Category")
    functions: dict[str, str] = msgspec.field(name="Function_Description")
    instructions: list[str] = msgspec.field(name="Instructions")
    golden_answers: list[list[Step]] = msgspec.field(name="Golden_Answers")
    authentication: dict[str, str] = msgspec.field(name="Authentication", default_factory=dict)


def read_file(root: Path, file: str) -> Iterator[tuple[str, Item]]:
    """The instructions of one file, as records `API/instruction`."""
    stem = Path(file).stem
    prefix = f"{SOURCE}__" if stem == "eval_real" else f"{SOURCE}__{stem}__"
    for number, api in json_list(root, file, Api):
        for index in range(len(api.instructions)):
            record, clean_id = f"{number}/{index}", f"{prefix}{api.name}__inst{index}"
            yield record, item(SOURCE, file, record, clean_id, partial(_sample, api, index, clean_id))


def _sample(api: Api, index: int, clean_id: str) -> Sample:
    tools = [_tool(name, text) for name, text in api.functions.items() if name != "components"]
    hidden = CREDENTIALS if api.authentication else frozenset()
    steps = api.golden_answers[index] if index < len(api.golden_answers) else []
    golden = tuple(_call(step, hidden) for step in steps)
    message = Message("user", api.instructions[index])
    return clean_row(SOURCE, clean_id, api.category, [message], tools, [golden])


def _call(step: Step, hidden: frozenset[str]) -> Call:
    try:
        parameters = msgspec.json.decode(step.action_input, type=dict[str, Json])
    except ValueError:
        # The text is not quoted: it may hold a key.
        raise Unusable("gold_not_decodable", "The input of a golden step is not a JSON object.") from None
    return Call(step.action, {key: [value] for key, value in parameters.items() if key not in hidden})


def _tool(name: str, text: str) -> Tool:
    """A tool from `description`, `Parameters: {…}`, `Output: …`."""
    found = _FUNCTION.fullmatch(text)
    assert found is not None, name
    declared = msgspec.json.decode(found["parameters"], type=dict[str, str])
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {key: _property(value.removeprefix("Required. ")) for key, value in declared.items()},
    }
    required = [key for key, value in declared.items() if value.startswith("Required. ")]
    if required:
        schema["required"] = required
    return Tool(name, found["description"].strip(), schema)


def _property(text: str) -> dict[str, Json]:
    """`string. One of: [a, b]. What it is.` as a schema; the enumeration stays in the text as well."""
    depth, end = 0, len(text)
    for position, character in enumerate(text):
        depth += (character in "[{") - (character in "]}")
        if character == "." and depth == 0:
            end = position
            break
    word, description = text[:end].strip(), text[end + 1 :].strip()
    out = json_schema.type_schema(word)
    if not out and word.startswith("Array[Object"):
        out = {"type": "array", "items": {"type": "object"}}
    choices = _ONE_OF.match(description)
    if choices and out == {"type": "string"}:
        out["enum"] = [choice.strip() for choice in choices.group(1).split(",")]
    return {**out, "description": description}


READER = Reader(
    name=SOURCE,
    order=4,
    files=("toolalpaca/data/eval_real.json", "toolalpaca/data/eval_simulated.json"),
    read_file=read_file,
    output_format="react",
    scorer="toolalpaca",
    one_call=False,
    single_gold_tool=True,
    rows=Rows(paper=21, bundled=13),
    paper=True,
)
