"""The language pack: what is accepted, what is skipped and why, and types of languages that nobody states."""

import random

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from robustbench_tc import taxonomy
from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.builders.configs import published
from robustbench_tc.builders.perturb import REGISTRY, Context, NotApplicable, Text, gold_texts
from robustbench_tc.builders.perturb.language import Translation, read_translation, refuse_translation
from robustbench_tc.builders.plain import other_script, row_dict
from robustbench_tc.eval.score import score
from robustbench_tc.eval.score.golden import concrete
from robustbench_tc.languages import LANGUAGES, RECORDED, VALUE_MAP, value_map
from robustbench_tc.schema import Json, Sample, content_hash, dumps, record

from ...refusals import refuses
from . import cases
from .strategies import samples

TABLE = cases.CLEAN["table"]
ASKED = TABLE.messages[0].content
ANSWER = {"text": "今晚在露娜订 2 个座位。", "value_map": {"Luna": "露娜"}}
FULL = [f"language_full_{code}" for code in RECORDED]
PACK = [kind.code for kind in taxonomy.types("all") if kind.pack == "language"]


def refusal(code: str, answer: Json) -> str | None:
    unit = REGISTRY[code]
    (request,) = unit.requests(TABLE)
    return unit.refuse(request, answer)


def row_of(code: str, answer: Json, taken: bool = False, sample: Sample = TABLE) -> Sample:
    unit = REGISTRY[code]
    (request,) = unit.requests(sample)
    context = Context({request.key: Text(answer, "hand-written")}, taken=lambda sample, surfaces: taken)
    return unit.perturb(sample, random.Random(0), context)


def test_the_pack_has_two_types_of_five_languages() -> None:
    assert [f"language_{code}" for code in RECORDED] + FULL == PACK
    assert [taxonomy.get(code).order for code in PACK] == list(range(101, 111))
    assert {REGISTRY[code].train_augmentable for code in FULL} == {False}


@pytest.mark.parametrize(
    ("code", "answer", "reason"),
    [
        ("language_zh", "今晚在 Luna 订 2 个座位。", None),
        ("language_zh", "今晚在露娜订 2 个座位。", "lost value 'Luna'"),
        ("language_zh", "今晚在 Luna 订两个座位。", "lost value '2'"),
        (
            "language_zh",
            "Please book 2 seats at Luna for tonight 好",
            "fewer than half of its letters are Han",
        ),
        ("language_es", "Reserva 2 asientos en Luna.", None),
        ("language_es", ASKED, "unchanged"),
        ("language_ru", "Забронируй 2 места в Luna на вечер.", None),
        ("language_ru", "Reserve 2 seats in Luna tonight.", "fewer than half of its letters are Cyrillic"),
        ("language_zh", None, "empty"),
    ],
)
def test_a_text_with_values_kept(code: str, answer: Json, reason: str | None) -> None:
    assert refusal(code, answer) == reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"text": "今晚在露娜订 2 个座位。", "value_map": {"Luna": "露娜"}}, None),
        ({"text": "今晚在 Luna 订 2 个座位。", "value_map": {}}, None),
        ({"text": "今晚在 Luna 订 2 个座位。"}, None),
        ({"text": "今晚在露娜订 2 个座位。", "value_map": {}}, "lost value 'Luna'"),
        ({"text": "今晚在露娜订 2 个座位。", "value_map": {"Luna": "月亮"}}, "no words for the value 'Luna'"),
        ({"text": "今晚在露娜订 2 个座位。", "value_map": {"Luna": " "}}, "no words for the value 'Luna'"),
        ({"text": "今晚在露娜订座位。", "value_map": {"Luna": "露娜", "2": "座位"}}, "lost digits 2"),
        ({"text": "Book 2 at 露娜 tonight", "value_map": {"Luna": "露娜"}}, "fewer than half"),
        ({"text": ASKED, "value_map": {}}, "unchanged"),
        ({"text": "今晚在 LUNA 订 2 个座位。", "value_map": {"Luna": "LUNA"}}, "lost value 'Luna'"),
        ({"text": "好" * 80 + " 2 个", "value_map": {"Luna": "好" * 80}}, "words that are far longer"),
        ("今晚在露娜订 2 个座位。", "not a JSON object"),
        (["x"], "not a JSON object"),
        ({"text": 7, "value_map": {}}, "not a JSON object"),
        ({"text": "x", "value_map": ["Luna"]}, "`value_map` does not map values to texts"),
        ({"text": "x", "value_map": {"Luna": 7}}, "`value_map` does not map values to texts"),
        ({"text": "x", "value_map": {}, "unmapped": "Luna"}, "`unmapped` is not a list of values"),
    ],
)
def test_a_text_with_values_translated(answer: Json, reason: str | None) -> None:
    found = refusal("language_full_zh", answer)
    assert (found is None) is (reason is None)
    assert reason is None or (found is not None and found.startswith(reason))


