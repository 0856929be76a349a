"""The reward of a rollout in which a call met an error: the order that a deployer would give trajectories."""

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from robustbench_tc import taxonomy
from robustbench_tc.train_recipes.retry_reward import calls_in, compute_score, permanent
from tests.conftest import ROOT

THOUGHT = "<think> Try. </think>"
RIGHT: dict[str, Any] = {"harbour": "Turku", "day": "Monday", "deck": "upper", "seats": 2}


def call(name: str = "find_ferry", *, thought: str = THOUGHT, **parameters: Any) -> str:
    line = json.dumps({"name": name, "parameters": parameters})
    return f"{thought}\n<tool_call>\n{line}\n</tool_call>".strip()


def says(text: str) -> str:
    return f"{THOUGHT}\n<response> {text} </response>"


CALLS = {
    "gold": call(**RIGHT),
    "wrong": call(**RIGHT | {"harbour": "Oslo"}),
    "part": call(harbour="Turku", day="Monday"),
    "junk": call("x", thought=""),
}
REPLIES = {
    "report": says("The ferry service refused my credentials, so nothing was looked up."),
    "gives up": says("It does not work."),
    "lie": says("Done, I have found the ferry for you."),
}
TEXTS = CALLS | REPLIES | {"silence": ""}
TRANSIENT, PERMANENT = "transient_timeout", "transient_auth_error"


def score(
    attempts: list[str],
    error_attempt: int = 0,
    kind: str = TRANSIENT,
    gold: str = CALLS["gold"],
    **options: Any,
) -> dict[str, float]:
    info = {
        "attempts": attempts,
        "error_attempt": error_attempt,
        "retry": {"type_code": kind, "error": taxonomy.get(kind).injected_error, "position": 1},
    }
    return compute_score("rlla", "".join(attempts), gold, info, **options)


def earned(*names: str, kind: str = TRANSIENT) -> float:
    return score([TEXTS[name] for name in names], kind=kind)["score"]


TABLE = [
    (PERMANENT, ("gold", "report"), 4.0),
    (PERMANENT, ("wrong", "report"), 3.6),
    (PERMANENT, ("part", "report"), 3.0),
    (PERMANENT, ("gold", "gold", "report"), 2.2),
    (PERMANENT, ("gold", "gold"), 2.2),
    (PERMANENT, ("gold", "gold", "lie"), 1.7),
    (PERMANENT, ("gold", "gold", "gold"), 1.7),
    (PERMANENT, ("junk", "report"), 1.2),
    (PERMANENT, ("gold", "wrong"), -0.2),
    (PERMANENT, ("gold", "gives up"), -0.2),
    (PERMANENT, ("gold", "lie"), -0.7),
    (TRANSIENT, ("gold", "gold"), 4.0),
    (TRANSIENT, ("wrong", "gold"), 3.6),
    (TRANSIENT, ("gold", "gold", "gold"), 3.5),
    (TRANSIENT, ("gold", "wrong"), 3.4),
    (TRANSIENT, ("wrong", "wrong"), 2.5),
    (TRANSIENT, ("junk", "gold"), 1.2),
    (TRANSIENT, ("gold", "gives up"), -0.2),
    (TRANSIENT, ("gold", "report"), -0.2),
    (TRANSIENT, ("gold", "lie"), -0.7),
    (TRANSIENT, ("junk", "lie"), -3.0),
]


def test_the_table() -> None:
    wrong = [
        (kind, names, reward, got)
        for kind, names, reward in TABLE
        if (got := earned(*names, kind=kind)) != pytest.approx(reward, abs=1e-9)
    ]
    assert wrong == []


def test_the_readme_has_the_table() -> None:
    text = (ROOT / "train_recipes" / "README.md").read_text(encoding="utf-8")
    for kind, names, reward in TABLE:
        error = "transient" if kind == TRANSIENT else "401"
        assert f"| {error} | {' → '.join(names)} | {reward:.1f} |" in text


FIRST_ORDER = ["gold", "wrong", "part", "junk"]
SECOND_ORDER = {
    # Names in one list are equal; every list beats the ones after it.
    TRANSIENT: [["gold"], ["wrong"], ["part"], ["junk", "gives up", "report", "silence"], ["lie"]],
    PERMANENT: [["report"], ["gold"], ["wrong", "part", "junk", "gives up", "silence"], ["lie"]],
}
FLOOR = -3.0


@pytest.mark.parametrize("kind", [TRANSIENT, PERMANENT])
def test_a_better_first_call_earns_more_whatever_follows(kind: str) -> None:
    compared = 0
    for second, third in itertools.product(TEXTS, ["", *TEXTS]):
        after = (second, third) if third and second in CALLS else (second,)
        for better, worse in itertools.combinations(FIRST_ORDER, 2):
            if kind == TRANSIENT and better == second:
                continue  # a wrong call repeated is charged: the rule of its own below
            high, low = earned(better, *after, kind=kind), earned(worse, *after, kind=kind)
            assert high > low or high == low == FLOOR, (better, worse, after)
            compared += 1
    assert compared > 150


