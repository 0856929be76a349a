"""Model names: what may be listed, what looks alike, and what a name says of family and size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robustbench_tc.eval import models
from robustbench_tc.eval.leaderboard import names
from robustbench_tc.eval.leaderboard.refusal import Refused

GOOD = ["Qwen3-8B", "acme/Model_1.5B-v2", "o4-mini", "x", "A.b-c_d+", "org.name/m"]
HOSTILE = [
    "",
    " ",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "a/b/c",
    "/abs",
    "a\\b",
    "a\nb",
    "a\0b",
    "m\u043edel",
    "model\u200b",
    "\u202emodel",
    "=1+1",
    "@model",
    "-flag",
    "a" * 65,
    "m..m",
    "model ",
    "{{7*7}}",
    "'; drop table models; --",
]


@pytest.mark.parametrize("name", GOOD)
def test_plain_names_pass(name: str) -> None:
    assert names.check_model(name) == name


def test_hostile_names_are_refused_and_shown_inert(subtests: pytest.Subtests) -> None:
    for name in HOSTILE:
        with subtests.test(name=name):
            with pytest.raises(Refused) as refusal:
                names.check_model(name)
            said = str(refusal.value).replace("…", "")
            assert said.isascii() and said.isprintable()


@given(st.text(max_size=80))
def test_whatever_passes_is_plain_ascii(name: str) -> None:
    try:
        passed = names.check_model(name)
    except Refused:
        return
    assert passed.isascii() and passed.isprintable() and not set(passed) & set("<>&\"'`$=\\ ")
    assert ".." not in passed and passed[0].isalnum()


def test_a_known_model_gets_the_tables_spelling() -> None:
    assert names.check_model("qwen3-8b") == names.check_model("Qwen/Qwen3-8B") == "Qwen3-8B"


@pytest.mark.parametrize("other", ["qwen3_8b", "Qwen3.8B", "QWEN3-8B", "Qwen3-8b", "Qwen_3-8B"])
def test_names_that_look_alike_are_refused(other: str) -> None:
    with pytest.raises(Refused, match="looks like 'Qwen3-8B'"):
        names.refuse_lookalike(other, {"Qwen3-8B"} - {other})


@pytest.mark.parametrize(
    ("one", "other"),
    [("0racle-3B", "Oracle-3B"), ("rnodel", "model"), ("AI-agent", "Al-agent"), ("vvizard", "wizard")],
)
def test_letters_that_are_read_as_others_count_as_the_same(one: str, other: str) -> None:
    assert names.skeleton(one) == names.skeleton(other)


@pytest.mark.parametrize(
    ("one", "other"), [("M-1.5B", "M-15B"), ("Qwen3-8B", "Qwen3-14B"), ("a/M-3B", "b/M-3B"), ("M-7B", "N-7B")]
)
def test_different_models_stay_different(one: str, other: str) -> None:
    names.refuse_lookalike(one, {other})
    assert names.skeleton(one) != names.skeleton(other)


def test_the_papers_models_do_not_look_alike() -> None:
    found = [names.skeleton(name) for name in models.models()]
    assert len(set(found)) == len(found) == 21


@pytest.mark.parametrize(
    ("name", "family", "size"),
    [
        ("Qwen3-8B", "Qwen", 8),
        ("Qwen2.5-1.5B-Instruct", "Qwen", 1.5),
        ("ToolRL-DR-Full", "ToolRL", 3),
        ("DeepSeek-R1-Distill-14B", "DeepSeek", 14),
        ("o4-mini", "o4", None),
        ("acme/Rocket-70b-chat", "Rocket", 70),
        ("Mix-30B-A3B", "Mix", 30),
        ("v2beta", "v2beta", None),
    ],
)
def test_family_and_size_are_read_from_the_name(name: str, family: str, size: float | None) -> None:
    assert names.family_of(name) == family
    assert names.size_of(name) == size


def test_user_names_are_those_of_the_hub() -> None:
    assert names.check_user("ann-b.c") == "ann-b.c"
    for bad in ("", "a b", "<b>", "../x", "a/b"):
        with pytest.raises(Refused):
            names.check_user(bad)


# --- whose name it is -------------------------------------------------------------------------------------

LISTED = {"gpt-5-mini", "gpt-4o", "Llama-3", "Qwen2", "Phi-4", "Qwen2.5-7B", "Qwen3-4B", "acme/Foo-7B", "gpt"}

VERSIONS = """
    Qwen3-8B-v2 Qwen3-8Bv2 Qwen3-8B-2507 Qwen3-8B-v1.1 Qwen3-8B.v2 qwen3_8b_v2 Qwen3-v2-8B Qwen3-8B-latest
    Qwen3-8B-rc1 Qwen3-8B-Instruct Qwen3-8B-Max official-Qwen3-8B Qwen-Qwen3-8B QVVEN3-8B-v2
    o4-mini-2025-04-16 o4-mini-pro openai-o4-mini Meta-Llama-3.2-3B-Instruct gpt-5-mini-2026
    gpt-5-mini-2025-08-07 gpt5-mini-v2
    gpt-4o-2024-11-20 gpt-4o-preview Foo-7B-v2 Foo-7B-final
