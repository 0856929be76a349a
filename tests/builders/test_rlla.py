"""ToolRL's rows: read, taken apart, and written back byte for byte."""

import json
import re
import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from robustbench_tc.builders.sources import rlla
from robustbench_tc.builders.sources.rlla import Dropped, RllaRow, canned, gold_text, rename_in_history
from robustbench_tc.eval.prompts.rlla_form import parse_system, system_text
from robustbench_tc.io import parquet
from robustbench_tc.schema import Tool
from tests.loopback import LoopbackServer

from ..conftest import Rbtc
from ..refusals import refuses
from . import rlla_rows as made


def kept(row: RllaRow | Dropped) -> RllaRow:
    assert isinstance(row, RllaRow), row
    return row


def test_every_real_prompt_and_gold_is_written_back_byte_for_byte(shared: Path) -> None:
    files = rlla.find_files(shared / "sources")
    assert files.validation is not None
    parquet = pq.read_table(files.validation).to_pylist()
    sft = json.loads(files.train.read_bytes())
    texts = [(r["prompt"][0]["content"], r["prompt"][1]["content"]) for r in parquet]
    texts += [(r["instruction"], r["input"]) for r in sft]
    rows = [kept(row) for row in rlla.read_rows(files)]
    assert len(rows) == len(texts) == 480
    for row, (system, user) in zip(rows, texts, strict=True):
        assert system_text(row.registry, row.sample.tools) == system
        assert row.sample.messages[0].content == user
        names = [call.name for answer in row.sample.golden_answers for call in answer]
        assert gold_text(row.gold, names) == row.gold
    assert [row.gold for row in rows[:80]] == [r["reward_model"]["ground_truth"] for r in parquet]
    assert {row.gold.partition("\n")[0] for row in rows[80:]} == {
        row.gold.partition("\n")[0] for row in rows[:80]
    }


def test_the_mirrors_files_are_known_as_upstreams(shared: Path) -> None:
    files = rlla.find_files(shared / "sources")
    assert files.form == "sft_json"
    assert rlla.provenance(files.train)["pinned"] is True


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=12)
PARAMETERS = st.dictionaries(
    WORDS,
    st.fixed_dictionaries(
        {
            "description": st.text(max_size=20),
            "type": st.sampled_from(["int", "integer", "str, optional", "List[List[float]]", "any", "Dict"]),
            "default": st.none() | st.text(max_size=4) | st.integers() | st.floats(allow_nan=False),
        }
    ),
    max_size=3,
)
TOOLS = st.lists(
    st.fixed_dictionaries({"name": WORDS, "description": WORDS, "parameters": PARAMETERS}),
    min_size=1,
    max_size=4,
)


@given(TOOLS)
def test_any_registry_of_the_form_survives(tools: list[dict[str, object]]) -> None:
    text = made.system(*tools)
    row = rlla.row("rlla__x", "train", text, "hello", made.reply())
    if isinstance(row, RllaRow):
        assert system_text(row.registry, row.registry.tools) == text
        assert [tool.name for tool in row.registry.tools] == [tool["name"] for tool in tools]
    else:
        assert row.reason in ("tools_not_parsed", "tools_not_written_back")


def test_a_description_may_hold_a_line_that_looks_like_the_parameters() -> None:
    tool = made.FERRY | {"description": "Reads a log.\nParameters: none are needed.\n2. Name: not a tool"}
    registry = parse_system(made.system(tool, made.MUSHROOM))
    assert [t.name for t in registry.tools] == ["findFerryTimes", "identify_mushroom"]
    assert registry.tools[0].description == tool["description"]


def test_type_words_become_json_schema_and_keep_their_own_word() -> None:
    properties = parse_system(made.system(made.FERRY, made.LIBRARY)).tools[0].properties
    assert properties["harbour"] == {
        "description": "Where the ferry leaves.",
        "type": "string",
        "x-type": "str",
        "default": "",
    }
    assert properties["after"]["type"] == "integer"


def test_a_reworded_parameter_keeps_type_word_and_default() -> None:
    registry = parse_system(made.system(made.FERRY))
    tool = registry.tools[0]
    properties = tool.properties | {
        "after": tool.properties["after"] | {"description": "Not before, in hours."}
    }
    reworded = Tool(tool.name, tool.description, tool.parameters | {"properties": properties})
    expected = json.loads(json.dumps(made.FERRY))
    expected["parameters"]["after"]["description"] = "Not before, in hours."
    assert system_text(registry, [reworded]) == made.system(expected)