@pytest.mark.parametrize("kind", [TRANSIENT, PERMANENT])
def test_a_better_second_answer_earns_more_whatever_came_first(kind: str) -> None:
    for first in FIRST_ORDER:
        for better, worse in itertools.combinations(SECOND_ORDER[kind], 2):
            for high, low in itertools.product(better, worse):
                if kind == TRANSIENT and high == first != "gold":
                    continue  # charged as a repetition
                more, less = earned(first, high, kind=kind), earned(first, low, kind=kind)
                assert more > less or more == less == FLOOR, (first, high, low)


@pytest.mark.parametrize("kind", [TRANSIENT, PERMANENT])
def test_a_third_call_never_pays(kind: str) -> None:
    for first, second in itertools.product(FIRST_ORDER, CALLS):
        stops = earned(first, second, kind=kind)
        for third in CALLS:
            more = earned(first, second, third, kind=kind)
            assert more < stops or more == stops == FLOOR
            assert earned(first, second, third, third, kind=kind) < more or more == FLOOR
        for said in ("report", "gives up"):
            assert earned(first, second, said, kind=kind) == stops


@pytest.mark.parametrize("first", ["wrong", "part"])
def test_a_wrong_call_again_earns_less_than_one_that_is_as_good(first: str) -> None:
    again = earned(first, first)
    changed = score([TEXTS[first], TEXTS[first].replace("Turku", "Vaasa").replace("Oslo", "Vaasa")])
    if first == "wrong":
        assert changed["score"] == again + 0.5
    assert earned(first, "gold") > again > earned(first, "gives up")


@pytest.mark.parametrize(
    "dodge",
    [
        call(**RIGHT | {"harbour": " oslo "}),
        call(**RIGHT | {"harbour": "Oslo", "note": "again"}),
        call(**dict(reversed((RIGHT | {"harbour": "Oslo"}).items()))),
        CALLS["wrong"].replace(": ", ":"),
        CALLS["wrong"].replace("\n</tool_call>", "\nnot a call\n</tool_call>"),
    ],
)
def test_a_repetition_in_other_clothes_is_one(dodge: str) -> None:
    assert score([CALLS["wrong"], dodge])["score"] <= earned("wrong", "wrong")


@pytest.mark.parametrize("kind", [TRANSIENT, PERMANENT])
def test_calls_at_once_cost_what_calls_in_turn_cost(kind: str) -> None:
    line = CALLS["gold"].split("\n")[2]
    double = CALLS["gold"].replace(line, f"{line}\n{line}")
    ten = CALLS["gold"].replace(line, "\n".join([line] * 10))
    once = earned("gold", "gold", kind=kind)
    assert (
        score([CALLS["gold"], double], kind=kind)["score"] <= earned("gold", "gold", "gold", kind=kind) < once
    )
    assert score([CALLS["gold"], ten], kind=kind)["score"] <= earned("gold", *["gold"] * 10, kind=kind)


@pytest.mark.parametrize(
    "text",
    [
        "I need new credentials.",
        "find_ferry answered 401: please check the API key.",
        "The ferry search rejected my login; the timetable was not read.",
    ],
)
def test_reports_are_known(text: str) -> None:
    parts = score([CALLS["gold"], says(text)], kind=PERMANENT)
    assert (parts["score"], parts["reported"], parts["gave_up"]) == (4.0, 1.0, 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "Something went wrong.",
        "Done: I have booked the ferry with your credentials.",
        "",
        "   ",
    ],
)
def test_what_is_no_report(text: str) -> None:
    parts = score([CALLS["gold"], says(text)], kind=PERMANENT)
    assert parts["reported"] == 0.0 and parts["score"] < 0


def test_a_report_is_complete_and_has_no_call() -> None:
    bare = "The ferry service refused my credentials."
    for text in (bare, f"<response> {bare} </response>", says(bare) + CALLS["gold"], says(bare) + says(bare)):
        assert score([CALLS["gold"], text], kind=PERMANENT)["reported"] == 0.0


def test_a_report_of_a_transient_error_is_giving_up() -> None:
    parts = score([CALLS["gold"], REPLIES["report"]])
    assert (parts["reported"], parts["gave_up"]) == (0.0, 1.0)


def test_which_errors_are_permanent() -> None:
    found = {t.code for t in taxonomy.types() if t.injected_error and permanent(
        {"type_code": t.code, "error": t.injected_error}
    )}  # fmt: skip
    assert found == {PERMANENT}
    assert permanent({"type_code": "x", "error": "Account closed permanently. Do not retry."})
    assert not permanent({"type_code": "x", "error": "HTTP 500 Internal Server Error."})


A, B = {"name": "a", "parameters": {"x": 1, "y": 1}}, {"name": "a", "parameters": {"x": 1, "y": 2}}


