"""Each reader on a few records written here, in the source's own format; and files that are not as pinned."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.builders import sources
from robustbench_tc.builders.sources import apibank, bfcl, rotbench, toolalpaca, tooleyes
from robustbench_tc.builders.sources.base import KnownIssue, Reader
from robustbench_tc.errors import UserError
from robustbench_tc.eval.score import score
from robustbench_tc.schema import ANY, Call, Sample

from ...refusals import refuses

BFCL_FILE = "bfcl/berkeley-function-call-leaderboard/bfcl_eval/data/BFCL_v3_multiple.json"
ASK = {"name": "ask_to_user", "description": "Ask.", "parameters": {"type": "object", "properties": {}}}


def write(root: Path, file: str, value: Any) -> None:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = file == BFCL_FILE or "possible_answer" in file or file.endswith("jsonl")
    path.write_text("\n".join(map(json.dumps, value)) if lines else json.dumps(value))


def items(reader: Reader, root: Path, file: str | None = None) -> list[Any]:
    return [item for _, item in reader.read_file(root, file or reader.files[0])]


def bfcl_question(number: int, **changes: Any) -> dict[str, Any]:
    function = {
        "name": "light.dim",
        "description": "Dims a light.",
        "parameters": {
            "type": "dict",
            "properties": {
                "level": {"type": "float", "description": "0 to 1."},
                "rooms": {"type": "tuple", "items": {"type": "string"}},
                "extra": {"type": "any"},
            },
            "required": ["level"],
        },
    }
    question = {
        "id": f"multiple_{number}",
        "question": [[{"role": "user", "content": "Dim it."}]],
        "function": [function],
    }
    return question | changes


def write_bfcl(root: Path, questions: list[dict[str, Any]], truths: list[Any]) -> None:
    write(root, BFCL_FILE, questions)
    answers = [{"id": q["id"], "ground_truth": t} for q, t in zip(questions, truths, strict=True)]
    write(root, BFCL_FILE.replace("BFCL_v3", "possible_answer/BFCL_v3"), answers)


def test_bfcl_keeps_upstream_value_lists_and_system_turns(tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Dim it."}]
    truth = {"light.dim": {"level": [0.5, 1], "rooms": ["", ["hall"]], "extra": [{"a": [1, ""]}]}}
    write_bfcl(tmp_path, [bfcl_question(0, question=[turns])], [[truth]])
    (sample,) = items(bfcl.READER, tmp_path, BFCL_FILE)
    assert sample.clean_id == "bfcl_v3__BFCL_v3_multiple__multiple_0"
    assert sample.category == "multiple"
    assert [m.role for m in sample.messages] == ["system", "user"]
    assert sample.golden_answers == ((Call("light.dim", truth["light.dim"]),),)
    types = {name: schema.get("type") for name, schema in sample.tools[0].properties.items()}
    assert types == {"level": "number", "rooms": "array", "extra": None}
    assert sample.tools[0].required == ("level",)


def test_bfcl_records_that_cannot_serve_are_issues(tmp_path: Path) -> None:
    questions = [bfcl_question(1), bfcl_question(3), bfcl_question(4, id="live_multiple_862-181-3")]
    write_bfcl(tmp_path, questions, [[{"lamp": {}}], [], [{"light.dim": {"level": [1]}}]])
    assert [item.reason for item in items(bfcl.READER, tmp_path, BFCL_FILE)] == [
        "gold_tool_not_listed",
        "gold_not_decodable",
        "known_wrong_gold",
    ]


SYSTEM = """You help.

**Available Tools**
In your response, you can use the following tools:
{tools}

