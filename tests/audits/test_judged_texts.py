"""What was judged is pinned as it was judged: whatever is edited in a kept answer, the gate is red."""

import random
import string
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.audits.judge import Unjudged
from robustbench_tc.audits.judgments import recorded_judge
from robustbench_tc.audits.rows import RowChecks
from robustbench_tc.builders import generations
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.generators.base import NO_ANSWER, Answering, Refuse, check
from robustbench_tc.builders.generators.recorded import Recorded, shipped
from robustbench_tc.builders.perturb import REGISTRY, Text, TextRequest
from robustbench_tc.builders.plain import row_dict
from robustbench_tc.schema import Json, Sample

from ..conftest import NIGHTLY

TEXTS = (
    "realistic_typos",
    "query_paraphrase",
    "paraphrase_tool_description",
    "paraphrase_parameter_description",
    "language_es",
    "language_full_es",
)
FIELDS = ("less", "name", "description", "emptied", "required", "strings", "said", "type", "gone")
TYPES = ("string", "integer", "number", "boolean", "array")


def of_text(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text))
    return rng.choice(
        (
            text.upper(),
            text.lower(),
            text + ".",
            text[:-1],
            text[:1].swapcase() + text[1:],
            f"{text} ",
            text.replace(" ", "  ", 1),
            text[:place] + rng.choice(string.ascii_letters) + text[place + 1 :],
        )
    )


def of_tools(tools: Json, rng: random.Random) -> Json:
    """One field of one tool, or one tool less."""
    tool = rng.choice(tools)
    properties, required = tool["parameters"]["properties"], tool["parameters"]["required"]
    name = rng.choice([*properties, ""])
    match rng.choice(FIELDS):
        case "less":
            tools.remove(tool)
        case "name":
            tool["name"] += "s"
        case "description":
            tool["description"] = of_text(tool["description"], rng)
        case "emptied":
            required.clear()
        case "required" if name in required:
            required.remove(name)
        case "required" if name:
            required.append(name)
        case "strings":
            for inner in properties.values():
                inner["type"] = "string"
        case "said" if name:
            properties[name]["description"] = of_text(properties[name]["description"], rng)
        case "type" if name:
            properties[name]["type"] = rng.choice(TYPES)
        case "gone" if name:
            del properties[name]
            tool["parameters"]["required"] = [one for one in required if one != name]
    return tools


def of_answer(answer: Json, rng: random.Random) -> Json:
    """The answer with one edit: a text, new tools, or a text with its map."""
    answer = msgspec.json.decode(msgspec.json.encode(answer))
    if isinstance(answer, str):
        return of_text(answer, rng)
    if isinstance(answer, list):
        return of_tools(answer, rng)
    mapped = answer.get("value_map")
    if mapped and rng.random() < 0.5:
        value = rng.choice(sorted(mapped))
        return {**answer, "value_map": {**mapped, value: of_text(mapped[value], rng)}}
    return {**answer, "text": of_text(answer["text"], rng)}


class Edited(Answering):
    """The answers that ship, with one edit in each text and in one answer of each sample's new tools."""

    def __init__(self, seed: int) -> None:
        super().__init__("hand-written")
        self._inner, self._rng = Recorded(*shipped(bundled=True)), random.Random(seed)
        self.edited = set[str]()
        """Keys of texts, and samples of new tools."""

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """An edit that is refused leaves no text: then a row is missing, which is red by itself."""
        given = self._inner.answer(request, refuse)
        if isinstance(given, str) or request.sample in self.edited:
            return given
        value = of_answer(given.value, self._rng)
        if value == given.value:
            return given
        self.edited.add(request.sample or request.key)
        return NO_ANSWER if check(request, value, refuse) else Text(value, given.generator)


@pytest.mark.parametrize("seed", range(4 if NIGHTLY else 2))
def test_an_edited_answer_has_no_judgment(seed: int, tmp_path: Path) -> None:
    codes = (*TEXTS, "redundant")
    edits = {code: Edited(seed) for code in codes}
    spec = BuildSpec(profile="bundled", codes=codes, allow_missing=True)
    made = prepare(spec, generators=edits)
    generations.write(tmp_path / generations.NAME, made.recordings)
    judge = recorded_judge(build=tmp_path)
    checks = RowChecks()
    checks.check("clean", 0, [row_dict(one) for one in made.plan.samples])
    samples = {one.clean_id: one for one in made.plan.samples}
    held = 0
    for code in codes:
        for row in made.plan.rows(code, made.plan.context()):
            if not isinstance(row, Sample):
                continue
            asked = REGISTRY[code].requests(samples[row.clean_id])
            if {one.sample or one.key for one in asked} & edits[code].edited:
                found = checks.check(code, 0, [row_dict(row)])
                said = (*judge.judge([*found.pairs]), *judge.judge([*found.new_tools]))
                assert any(isinstance(one, Unjudged) for one in said), row.id
                held += 1
    assert held > 150 and all(one.edited for one in edits.values()), {
        c: len(e.edited) for c, e in edits.items()
    }


@pytest.mark.parametrize("code", ["near_miss", "missing_value", "answer_directly"])
def test_an_edited_row_of_what_ships_is_found_by_its_unit(code: str) -> None:
    """Row and diff agree; what ships for the sample is something else."""
    plan = prepare(BuildSpec(profile="bundled", codes=(code,))).plan
    samples, rng, held = {one.clean_id: one for one in plan.samples}, random.Random(0), 0
    for row in plan.rows(code):
        if isinstance(row, Sample):
            edited = of_row(row, rng)
            same = row_dict(edited) == row_dict(row)
            held += not same
            assert same or REGISTRY[code].check(samples[row.clean_id], edited), row.id
    assert held > 10


def of_row(row: Sample, rng: random.Random) -> Sample:
    """The row with an edit in its new tool, else in its last user message."""
    written = msgspec.json.decode(msgspec.json.encode(row))
    brought = (one.get("after") for one in written["changes"])
    new = next((one for one in brought if isinstance(one, dict) and "parameters" in one), {})
    if new:
        place = written["tools"].index(new)
        bare = "required" not in new["parameters"]
        new["parameters"].setdefault("required", [])
        of_tools([new], rng)
        if bare and not new["parameters"]["required"]:
            del new["parameters"]["required"]
        written["tools"][place] = new
    else:
        last = next(one for one in reversed(written["messages"]) if one["role"] == "user")
        last["content"] = of_text(last["content"], rng)
    return msgspec.convert(written, Sample, strict=False)