def test_a_row_says_what_stands_for_which_value() -> None:
    row = row_of(
        "language_full_zh", {"text": "今晚在露娜订 2 个座位。", "value_map": {"Luna": "露娜", "x": "座位"}}
    )
    assert value_map(row) == {"Luna": "露娜"}, "what is no golden value is left out"
    assert row.golden_answers == TABLE.golden_answers and row.tools == TABLE.tools
    assert [change.path for change in row.changes] == ["/messages/0/content", VALUE_MAP]
    assert record(row_dict(row), Sample) == row
    hidden = msgspec.structs.replace(row, changes=row.changes[:1])
    assert content_hash(hidden) == content_hash(row), "the map is not what a model is shown"


@pytest.mark.parametrize(
    ("answer", "taken", "reason"),
    [
        ({"text": "今晚在 Luna 订 2 个座位。", "value_map": {}}, False, "no_value_to_translate"),
        (
            {"text": "今晚在露娜订 2 个座位。", "value_map": {"Luna": "露娜"}, "unmapped": ["Luna"]},
            False,
            "surface_not_unique",
        ),
        (
            {"text": "今晚在露娜订 2 个座位。", "value_map": {"Luna": "露娜", "2": "露娜"}},
            False,
            "surface_not_unique",
        ),
        (ANSWER, True, "surface_is_accepted"),
        (
            {"text": "今晚在露娜订座位。", "value_map": {"Luna": "露娜"}},
            False,
            "text_refused: lost value '2'",
        ),
    ],
)
def test_a_sample_without_such_a_row_says_why(answer: Json, taken: bool, reason: str) -> None:
    with pytest.raises(NotApplicable) as skipped:
        row_of("language_full_zh", answer, taken)
    assert skipped.value.reason == reason


def test_a_translated_value_stands_nowhere_else_in_english_and_the_audit_names_one_that_does() -> None:
    row, unit = row_of("language_full_zh", ANSWER), REGISTRY["language_full_zh"]
    assert unit.check(TABLE, row) == []
    menu = msgspec.structs.replace(TABLE.tools[0], description="Shows a menu, of Luna by default.")
    named = (menu, TABLE.tools[1])
    planted = msgspec.structs.replace(row, tools=named)
    assert "a translated value stands in the row in English too" in unit.check(TABLE, planted)
    with pytest.raises(NotApplicable, match="value_stands_in_english"):
        row_of("language_full_zh", ANSWER, sample=msgspec.structs.replace(TABLE, tools=named))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2023年3月16日在露娜订 2 个座位。", None),
        ("2023 年 3 月 16 日在露娜订 2 个座位。", None),
        ("2023 年三月 16 日在露娜订 2 个座位。", "a month in words before a day in digits"),
        ("2023年4月16日在露娜订 2 个座位。", "lost digits 03"),
    ],
)
def test_a_chinese_date_is_written_as_people_type_it(text: str, reason: str | None) -> None:
    found = Translation(text, {"Luna": "露娜"})
    said = refuse_translation("zh", "Book 2 seats at Luna on 2023-03-16.", ("Luna", "2"), found)
    assert said is None if reason is None else reason in str(said)
    row = row_of("language_full_zh", ANSWER)
    change = msgspec.structs.replace(row.changes[0], before="Book 2 seats on 2023-03-16.", after=text)
    planted = msgspec.structs.replace(row, changes=(change, *row.changes[1:]))
    checks = ("chinese_dates_are_as_people_type_them", "digits_kept")
    assert any(INVARIANTS[name].verdict(planted, TABLE) for name in checks) == (reason is not None)


def test_a_sample_without_a_value_in_words_needs_no_text() -> None:
    (call,) = TABLE.golden_answers[0]
    numbers = msgspec.structs.replace(call, parameters={"seats": [2]})
    with pytest.raises(NotApplicable, match="no_value_to_translate"):
        REGISTRY["language_full_zh"].requests(msgspec.structs.replace(TABLE, golden_answers=((numbers,),)))


# --- any other language --------------------------------------------------------------------------------