**Steps for Each Turn**
1. **Think:** Recall relevant context.
2. **Respond:** Say it.
"""


@pytest.mark.parametrize("level", [1, 2, 3])
def test_apibank_reads_both_heading_forms_and_both_answer_forms(tmp_path: Path, level: int) -> None:
    literal = "{'hour': {'type': 'int', 'description': \"The hour's number.\"}, 'who': {'type': 'list(str)'}}"
    heads = ("1. SetAlarm: Sets an alarm: once", "2. Ping: Pings.")
    if level < 3:
        heads = ("1. Name: SetAlarm\nDescription: Sets an alarm: once", "2. Name: Ping\nDescription: Pings.")
    tools = f"{heads[0]}\nParameters: {literal}\n{heads[1]}\nParameters: {{}}"
    call = {"name": "SetAlarm", "parameters": {"hour": "7", "who": "['me']"}}
    record = {
        "system": SYSTEM.replace("{tools}", tools),
        "user": "<user>Wake me</user>",
        "answer": call if level == 2 else [call],
    }
    write(tmp_path, apibank.READER.files[level - 1], [record])
    (sample,) = items(apibank.READER, tmp_path, apibank.READER.files[level - 1])
    assert sample.clean_id == f"apibank__level{level}_0"
    assert sample.category == f"level{level}"
    assert [(t.name, t.description) for t in sample.tools] == [
        ("SetAlarm", "Sets an alarm: once"),
        ("Ping", "Pings."),
    ]
    assert sample.tools[0].parameters == {
        "type": "object",
        "properties": {
            "hour": {"type": "integer", "description": "The hour's number."},
            "who": {"type": "array", "items": {"type": "string"}},
        },
    }
    assert sample.golden_answers == ((Call("SetAlarm", {"hour": ["7"], "who": ["['me']"]}),),)


def react_record(query: str, answers: list[str] | None, tools: list[dict[str, Any]]) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [
        {"from": "system", "value": f"Use these:\n{json.dumps(tools)}\n\nLet's Begin!"},
        {"from": "user", "value": query + ("" if answers is None else "\nBegin!\n")},
    ]
    if answers is not None:
        turns.append({"from": "assistant", "value": answers})
    return {"id": f"Turn 1: {query}", "scenario": "RS", "conversations": turns}


def tool(name: str, *parameters: str) -> dict[str, Any]:
    properties = {p: {"type": "string", "description": p} for p in parameters}
    schema = {"type": "object", "properties": properties, "required": []}
    return {"name": name, "description": f"Does {name}.", "parameters": schema}


def test_rotbench_reads_every_accepted_answer(tmp_path: Path) -> None:
    golden = [
        'Thought:\nAction: roll\nAction Input: {"sides": "6", "seed": "None"}',
        'Thought: Hm.\nAction: ask_to_user\nAction Input: {"question": "Which die?"}',
        "Thought:\nAction: roll\nAction Input: {}",
    ]
    registry = [tool("roll"), tool("roll", "sides", "seed"), tool("ask_to_user", "question")]
    write(tmp_path, rotbench.READER.files[0], [react_record("Roll a [die].", golden, registry)])
    (sample,) = items(rotbench.READER, tmp_path)
    assert sample.messages[0].content == "Roll a [die]."
    assert sample.golden_answers == (
        (Call("roll", {"sides": ["6"], "seed": [ANY]}),),
        (Call("ask_to_user", {"question": [ANY]}),),
        (Call("roll", {}),),
    )
    assert sample.gold_tool_index == 1  # the first `roll` that declares the golden parameters


def test_tooleyes_has_one_answer_per_combination_of_names(tmp_path: Path) -> None:
    registry = [tool("day"), tool("date"), tool("hour", "zone"), ASK]
    records = [react_record(query, None, registry) for query in ("When?", "Why?", "Who?")]
    write(tmp_path, tooleyes.READER.files[0], records)
    steps = [
        {"any_of": ["date", "day"], "parameters": {}},
        {"any_of": ["hour"], "parameters": {"zone": ["UTC"]}},
    ]
    labels = [
        {"record": 0, "steps": steps, "agreed": True},
        {"record": 2, "steps": [{"any_of": ["year"]}], "agreed": False},
    ]
    write(tmp_path, tooleyes.LABELS, labels)
    sample, unlabelled, unlisted = items(tooleyes.READER, tmp_path)
    assert sample.golden_answers == (
        (Call("date", {}), Call("hour", {})),
        (Call("day", {}), Call("hour", {})),
    )
    assert sample.gold_tool_index == 1
    assert (unlabelled.reason, unlisted.reason) == ("no_label", "gold_tool_not_listed")
    write(tmp_path, tooleyes.LABELS, [labels[0], labels[0]])
    with pytest.raises(UserError, match=r"tooleyes_gold\.jsonl: record 0 has a label already"):
        tooleyes.labels(tmp_path)
    (tmp_path / tooleyes.LABELS).write_text('{"record"')
    with pytest.raises(UserError, match=r"tooleyes_gold\.jsonl: Input data was truncated"):
        tooleyes.labels(tmp_path)


def test_a_tooleyes_label_may_accept_another_sequence_of_calls(tmp_path: Path) -> None:
    also = tooleyes.labels(tmp_path)[242].also
    assert also == [["paper_rank", "paper_rank"]]  # one call for two domains, or one for each
    accepted = ((Call("paper_rank", {}),), (Call("paper_rank", {}),) * 2)
    for calls, right in ((accepted[0], True), (accepted[1], True), (accepted[1] * 2, False)):
        found = score(calls, source="tooleyes", category="", golden_answers=accepted, tools=())
        assert found.correct is right


def api(**changes: Any) -> dict[str, Any]:
    function = (
        'Shows the sky\nParameters: {"api_key": "Required. string. Your key.", '
        '"units": "string. One of: [m, f]. Which units.", "days": "Required. integer. ", '
        '"tags": "Array[string].", "area": "Array[Object{x: number. Left., y: number. Top.}. ]. Where."}'
        "\nOutput: OK.\n - Format: application/json\n - Structure: Object{a}"
    )
    return {
        "Name": "Sky",
        "Category": "Weather",
        "Authentication": {"api_key": "***"},
        "Function_Description": {"sky_get": function, "components": "Types."},
        "Instructions": ["Show it.", "Again."],
        "Golden_Answers": [
            [{"Action": "sky_get", "Action_Input": '{"api_key": "s3cr3t", "days": 2}'}],
            [{"Action": "sky_get", "Action_Input": '{"days": ${days}}'}],
        ],
    } | changes


def test_toolalpaca_reads_parameter_strings_and_hides_credentials(tmp_path: Path) -> None:
    write(tmp_path, toolalpaca.READER.files[0], [api()])
    (_, sample), (record, issue) = toolalpaca.read_file(tmp_path, toolalpaca.READER.files[0])
    assert sample.clean_id == "toolalpaca__Sky__inst0"
    assert isinstance(sample, Sample)
    assert sample.tools[0].description == "Shows the sky"
    assert sample.tools[0].parameters == {
        "type": "object",
        "properties": {
            "api_key": {"type": "string", "description": "Your key."},
            "units": {"type": "string", "enum": ["m", "f"], "description": "One of: [m, f]. Which units."},
            "days": {"type": "integer", "description": ""},
            "tags": {"type": "array", "items": {"type": "string"}, "description": ""},
            "area": {"type": "array", "items": {"type": "object"}, "description": "Where."},
        },
        "required": ["api_key", "days"],
    }
    assert sample.golden_answers == ((Call("sky_get", {"days": [2]}),),)
    assert isinstance(issue, KnownIssue)
    assert (record, issue.record, issue.reason) == ("0/1", "0/1", "gold_not_decodable")


def test_toolalpaca_without_authentication_compares_every_parameter(tmp_path: Path) -> None:
    write(tmp_path, toolalpaca.READER.files[0], [api(Authentication={})])
    sample = items(toolalpaca.READER, tmp_path)[0]
    assert sample.golden_answers[0][0].parameters == {"api_key": ["s3cr3t"], "days": [2]}


def test_toolalpaca_ids_of_the_two_sets_never_meet(tmp_path: Path) -> None:
    for file in toolalpaca.READER.files:
        write(tmp_path, file, [api()])
    ids = [
        item.clean_id for file in toolalpaca.READER.files for item in items(toolalpaca.READER, tmp_path, file)
    ]
    assert len(set(ids)) == len(ids) == 4


def test_duplicate_ids_keep_the_first_and_report_the_other(tmp_path: Path) -> None:
    good = [{"light.dim": {"level": [1]}}]
    another = bfcl_question(1, question=[[{"role": "user", "content": "Dim the hall."}]])
    write_bfcl(tmp_path, [bfcl_question(0), bfcl_question(0), another], [good, good, good])
    pool = sources.read_pool(tmp_path, "bundled")
    assert [s.clean_id.rpartition("_")[2] for s in pool.samples] == ["0", "1"]
    assert [(i.reason, i.record) for i in pool.issues] == [("duplicate_id", "1")]


def test_a_sample_that_the_scorer_refuses_is_left_out_with_its_reason(tmp_path: Path) -> None:
    good, bad = [{"light.dim": {"level": [1]}}], [{"light.dim": {"level": [1], "zz": ["x"]}}]
    write_bfcl(tmp_path, [bfcl_question(0), bfcl_question(1)], [bad, good])
    assert len(sources.read_pool(tmp_path, "bundled").samples) == 2
    pool = sources.read_pool(tmp_path, "bundled", checked=True)
    assert [s.clean_id for s in pool.samples] == ["bfcl_v3__BFCL_v3_multiple__multiple_1"]
    (issue,) = pool.issues
    assert (issue.reason, issue.source, issue.file) == ("gold_fails_scorer", "bfcl_v3", BFCL_FILE)
    assert "refuses the golden answer: answer 0 as " in issue.detail


def test_a_missing_file_is_named_where_the_profile_needs_it(tmp_path: Path) -> None:
    assert sources.read_pool(tmp_path, "bundled") == sources.Pool((), ())
    profiles: tuple[sources.Profile, ...] = ("paper", "full")
    for profile in profiles:
        refuses(r"missing source file bfcl/.*BFCL_v3_.*rbtc data fetch", sources.read_pool, tmp_path, profile)
    refuses(r"no sources folder at .*rbtc data fetch", sources.read_pool, tmp_path / "none", "full")
    with pytest.raises(UserError, match="unknown profile 'papr': did you mean paper"):
        sources.read_pool(tmp_path, "papr")  # type: ignore[arg-type]


def test_a_file_that_is_not_as_pinned_is_refused(tmp_path: Path) -> None:
    write_bfcl(tmp_path, [bfcl_question(0)], [[{"light.dim": {"level": [1]}}]])
    refuses(
        r"BFCL_v3_multiple\.json: wrong checksum: .*`rbtc data fetch`", sources.read_pool, tmp_path, "paper"
    )
