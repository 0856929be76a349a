"""The contract: canonical JSON, columns, the facts of types and sources; every value and byte is kept."""

import io
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from robustbench_tc import schema, sources, taxonomy
from robustbench_tc.builders import configs, plain, training_rows
from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.schema import (
    ANY,
    OMIT,
    Call,
    Change,
    Int32,
    Json,
    JsonObject,
    Message,
    Sample,
    Tool,
    arrow_schema,
    columns,
    dumps,
    features,
)

from .known import OUTPUT_FORMATS, SOURCES
from .refusals import refuses

text = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
    | st.sampled_from(["123", "true", "null", '{"x":1}', '"quoted"', "[1]", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(text, json_values, max_size=5)
tools = st.builds(Tool, name=st.sampled_from(["a", "a", "b.c"]) | text, description=text, parameters=objects)
calls = st.builds(Call, name=text, parameters=objects)
samples = st.builds(
    Sample,
    id=text,
    clean_id=text,
    type_code=st.just("clean"),
    source=st.sampled_from(SOURCES),
    category=text,
    messages=st.lists(st.builds(Message, st.sampled_from(["user", "system"]), text)).map(tuple),
    tools=st.lists(tools, max_size=4).map(tuple),
    golden_answers=st.lists(st.lists(calls, max_size=2).map(tuple), max_size=2).map(tuple),
    output_format=text,
    gold_tool_index=st.none() | st.integers(0, 9),
    changes=st.lists(st.builds(Change, text, json_values, json_values), max_size=3).map(tuple),
    seed=st.integers(0, 2**40),
    injected_error=st.none() | text,
    flags=st.lists(text, max_size=2).map(tuple),
)


@given(json_values)
def test_canonical_json_keeps_every_value(value: Any) -> None:
    back = schema.loads(schema.dumps(value))
    assert back == value
    assert repr(back) == repr(value)  # 1 and 1.0, True and 1 stay apart; key order is kept


@given(st.lists(samples, max_size=3))
def test_a_parquet_round_trip_is_exact(rows: list[Sample]) -> None:
    buffer = io.BytesIO()
    pq.write_table(schema.arrow_table(rows, Sample), buffer)
    table = pq.read_table(io.BytesIO(buffer.getvalue()))
    assert [repr(schema.record(row, Sample)) for row in table.to_pylist()] == [repr(row) for row in rows]


@pytest.mark.parametrize("value", [float("nan"), [1, float("inf")], {"a": (None, -float("inf"))}, "\ud800"])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        schema.dumps(value)


def test_a_null_is_not_mistaken_for_a_nan() -> None:
    assert schema.dumps({"a": None}) == '{"a":null}'


# --- Columns stated once are the same for Arrow and for `datasets`, and Arrow's need no `datasets`


class Nested(msgspec.Struct):
    """What no row has."""

    turns: tuple[Message, ...]
    names: dict[str, str]
    places: tuple[Int32, ...]
    anything: JsonObject
    share: float
    n: int | None


EVERY: dict[str, type[msgspec.Struct]] = {
    **{config: configs.row_type(config) for config in (configs.CONFIGS[0], *configs.TABLES)},
    "live": schema.LiveRow,
    "live scores": LiveScore,
    "predictions": schema.Prediction,
    "verdicts": schema.Verdict,
    "training": training_rows.TrainingRow,
    "conversations": training_rows.FineTuningRow,
    "nested": Nested,
}


@pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY)
def test_both_say_the_same_to_the_byte(kind: type[msgspec.Struct]) -> None:
    assert arrow_schema(kind).equals(features(kind).arrow_schema, check_metadata=True)
    assert arrow_schema(kind).metadata == features(kind).arrow_schema.metadata


# --- The facts of types and sources as the contract reads them


def test_the_published_row_has_the_columns_that_a_release_has() -> None:
    row = configs.published(taxonomy.get("CD_AB_pref"))
    assert (row.status, row.static, row.order) == ("extension", True, 23)
    assert configs.published(taxonomy.get("transient_timeout")).static is False


def test_levels_and_packs_are_those_of_the_axes() -> None:
    assert {kind.level for kind in taxonomy.types()} == {"perception", "interaction", "reasoning"}
    assert [kind.code for kind in taxonomy.types("all") if kind.pack == "offers"] == (
        "CD_AB_pref TD_AB_pref CD_swap TD_swap CD_NT_swap TD_NT_swap CD_AB_swap TD_AB_swap "
        "CD_inv TD_inv CD_unit TD_unit CD_moot TD_moot"
    ).split()


def test_an_unknown_type_is_a_user_error_with_near_misses() -> None:
    refuses("did you mean CD_AB", taxonomy.get, "CD_ABB")
    assert not taxonomy.known("CD_ABB") and taxonomy.known("CD_AB")


@pytest.mark.parametrize("fact", ["level", "pack", "channel", "may_change", "rows", "how_made"])
def test_data_without_a_fact_name_it_and_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fact: str
) -> None:
    content: dict[str, Any] = schema.loads(
        (Path(taxonomy.__file__).parent / "data/taxonomy.json").read_bytes()
    )
    del content["types"][7][fact]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "taxonomy.json").write_text(schema.dumps(content))
    monkeypatch.setattr("robustbench_tc.taxonomy.files", lambda package: tmp_path)
    refuses(f"`{fact}`.*make facts", taxonomy._facts.__wrapped__)