""".split()

HONEST = """
    Qwen3-8B-ToolRL my-Qwen3-8B-lora Qwen3-8B-SFT-tools Qwen3-8B-AWQ Qwen3-8B-FP8 Qwen3-8B-GGUF-Q4_K_M
    Qwen3-8B-Base Qwen3-8B-4bit Qwen3-8B-thinking Qwen3-8B-fc Qwen3-14B-DPO Qwen3-0.6B Qwen3-30B-A3B
    Qwen3.5-4B Qwen2.5-7B-Instruct Qwen2.5-72B-Instruct Qwen2.5-Coder-3B-Instruct Qwen3-4B-Instruct-2507
    Qwen2.5
    Llama-3.1-8B Llama-3.1-70B-Instruct Llama-3.2-1B-Instruct Llama-3.2-3B Llama-3.1 Llama-3.3-70B
    Hammer2.1-7b xLAM-2-8b-fc-r watt-tool-8B ToolACE-2-8B Arch-Function-3B Functionary-small-v3.2
    gpt-4.1 gpt-4.1-mini gpt-4o-mini gpt-5 gpt-5-nano o3 o3-mini o4-mini-high claude-sonnet-4-5 gemini-2.5-pro
    DeepSeek-R1 DeepSeek-R1-0528 DeepSeek-R1-Distill-32B DeepSeek-V3 Mistral-7B-Instruct-v0.3 gemma-3-12b-it
    Phi-4-mini Phi-4-mini-instruct Phi-4.5 granite-3.3-8b-instruct SmolLM3-3B Command-R-plus LoopTool-14B
    ToolRL-DR-Full-retry ToolRL-Qwen2.5-3B-step200 ToolRL-Qwen2.5-7B MUA-RL-7B Foo-7B-dpo Foo-7B-ours
    ann/Qwen3-8B-v2 Qwen3-8B o4-mini Foo-7B
""".split()


def test_versions_of_somebody_elses_model_are_refused(subtests: pytest.Subtests) -> None:
    for name in VERSIONS:
        with subtests.test(name=name):
            assert names.check_model(name) == name
            with pytest.raises(Refused, match="reads as a version of"):
                names.refuse_version(name, names.reserved(), LISTED)


def test_honest_names_pass(subtests: pytest.Subtests) -> None:
    for name in HONEST:
        with subtests.test(name=name):
            names.refuse_version(name, names.reserved(), LISTED)


def test_known_models_are_no_versions_of_each_other_and_ones_own_may_have_versions() -> None:
    for name in names.reserved():
        names.refuse_version(name, names.reserved() - {name})
    names.refuse_version("Foo-7B-v2", names.reserved(), LISTED - {"acme/Foo-7B"})


@given(st.text("Qwen3-8B.v_/20", max_size=40), st.text("Qwen3-8B.v_20", min_size=1, max_size=20))
def test_any_two_names_are_judged(name: str, model: str) -> None:
    try:
        names.refuse_version(name, {model})
    except Refused:
        assert "/" not in name and name != model


def test_organisations_are_for_their_members() -> None:
    names.check_organisation("Qwen3-8B", "ann", ())
    names.check_organisation("acme/M-3B", "ann", ("other", "ACME"))
    names.check_organisation("Ann/M-3B", "ann", ())
    names.check_organisation("acme/M-3B", "local", ())
    for name, mine in (("acme/M-3B", ()), ("acme/M-3B", ("acme2", "acm"))):
        with pytest.raises(Refused, match="ann is no member on the Hub"):
            names.check_organisation(name, "ann", mine)
