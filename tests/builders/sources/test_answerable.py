"""Is the gold answerable: a case of each class by hand, and what the audit finds in the real sources."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from robustbench_tc.builders import answerable, sources
from robustbench_tc.builders.answerable import KINDS, Finding, Verdict
from robustbench_tc.builders.answerable.reading import MEANING
from robustbench_tc.builders.build import judged
from robustbench_tc.schema import ANY, GOLD_NOT_STATED, OMIT, Call, Json, Message, Sample, Tool

from ...conftest import ROOT, Done


def row(said: str, accepted: list[Json], schema: Json = None, source: str = "apibank") -> Sample:
    """A clean row that asks for one value."""
    tool = Tool("act", "Acts.", {"type": "object", "properties": {"what": schema or {"type": "string"}}})
    call = Call("act", {"what": accepted})
    return Sample(
        id=f"{source}__level1_0::clean",
        clean_id=f"{source}__level1_0",
        type_code="clean",
        source=source,
        category="level1",
        messages=(Message("user", said),),
        tools=(tool,),
        golden_answers=((call,),),
        output_format="tool_call_tags",
        gold_tool_index=0,
    )


def found(said: str, *accepted: Json, schema: Json = None, source: str = "apibank") -> Finding:
    (gold,) = answerable.golds(row(said, list(accepted), schema, source))
    return gold.finding


def described(text: str) -> dict[str, str]:
    return {"type": "string", "description": text}


TODAY = "<user>Wake me tomorrow at 9am. Today is 2021-09-27</user>"
CALLED = (
    "<user>Go on.</user>\n<tool_call>\n{\"name\": \"Login\"}\n</tool_call>\n<obs> {'token': 'z9x8c7'} </obs>"
)

CASES: list[tuple[str, str, Json, Json]] = [
    ("verbatim", "My account is johnsmith123.", "johnsmith123", None),
    ("verbatim", "It covers 12,000 miles.", 12000, None),
    ("verbatim", "A radius of 5cm each.", "cm", None),
    ("number", "A room for two adults.", 2, None),
    ("number", "Forty five of them.", 45, None),
    ("number", "A third floor flat.", 3, None),
    ("number", "Revenue was $1.2M.", 1200000, None),
    ("number", "Trait A has 40% of it.", 0.4, None),
    ("number", "A gain of 5 and a loss of $1000.", -1000, None),
    ("number", "Fewer than 5 of them.", 4, None),
    ("date_time", "On March 16, 2023 please.", "2023-03-16", None),
    ("date_time", "From 8:00AM to 9:00AM on March 16, 2023.", "2023-03-16 09:00:00", None),
    ("date_time", TODAY, "2021-09-28 09:00:00", None),
    ("date_time", "Next Monday at noon, today is 2023-06-08.", "2023-06-12 12:00:00", None),
    ("date_time", "On 2024-03-06 from 14:00 for two hours.", "2024-03-06 16:00:00", None),
    ("date_time", "The history of April 21st, please.", "04-21", None),
    ("tool_result", CALLED, "z9x8c7", None),
    ("schema", "Show me a cat.", "metric", {"type": "string", "default": "metric"}),
    ("schema", "Show me a cat.", "png", {"type": "string", "enum": ["png", "gif"]}),
    ("schema", "I forgot it.", "Forgot Password", described("'Forgot Password' or 'Verification Code'")),
    ("schema", "Show me a cat.", True, {"type": "boolean"}),
    ("schema", "Ironing services, please.", 2, described("1 for cleaning, e.g. 2 for an ironing service")),
    ("schema", "A price.", "ETH", described("valid value: ETH. For example, BTC is not one.")),
    ("convention", "Delete my gym workout.", "Gym Workout", None),
    ("convention", "I have bananas.", "banana", None),
    ("convention", "Within 1km of here.", "1000", None),
    ("convention", "200 US dollars, please.", "USD", None),
    ("convention", "Holidays in Australia.", "AU", None),
    ("convention", "The weather in Chcicago.", "Chicago", None),
    ("convention", "The best vegan recipes of all, the popular ones.", "popular vegan recipes", None),
    ("knowledge", "What does Amazon cost?", "AMZN", None),
    ("knowledge", "A salon in Chicago.", "Chicago, IL", None),
    ("knowledge", "Draw a king from the deck.", 4, None),
    ("nowhere", "Add a meeting for me.", "JohnDoe", None),
    ("nowhere", "From 8:00AM to 9:00AM on March 16, 2023.", "2023-03-16 07:00:00", None),
    ("nowhere", "On March 16th at 10:00 AM.", "2023-03-16 10:00:00", None),
    ("nowhere", "Wake me tomorrow at 9am.", "2021-09-28 09:00:00", None),
    ("nowhere", "A salon in Danville.", "Danville, CA", described("e.g. 'Berkeley, CA'")),
    ("nowhere", "What is it in Italy like?", "US", None),
    ("nowhere", "Is it warm?", "IT", None),
    ("nowhere", "A salon.", "Berkeley, CA", described("The city (e.g. 'Berkeley, CA') to look in.")),
    ("nowhere", "A cake.", "dessert", described("E.g. dessert, main course, breakfast.")),
    (
        "nowhere",
        "My blood pressure.",
        "[{'v': '120/80'}]",
        described("with the format like [{'v': '120/80'}]"),
    ),
    ("nowhere", "Cleaning services, please.", 2, described("For example, 2 for an ironing service.")),
    ("nowhere", "Three of twelve.", 7, None),
]


def test_the_class_of_a_value() -> None:
    wrong = [
        (kind, said, value, schema, got)
        for kind, said, value, schema in CASES
        if (got := found(said, value, schema=schema).kind) != kind
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "said",
    [
        *("9" * 5000, "1e999999999", "7/" + "0" * 4500, "0000-00-00 99:99", "\u00b2 to \u00b2 at \u00b2 pm"),
        "Today is 9999-12-31, tomorrow and in 99 years",
        "Today is 0001-01-01, 99 years ago",
    ],
    ids=lambda text: text[:12],
)
def test_odd_texts_are_classified_too(said: str) -> None:
    assert found(said, "10000-01-01", "2023-02-30", "JohnDoe").kind == "nowhere"
    assert found(said, 12345).kind == "nowhere"


def test_every_class_has_a_case_and_a_meaning() -> None:
    assert {"free", *(case[0] for case in CASES)} == set(KINDS) == set(MEANING)


def test_a_finding_names_its_place_or_what_is_missing() -> None:
    said = "On the 3rd of May 2024, at the Grand Hall."
    hall = found(said, "Grand Hall").place
    assert hall is not None and said[hall.start : hall.end] == "Grand Hall"
    day = found(said, "2024-05-03").place
    assert day is not None and "3rd of May 2024" in said[day.start : day.end]
    assert found("On March 16th.", "2023-03-16").note == "the year is not said: it would have to be guessed"


def test_one_accepted_value_is_enough_and_free_values_are() -> None:
    assert found("Fly to Boston.", "JohnDoe", "Boston").kind == "verbatim"
    assert found("Fly.", "JohnDoe", OMIT).kind == found("Fly.", ANY).kind == "free"


def test_a_list_is_as_sure_as_its_least_sure_part() -> None:
    assert found("David and Amy.", "['David', 'Amy']").kind == "verbatim"
    assert found("David and Amy.", ["David", "Erica"]).kind == "nowhere"
    assert found("Two of them, 3 in all.", [2, 3]).kind == "number"


def test_objects_of_bfcl_list_what_they_accept() -> None:
    assert found("Ask Ann.", {"name": ["Jon", "Ann"], "bio": [""]}, source="bfcl_v3").kind == "verbatim"
    assert found("Ask Ann.", {"name": "Jon"}).kind == "nowhere"


def test_one_answer_that_can_be_reached_is_enough() -> None:
    one = row("Fly to Boston.", ["Boston"])
    other = (Call("act", {"what": ["JohnDoe"]}),)
    changed = msgspec.structs.replace(one, golden_answers=(other, *one.golden_answers))
    assert answerable.audit(changed).missing is None
    assert answerable.audit(row("Fly.", ["JohnDoe"])).missing == (
        "'what' of act: nobody says it, no definition does, and no convention gives it."
    )


@pytest.mark.parametrize(
    "cue", ["e.g. ", "for example, ", "For instance: ", "such as ", "with a format like "]
)
@pytest.mark.parametrize("value", ["alpha-7", 4711, "[{'name': 'x', 'value': '9/8'}]"])
def test_an_example_is_no_source_and_a_constant_is(cue: str, value: Json) -> None:
    shown = described(f"The kind of thing ({cue}{value!s}). Always one.")
    assert found("Do it.", value, schema=shown).kind == "nowhere"
    assert found("Do it.", value, schema=described(f"{value!s} or 'none' ({cue}none).")).kind == "schema"
    assert found("Do it.", value, schema=shown | {"default": value}).kind == "schema"
    assert found("Do it.", value, schema=shown | {"enum": [value]}).kind == "schema"


def with_key(sample: Sample, key: str, value: Json) -> Sample:
    """The sample with one more parameter in its golden call."""
    ((call,),) = sample.golden_answers
    more = Call(call.name, {**call.parameters, key: [value]})
    return msgspec.structs.replace(sample, golden_answers=((more,),))


def test_a_key_is_declared_or_said() -> None:
    plain = row("Wake lamp 12.", [12])
    assert answerable.audit(with_key(plain, "device_id", 12)).missing is not None
    assert answerable.audit(with_key(row("Its device id is 12.", [12]), "device_id", 12)).missing is None
    assert answerable.audit(with_key(plain, "device_id", OMIT)).missing is None


def test_siblings_that_share_tool_and_situation_agree(paper: sources.Pool, full: sources.Pool) -> None:
    """Of answerable golds at the same call of a tool none has a key that the tool keeps for another call."""
    keys: dict[str, set[frozenset[str]]] = {}
    for sample in (*paper.samples, *full.samples):
        call = sample.golden_answers[0][0]
        if call.name == "ForgotPassword" and answerable.audit(sample).missing is None:
            keys.setdefault(str(call.parameters["status"][0]), set()).add(frozenset(call.parameters))
    assert keys == {
        "Forgot Password": {frozenset({"status", "username", "email"})},
        "Verification Code": {frozenset({"status", "verification_code", "new_password"})},
    }


def test_the_flag_belongs_to_the_rows_own_gold() -> None:
    clean = answerable.flagged(row("Fly.", ["JohnDoe"]), True)
    ((call,),) = clean.golden_answers

    def missing(*answers: tuple[Call, ...]) -> bool:
        changed = msgspec.structs.replace(clean, golden_answers=answers)
        return answerable.missing_in(changed, clean) is not None

    assert not missing(()) and missing((call,), ()) and missing((Call("renamed", call.parameters),))
    assert not missing((Call("act", {"what": ["Fly"]}),))


@pytest.fixture(scope="module")
def audited(full: sources.Pool) -> Iterator[list[tuple[Sample, Verdict]]]:
    """Every sample of the pool, and what is found of it; whoever asks again is told so."""
    found = [(sample, answerable.audit(sample)) for sample in full.samples]
    known = {id(sample): verdict for sample, verdict in found}
    work = answerable.audit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answerable, "audit", lambda sample: known.get(id(sample)) or work(sample))
        yield found


def test_a_reason_quotes_no_golden_value(audited: list[tuple[Sample, Verdict]]) -> None:
    """Some are credentials, and known issues are published."""
    for sample, (golds, missing) in audited:
        if missing is None:
            continue
        lacking = (gold for gold in golds if gold.finding.kind == "nowhere")
        texts = {str(value) for gold in lacking for value in gold.accepted if len(str(value)) > 3}
        assert not any(f" {text} " in f" {missing.rpartition(': ')[2]} " for text in texts), sample.clean_id


def test_the_named_samples_of_the_paper_are_found_by_the_rules(paper: sources.Pool) -> None:
    pool = judged(paper, "paper")
    flagged = {sample.clean_id for sample in pool.samples if GOLD_NOT_STATED in sample.flags}
    levels = {f"apibank__level1_{number}" for number in (44, 93, 166, 191, 200, 238, 265, 301, 354, 357)}
    (repl,) = flagged - levels
    assert levels <= flagged and repl.startswith(
        "rotbench__Turn 1: Using the Python Interpreter in REPL mode"
    )
    issues = {issue.clean_id: issue for issue in pool.issues if issue.reason == GOLD_NOT_STATED}
    assert set(issues) == flagged and {issue.status for issue in issues.values()} == {"flagged"}
    assert len(pool.samples) == 199
    year = "the year is not said: it would have to be guessed."
    assert {cid for cid, issue in issues.items() if issue.detail.endswith(year)} == {
        f"apibank__level1_{number}" for number in (44, 166, 265)
    }


def page(name: str) -> list[list[str]]:
    """The cells of a table of docs/answerable.md, with its head."""
    text = (ROOT / "docs" / "answerable.md").read_text()
    inside = text.split(f"<!-- golds {name} -->\n")[1].split("<!-- end -->")[0]
    lines = [line.strip("| ").split(" | ") for line in inside.splitlines()]
    return [lines[0], *lines[2:]]


@pytest.mark.parametrize("name", ["paper", "full"])
def test_the_classes_of_the_pools_are_as_the_page_says(
    name: str, paper: sources.Pool, audited: list[tuple[Sample, Verdict]]
) -> None:
    """golds.yaml has them by source, the page their sums."""
    counts = yaml.safe_load(Path(__file__).with_name("golds.yaml").read_text())[name]
    ids = {sample.clean_id for sample in paper.samples}
    counted = [(s, one) for s, one in audited if name == "full" or s.clean_id in ids]
    found = Counter[tuple[str, str]]((s.source, g.finding.kind) for s, one in counted for g in one.golds)
    assert list(counts) == list(KINDS)
    assert dict(found) == {
        (source, kind): number for kind, by in counts.items() for source, number in by.items() if number
    }
    head, *rows = page("classes")
    shown = {row[0]: int(row[head.index(name)]) for row in rows}
    assert shown.pop("values") == sum(shown.values())
    assert shown == {kind: sum(by.values()) for kind, by in counts.items()}


def test_no_starter_sample_is_unanswerable() -> None:
    pool = sources.read_pool(sources.BUNDLED, "bundled")
    assert judged(pool, "bundled").samples == pool.samples


@pytest.mark.usefixtures("audited")
def test_samples_of_the_full_profile_leave_with_their_reason(full: sources.Pool) -> None:
    pool = judged(full, "full")
    gone = [issue for issue in pool.issues if issue.reason == GOLD_NOT_STATED]
    assert len(pool.samples) + len(gone) == len(full.samples)
    (_, *names, _), _, (_, *cells, whole) = page("unanswerable")
    assert Counter(issue.source for issue in gone) == dict(zip(names, map(int, cells), strict=True))
    assert len(gone) == int(whole)
    assert {issue.status for issue in gone} == {"left_out"}
    assert not any(GOLD_NOT_STATED in sample.flags for sample in pool.samples)
    year = [issue for issue in gone if "the year is not said" in issue.detail and issue.source == "apibank"]
    assert len(year) == 37  # the page names the number


def test_a_seeded_sample_is_printed_with_its_places(rbtc: Callable[..., Done], tmp_path: Path) -> None:
    out = tmp_path / "build"
    assert rbtc("build", "--profile", "bundled", "--types", "CD", "--out", out).code == 0
    first, again = (rbtc("audit", out, "--golds", 200, "--seed", 3).out for _ in range(2))
    assert first == again and first.count(" · message 0, characters ") > 100
    assert rbtc("audit", out, "--golds", 5, "--gold-class", "verbatim").out.count("\n    verbatim") == 5
    lines: list[dict[str, Any]] = json.loads(rbtc("audit", out, "--gold-class", "schema", "--json").out)
    assert lines and {line["gold"]["finding"]["kind"] for line in lines} == {"schema"}
    assert "unknown class of golden values 'nowher': did you mean nowhere" in (
        rbtc("audit", out, "--gold-class", "nowher").err
    )