def test_a_type_of_another_language_comes_into_being_by_its_name() -> None:
    kind, unit = taxonomy.get("language_de"), REGISTRY["language_de"]
    assert (kind.display_name, kind.pack, kind.traits["language"]) == ("German-Kept", "language", "de")
    assert (unit.code, unit.how_made, unit.judged_as) == (kind.code, kind.how_made, kind.judged_as)
    assert "{" not in dumps(published(kind)).replace("{", "", 1)
    assert taxonomy.known("language_full_ja") and not taxonomy.known("language_qq")
    assert [one.code for one in taxonomy.among(["language_de", "CD", "clean"])] == ["CD", "language_de"]
    assert kind not in taxonomy.types("all") and kind in taxonomy.types("known")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("language_qq", "unknown language 'qq'"),
        ("language_en", "unknown language 'en'"),
        ("language_deu", "unknown perturbation type 'language_deu'"),
        ("language_full_", "unknown perturbation type"),
    ],
)
def test_an_unknown_language_is_named(code: str, line: str) -> None:
    refuses(line, taxonomy.get, code)
    with pytest.raises(KeyError):
        REGISTRY[code]


def test_every_further_type_has_facts_and_an_order_of_its_own() -> None:
    known = taxonomy.types("known")
    assert len({kind.order for kind in known}) == len({kind.code for kind in known}) == len(known)
    of_languages = [kind for kind in known if kind.pack == "language"]
    assert len(of_languages) == 2 * len(LANGUAGES)
    assert all(REGISTRY[kind.code].display_name == kind.display_name for kind in of_languages)


# --- properties ----------------------------------------------------------------------------------------


def translated(code: str, sample: Sample) -> Json:
    """What a rule-abiding writer answers: words of the script before the text, every second value renamed."""
    (request,) = REGISTRY[code].requests(sample)
    letter = {"Han": "好", "Devanagari": "क", "Arabic": "س"}.get(
        LANGUAGES[str(taxonomy.get(code).traits["language"])].script or "", "ñ"
    )
    text = f"{letter * len(request.input)} {request.input}"
    if "full" not in code:
        return text
    values = [v for v in gold_texts(sample) if v in request.input and not any(c.isdigit() for c in v)]
    surfaces = {value: f"{letter * (3 + place)}" for place, value in enumerate(sorted(values, key=len)[-1:])}
    for value, surface in surfaces.items():
        text = text.replace(value, surface)
    return {"text": text, "value_map": surfaces}


@pytest.mark.parametrize("code", PACK)
@settings(max_examples=25)
@given(sample=samples(), seed=st.integers(0, 9))
def test_only_the_request_changes_and_gold_stays_right(code: str, sample: Sample, seed: int) -> None:
    unit = REGISTRY[code]
    try:
        (request,) = unit.requests(sample)
        texts = {request.key: Text(translated(code, sample), "hand-written")}
        made = [
            unit.perturb(sample, random.Random(seed), Context(texts, taken=lambda one, surfaces: False))
            for _ in range(2)
        ]
    except NotApplicable as skip:
        reasons = {"no_value_to_translate", "surface_not_unique", "value_stands_in_english", "text_refused"}
        assert skip.reason.split(":")[0] in reasons
        return
    row = made[0]
    assert dumps(row) == dumps(made[1])
    assert unit.check(sample, row) == []
    assert (row.tools, row.golden_answers, row.gold_tool_index) == (
        sample.tools,
        sample.golden_answers,
        sample.gold_tool_index,
    )
    changed = [a != b for a, b in zip(row.messages, sample.messages, strict=True)]
    assert sum(changed) == 1 and bool(value_map(row)) == ("full" in code)
    calls = concrete(row.golden_answers[0], row.tools, source=row.source)
    before, after = (
        score(
            calls,
            source=row.source,
            category=row.category,
            tools=row.tools,
            golden_answers=one.golden_answers,
        )
        for one in (sample, row)
    )
    assert after == before


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["text", "value_map", "unmapped", "x"]), inner, max_size=4)
        ),
    )
)
def test_no_answer_of_a_model_breaks_the_reader(answer: Json) -> None:
    found = read_translation(answer)
    assert isinstance(found, str) or found.text.strip()
    assert refusal("language_full_zh", answer) is not None


def test_half_of_the_letters_are_of_the_script() -> None:
    assert other_script("zh", "订 2 个 a") is None and other_script("zh", "订 2 ab") is not None
    assert other_script("ar", "12, !") is not None and other_script("es", "a") is None