def test_the_five_sources_stand_in_the_order_of_every_table() -> None:
    assert SOURCES == ("bfcl_v3", "apibank", "rotbench", "toolalpaca", "tooleyes")
    assert OUTPUT_FORMATS["apibank"] == "tool_call_tags"
    assert sum(source.rows.paper for source in sources.sources()) == 199
    assert [source.name for source in sources.sources() if not source.single_gold_tool] == ["tooleyes"]
    assert sources.find("rlla") is None
    refuses("unknown source 'rotbensh': did you mean rotbench", sources.get, "rotbensh")


# --- The plain columns: what they say of a row, and that the gate reads them back


CLOSING = "<user> With this in mind, answer with one tool call.</user>"


def golden_calls(**parameters: Json) -> tuple[tuple[Call, ...], ...]:
    return ((Call("f", parameters),),)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (golden_calls(a=["x", "y"], b=[2, 3]), "f(a='x', b=2)"),
        (golden_calls(a=[OMIT, "x"], b=["x", OMIT]), "f(b='x')"),
        (golden_calls(a=[ANY]), "f(a=...)"),
        (
            golden_calls(**{"code:": ["a)b"], "from": [1], "to": [True]}),
            "f(to=True, **{'code:': 'a)b', 'from': 1})",
        ),
        (golden_calls(a=[{"b": ["c", "d"], "e": [OMIT, 1], "f": 2.5}]), "f(a={'b': 'c', 'f': 2.5})"),
        (golden_calls(a=[[1, "it's", None]]), """f(a=[1, "it's", None])"""),
        (
            ((Call("a.b", {"x": ["; c("]}), Call("preferred-routes_get", {})), ()),
            "a.b(x='; c('); preferred-routes_get()",
        ),
        ((), ""),
    ],
)
def test_the_first_accepted_answer_is_written_as_python(
    answers: tuple[tuple[Call, ...], ...], said: str
) -> None:
    assert plain.gold_call(answers) == said


def sample(text: str, answers: tuple[tuple[Call, ...], ...]) -> Sample:
    return Sample(
        id="s::clean",
        clean_id="s",
        type_code="clean",
        source="apibank",
        category="level1",
        messages=(Message("system", "You help."), Message("user", text)),
        tools=(Tool("f", "", {}),),
        golden_answers=answers,
        output_format="tool_call_tags",
    )


def test_the_query_is_the_last_substantive_turn() -> None:
    text = f"<user>Could you put this on my list?</user><user>Rye bread</user>{CLOSING}"
    row = sample(text, golden_calls(item=["Rye bread"]))
    assert plain.query(row.messages, row.golden_answers) == "Could you put this on my list?"
    assert plain.published(row).query == "Could you put this on my list?"


def test_columns_hold_what_each_row_says_also_where_rows_share_their_parts() -> None:
    clean = sample(
        f"<user>Rye bread on my list?</user><user>Rye bread</user>{CLOSING}", golden_calls(item=["Rye", OMIT])
    )
    (call,) = clean.golden_answers[0]
    renamed = ((Call("g", call.parameters),),)  # the same object of parameters under another name
    rows = [
        clean,
        msgspec.structs.replace(clean, golden_answers=renamed),
        msgspec.structs.replace(clean, golden_answers=golden_calls(item=["bread", "list", "my"])),
        msgspec.structs.replace(clean, tools=(Tool("g", "new", clean.tools[0].parameters), *clean.tools)),
        sample("<user>Milk</user>", clean.golden_answers),
    ]
    made = columns(map(plain.published, rows), schema.PublishedSample)
    assert made["tools"] == [dumps(row.tools) for row in rows]
    assert made["golden_answers"] == [dumps(row.golden_answers) for row in rows]
    assert made["gold_call"][1] == "g(item='Rye')"


def test_who_says_nothing_has_no_query() -> None:
    assert plain.query((Message("system", "You help."),), ()) == ""