def test_a_new_tool_is_written_in_the_same_form_and_type_words() -> None:
    registry = parse_system(made.system(made.MUSHROOM))
    schema = {
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}, "description": "Which ones."},
            "how": {"type": "string", "enum": ["raw", "fried"], "description": "Style."},
            "at": {"type": "number"},
        },
        "required": ["ids"],
    }
    text = system_text(registry, [Tool("cook", "Cooks.", schema), *registry.tools])
    cook = {
        "name": "cook",
        "description": "Cooks.",
        "parameters": {
            "ids": {"description": "Which ones.", "type": "List[int]", "default": ""},
            "how": {"description": "Style. One of: raw, fried.", "type": "string", "default": ""},
            "at": {"description": "", "type": "float", "default": ""},
        },
    }
    assert text == made.system(cook, made.MUSHROOM)


def test_a_renamed_gold_differs_in_the_name_only() -> None:
    gold = made.gold(("find é", {"q": "find é"}), ("ping", {})).replace('{"q"', '{ "q"')
    renamed = gold_text(gold, ["fnd", "ping"])
    assert renamed == gold.replace(json.dumps("find é"), '"fnd"', 1)
    assert gold_text(made.reply(), []) == made.reply()


def test_history_follows_a_renamed_tool_in_calls_and_results_only() -> None:
    _, user, _ = made.dialogue_row()
    text, edits = rename_in_history(user, {"findFerryTimes": "finFerTim"})
    assert len(edits) == 2 and all(user[at:].startswith(old) for at, old, _ in edits)
    assert '{"name": "finFerTim", "parameters"' in text
    assert '[{"name": "finFerTim", "results": {"name": "findFerryTimes is a line"}}]' in text
    assert "<response> findFerryTimes said so. </response>" in text


def test_a_thought_that_mentions_the_tag_does_not_hide_the_answer() -> None:
    answer = made.gold(("ping", {})).partition("\n")[2]
    gold = f"<think> I must open <tool_call> now. </think>\n{answer}"
    assert canned(gold) == f"{made.THOUGHT}\n{answer}"
    assert canned("<think> long </think>\n<response> Hi. </response>").startswith("<think> I should directly")


@pytest.mark.parametrize(
    ("system", "user", "gold", "reason"),
    [
        (made.system(made.FERRY), " ", made.reply(), "no_user_text"),
        ("no tools here", "hi", made.reply(), "tools_not_parsed"),
        (made.system(made.FERRY).replace('"type"', "type"), "hi", made.reply(), "tools_not_parsed"),
        (made.system(made.FERRY), "hi", "<tool_call>\nnothing\n</tool_call>", "gold_not_decodable"),
        (made.system(made.FERRY), "hi", '<tool_call>\n{"name": "x"}\n</tool_call>', "gold_not_decodable"),
    ],
)
def test_a_row_that_cannot_be_read_says_why(system: str, user: str, gold: str, reason: str) -> None:
    row = rlla.row("rlla__x", "train", system, user, gold)
    assert isinstance(row, Dropped) and row.reason == reason


def test_the_rl_parquet_comes_before_raw_before_sft(tmp_path: Path) -> None:
    rows = [made.ferry_row(n) for n in range(3)]
    made.write_json(tmp_path / "rlla_4k_raw/rlla_sft.json", rows)
    made.write_parquet(tmp_path / "rlla_4k/test.parquet", rows[:1])
    assert rlla.find_files(tmp_path).form == "sft_json"
    made.write_json(tmp_path / "rlla_rl.json", rows)
    assert rlla.find_files(tmp_path).form == "raw_json"
    made.write_parquet(tmp_path / "rlla_4k/train.parquet", rows)
    files = rlla.find_files(tmp_path)
    assert files.form == "rl_parquet"
    ids = [kept(row).sample.clean_id for row in rlla.read_rows(files)]
    assert ids == ["rlla__test_0", "rlla__train_0", "rlla__train_1", "rlla__train_2"]


def test_a_raw_file_alone_is_split_as_upstream_split_it(tmp_path: Path) -> None:
    assert len(rlla.raw_test(4_000)) == 80
    made.write_json(tmp_path / "rlla_rl.json", [made.ferry_row(n) for n in range(100)])
    splits = [kept(row).split for row in rlla.read_rows(rlla.find_files(tmp_path))]
    assert splits == ["validation"] * 2 + ["train"] * 98