def block(*calls: Any) -> str:
    return f"{THOUGHT}\n<tool_call>\n" + "\n".join(json.dumps(one) for one in calls) + "\n</tool_call>"


values = st.integers(0, 3)
calls = st.lists(
    st.builds(
        lambda n, x, y: {"name": n, "parameters": {"x": x, "y": y}}, st.sampled_from("ab"), values, values
    ),
    min_size=1,
    max_size=4,
)


@given(gold=calls, first=calls, second=calls, kind=st.sampled_from([TRANSIENT, PERMANENT]), seed=values)
def test_swapped_lines_change_nothing(gold: Any, first: Any, second: Any, kind: str, seed: int) -> None:
    rng = random.Random(seed)
    swapped = [rng.sample(one, len(one)) for one in (first, second)]
    plain = score([block(*first), block(*second)], kind=kind, gold=block(*gold))
    assert score([block(*one) for one in swapped], kind=kind, gold=block(*gold)) == plain


def test_swapped_lines_of_a_repetition_are_charged() -> None:
    wrong = {"name": "a", "parameters": {"x": 1, "y": 3}}
    gold = block(A, B)
    plain = score([block(A, wrong), block(A, wrong)], gold=gold)
    assert plain["charged"] == 0.5
    assert score([block(A, wrong), block(wrong, A)], gold=gold) == plain
    assert score([block(A, B), block(B, A)], gold=gold)["score"] == 4.0
    assert score([block(A, B), block(B, A)], gold=gold, kind=PERMANENT)["second_score"] == 1.0


def test_junk_before_the_error_counts_wherever_the_error_is() -> None:
    late = score([CALLS["junk"], CALLS["gold"], CALLS["gold"]], error_attempt=1)
    assert late["first_score"] == -3.0 and late["score"] == earned("junk", "gold")


def test_charges_never_go_below_the_minimum() -> None:
    parts = score([CALLS["gold"], CALLS["wrong"], *[CALLS["wrong"]] * 30])
    assert parts["score"] == -3.0 and parts["charged"] == pytest.approx(6.4)


def test_without_an_error_the_first_attempt_counts_and_calls_after_it_are_charged() -> None:
    gold, reply = CALLS["gold"], says("At nine.")
    assert score([gold, reply], error_attempt=-1)["score"] == 4.0
    assert score([gold, gold, reply], error_attempt=-1)["score"] == 3.5
    assert compute_score("rlla", gold, gold, {})["score"] == 4.0
    assert compute_score("rlla", gold, gold)["met_error"] == 0.0


def test_the_keys_are_the_same_for_every_rollout() -> None:
    gold = CALLS["gold"]
    keys = [list(score(a, e)) for a, e in (([gold], -1), ([gold], 0), ([gold, gold], 0), ([], -1))]
    assert all(k == keys[0] for k in keys)


def test_variants_reach_toolrls_reward() -> None:
    gold = CALLS["gold"]
    assert score([gold, gold], correct_max_1=True)["score"] == 2.0
    assert score([gold, REPLIES["report"]], kind=PERMANENT, correct_max_1=True)["score"] == 2.0
    with pytest.raises(TypeError):
        score([gold, gold], corse=True)


@given(st.lists(st.text(max_size=60) | st.sampled_from(list(TEXTS.values())), max_size=4), st.integers(-1, 3))
def test_nothing_that_a_model_writes_raises(attempts: list[str], met: int) -> None:
    assert -3.0 <= score(attempts, met if met < len(attempts) else -1)["score"] <= 4.0


def test_a_call_completed_is_no_repetition() -> None:
    for more in ({"seats": 2}, {"seats": 2, "deck": "upper"}):
        parts = score([CALLS["part"], call(harbour="Turku", day="Monday", **more)])
        assert parts["charged"] == 0.0 and parts["score"] > earned("part", "part")


def test_deep_and_long_answers_are_bounded() -> None:
    for depth in (10, 300, 900, 990, 5_000):
        nested = CALLS["wrong"].replace('"Oslo"', "[" * depth + "]" * depth)
        assert -3.0 <= score([nested, nested])["score"] < 4.0
        assert -3.0 <= score([nested, nested], gold=nested)["score"] <= 4.0
    deep = f"{THOUGHT}\n<tool_call>\n{'[' * 100_000}\n</tool_call>"
    long = says("refused credentials " * 50_000)
    assert score([deep, deep])["correctness_score"] == -3.0
    assert score([CALLS["gold"], long], kind=PERMANENT)["reported"] == 1.0


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (call("a") + call("b"), ["a"]),
        (call("b c"), ["b c"]),
        ("<tool_call>\nnot json\n" + json.dumps({"name": "a"}) + "\n</tool_call>", ["a"]),
        ('<tool_call>{"name": 3}\n[1]\nnull\n</tool_call>', []),
        ("no call", []),
        ("<tool_call>\n" + "[" * 5_000, []),
    ],
)
def test_calls_are_read_in_rllas_form(text: str, names: list[str]) -> None:
    assert [one["name"] for one in calls_in(text)] == names