def test_missing_and_broken_files_are_one_line_errors(tmp_path: Path) -> None:
    refuses("--rlla takes", rlla.find_files, tmp_path / "nowhere")
    refuses(r"no train\.parquet", rlla.find_files, tmp_path)
    made.write_parquet(tmp_path / "train.parquet", [made.ferry_row(1)])
    refuses(r"no test\.parquet", rlla.find_files, tmp_path)
    (tmp_path / "test.parquet").write_bytes(b"PAR1 nothing")
    refuses(r"test\.parquet: not a parquet", list, rlla.read_rows(rlla.find_files(tmp_path)))
    (tmp_path / "train.parquet").unlink()
    (tmp_path / "rlla_sft.json").write_text('[{"instruction": 1}]')
    made.write_parquet(tmp_path / "test.parquet", [made.ferry_row(1)])
    refuses(r"rlla_sft\.json: not a JSON list", list, rlla.read_rows(rlla.find_files(tmp_path)))


# --- `rbtc build toolrl-dr` as a user meets it, with an endpoint on the loopback interface


def rewritten(body: Any) -> str:
    """What the endpoint answers: the marked text in other words, or a new tool."""
    asked = body["messages"][-1]["content"]
    if "-CONVERSATION>" in asked:
        name = f"old_{zlib.crc32(asked.encode())}"
        schema = {"type": "object", "properties": {}, "required": []}
        return json.dumps({"tools": [{"name": name, "description": f"Keeps {name}.", "parameters": schema}]})
    found = re.search(r"<(TEXT-\w+)>\n(.*?)\n</\1>", asked, re.DOTALL)
    assert found is not None
    return f"In other words: {found.group(2)}"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "rlla"
    return made.write(folder, [made.ferry_row(n) for n in range(60)], [made.ferry_row(1_000)])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path / "no sources"))


def test_an_endpoint_writes_the_texts_of_the_drawn_types_and_a_second_build_asks_nothing(
    source: Path, tmp_path: Path, rbtc: Rbtc
) -> None:
    with LoopbackServer(rewritten) as server:
        spec = f"openai:tiny@{server.url}"
        command = ("build", "toolrl-dr", "--rlla", source, "--generator", spec, "--json", "--out")
        first = json.loads(rbtc(*command, "one").out)
        asked = len(server.bodies)
        assert rbtc(*command, "two").code == 0
        assert len(server.bodies) == asked > 0
    assert first["not_generated"] == [] and len(first["types"]) == 16
    assert first["rows"]["full"] == {
        "train": 60,
        "perturbed": 60,
        "validation": 2,
        "validation_perturbed": 1,
    }
    found = [
        json.loads(r["extra_info"]) for r in parquet.read_rows(parquet.shards(tmp_path / "one/full", "train"))
    ]
    written = [info for info in found if info["generator"] != "rule"]
    assert {info["generator"] for info in written} == {"tiny@v1"}
    assert {info["type_code"] for info in written} == set(first["generators"])
    one, two = (
        {p.name: p.read_bytes() for p in (tmp_path / x).rglob("*.parquet") if "full" in str(p)}
        for x in ("one", "two")
    )
    assert one == two


def test_without_an_endpoint_and_sources_the_report_says_what_was_not_done(source: Path, rbtc: Rbtc) -> None:
    done = rbtc("build", "toolrl-dr", "--rlla", source)
    said = " ".join(done.out.split())
    assert "Not generated (no generator): realistic_typos" in said
    assert "Leak check: not done: no benchmark sources at hand" in said
    assert "toolrl-dr" in done.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--ratio", "1.5"], "--ratio 3/2 is not a share: give a number from 0 to 1"),
        (["--types", "CD,transient_timeout"], "transient_timeout happens at run time"),
        (["--configs", "fulll"], "unknown config 'fulll': did you mean full?"),
        (["--max-cost", "3"], "--max-cost needs --price"),
        (["--sources", "nowhere"], "no benchmark sources in nowhere"),
        (["--generator", "redundant=recorded:nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(
    source: Path, tmp_path: Path, rbtc: Rbtc, arguments: list[str], line: str
) -> None:
    assert line in rbtc("build", "toolrl-dr", "--rlla", source, *arguments).refusal
    assert not (tmp_path / "toolrl-dr").exists()
    wrong = rbtc("build", "toolrl-dr", "--rlla", source, "--ratio", "half")
    assert (wrong.code, wrong.err) == (2, "rbtc: --ratio: 'half' is not a number: give a share from 0 to 1\n")
