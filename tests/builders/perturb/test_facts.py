"""Every type states all that the other rooms need to know of it, and each statement is true."""

import importlib.util
import random
from types import ModuleType
from typing import Any

import msgspec
import pytest

from robustbench_tc import sources, taxonomy
from robustbench_tc.audits.checks import rules
from robustbench_tc.audits.rows import RowChecks
from robustbench_tc.builders.perturb import REGISTRY, Perturbation, facts
from robustbench_tc.builders.perturb.base import register
from robustbench_tc.builders.plain import row_dict
from robustbench_tc.builders.sources import READERS
from robustbench_tc.schema import Message, Sample, dumps

from ...conftest import ROOT
from ...refusals import refuses
from . import cases
from .planted import defects_of

CODES = list(REGISTRY)
CHECKS = {one.name for one in rules("benchmark_rows") if one.id.startswith("rows.") and not one.is_native}
"""The gate's checks of rows."""


def writer() -> ModuleType:
    """`scripts/write_facts.py`, which `make facts` runs."""
    spec = importlib.util.spec_from_file_location("write_facts", ROOT / "scripts" / "write_facts.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_facts_of_every_type_can_be() -> None:
    wrong = [
        (code, got) for code in CODES if (got := facts.problems(REGISTRY[code], sources.sources())) != []
    ]
    assert wrong == []


def test_every_type_has_golden_cases_that_read_as_they_are_stated(subtests: pytest.Subtests) -> None:
    assert set(cases.GOLDEN) == set(CODES)
    for code, stated in cases.GOLDEN.items():
        with subtests.test(code=code):
            for case in stated:
                clean, row = cases.CLEAN[case.clean], cases.row_of(code, case)
                assert cases.difference(clean, row) == case.reads
                assert REGISTRY[code].problems(clean, row) == []
                assert msgspec.convert(msgspec.to_builtins(row), Sample) == row, "a list for a tuple?"


def test_what_the_other_rooms_read_is_what_types_and_sources_state() -> None:
    stale = [
        path.relative_to(ROOT)
        for path, text in writer().files().items()
        if not path.is_file() or path.read_text("utf-8") != text
    ]
    assert stale == [], "run `make facts`"


def test_the_core_is_the_papers_22_in_its_order() -> None:
    core = [kind for kind in taxonomy.types() if kind.status == "core"]
    assert [kind.order for kind in core] == list(range(1, 23))
    assert {kind.pack for kind in taxonomy.types("extension")} & {"core"} == set()


def _held(clean: Sample, row: Sample) -> dict[str, str | None]:
    """What the gate's pass over the rows says of `row`, by check."""
    checks = RowChecks(seed=row.seed)
    checks.check("clean", 0, [row_dict(clean)])
    found = checks.check(row.type_code, 0, [row_dict(row)]).rows
    return {name: found[name][0] for name in CHECKS}


def test_the_gate_takes_a_golden_row_and_catches_the_types_planted_defect(subtests: pytest.Subtests) -> None:
    for code in CODES:
        with subtests.test(code=code):
            clean, row = cases.pair(code)
            sound = _held(clean, row)
            assert {name: said for name, said in sound.items() if said} == {}
            assert sound["unit_finds_nothing"] == sound["type_is_audited"] == sound["no_new_credential"] == ""
            planted = defects_of(code)
            due = 1 if REGISTRY[code].pack == "core" else 2
            checks = {check for check, _ in planted}
            assert len(checks) == len(planted) >= due, (
                f"defects.yaml: {code} needs {due} defects or more, each for another check: {sorted(checks)}"
            )
            for check, plant in planted:
                defect = plant(clean, row)
                assert dumps(defect) != dumps(row), f"the planted defect for {check} changes nothing"
                assert _held(clean, defect)[check], f"{check} does not catch the planted defect"


def test_make_facts_names_a_fact_and_a_scorer_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(REGISTRY, "CD", msgspec.structs.replace(REGISTRY["CD"], order=12))
        with pytest.raises(ValueError, match=r"CD \(perturb/offers\.py\): order 12 is taken by TD"):
            writer().files()
    broken = msgspec.structs.replace(READERS[0], scorer="nobody")
    made = writer()
    monkeypatch.setattr(made, "READERS", (broken, *READERS[1:]))
    with pytest.raises(ValueError, match=f"{broken.name}: scorer names 'nobody'"):
        made.files()


# --- what is left out is named -------------------------------------------------------------------------


def mine(**changed: Any) -> Perturbation:
    """A type like `same_name_A` of another code."""
    stated = {
        "code": "my_type",
        "order": 99,
        "pack": "registry",
        "paper_rows": None,
        "prior_art": "none known",
    }
    return msgspec.structs.replace(REGISTRY["same_name_A"], **{**stated, **changed})


def test_a_fact_that_is_left_out_is_named(subtests: pytest.Subtests) -> None:
    model = REGISTRY["same_name_A"]
    stated = {name: getattr(model, name) for name in model.__struct_fields__}
    due = [field.name for field in msgspec.structs.fields(model) if field.required]
    assert {"code", "order", "label", "rows", "may_change", "applies_to", "description"} <= set(due)
    for name in due:
        with subtests.test(name=name), pytest.raises(TypeError, match=f"Missing required argument '{name}'"):
            type(model)(**{fact: value for fact, value in stated.items() if fact != name})


@pytest.mark.parametrize("code", ["my-type", "2fast", "", "a b"])
def test_a_code_that_is_not_a_plain_word_never_enters_the_registry(code: str) -> None:
    with pytest.raises(ValueError, match="a plain word"):
        register(mine(code=code))
    assert code not in REGISTRY
    with pytest.raises(ValueError, match="two types of the code CD"):
        register(mine(code="CD"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"order": 5}, "order 5 is taken by same_name_A"),
        ({"level": "reading"}, "level"),
        ({"pack": "mine"}, "pack"),
        ({"channel": "registri"}, "channel"),
        ({"may_change": ("tool colours",)}, "may_change"),
        ({"may_change": ()}, "may_change is empty"),
        ({"pack": "core"}, "paper_rows is stated for the types of the core"),
        ({"prior_art": ""}, "prior_art is stated for the types beyond the core"),
        ({"ground_truth_changes": True}, "may_change does not hold the golden answers"),
        ({"channel": "query", "method": "llm"}, "judged_as is not stated"),
        ({"channel": "tool_result"}, "injected_error belongs to the channel tool_result"),
        ({"injected_error": "Out of order."}, "injected_error belongs to the channel tool_result"),
        ({"applies_to": ("nowhere",)}, "applies_to names no source"),
        ({"applies_to": ("bfcl_v3", "nowhere")}, "a source that there is not: nowhere"),
        ({"channel": "offers"}, "traits of the channel offers are not stated: quality, suffix, stated"),
        ({"rows": object()}, "object"),
        ({"method": "llm"}, "builders/prompts/my_type.v1.txt"),
        ({"series": "typos"}, "a type of a series states its dose"),
        ({"dose": 3}, "a type of a series states its dose"),
        *(
            ({"code": code}, "choose another code")
            for code in "clean taxonomy reward perception severity".split()
        ),
    ],
)
def test_a_fact_that_cannot_be_is_named(changed: dict[str, object], words: str) -> None:
    unit = mine(**changed)
    found = facts.problems(unit, sources.sources())
    assert any(words in problem and unit.code in problem for problem in found), found


def test_what_no_part_of_may_change_allows_is_seen_by_beyond() -> None:
    clean = cases.CLEAN["table"]
    more = msgspec.structs.replace(clean, messages=(Message("user", "Hello."), *clean.messages))
    other = msgspec.structs.replace(clean, messages=(Message("user", "Hello."),))
    fewer = msgspec.structs.replace(clean, tools=clean.tools[1:])

    def beyond(may_change: tuple[str, ...], row: Sample) -> list[str]:
        unit = mine(may_change=may_change)
        return [one.split(",")[0] for one in unit.beyond(clean, row)]

    assert beyond(("the number or roles of messages",), more) == []
    assert beyond(("messages",), more) == ["messages changed"]
    assert beyond(("messages",), other) == []
    assert beyond(("the number or roles of messages",), other) == ["messages changed"]
    assert beyond(("messages", "golden answers"), fewer) == ["the tools changed"]
    assert beyond((), fewer) == ["the tools changed"]
    assert beyond(("the set of tools",), fewer) == []
    assert beyond(("tool descriptions",), fewer) == ["tools came"]
    assert beyond(("tool descriptions",), clean) == []


def test_a_list_of_tools_becomes_a_tuple() -> None:
    clean = cases.CLEAN["table"]
    assert mine().row(clean, [], tools=list(clean.tools)).tools == clean.tools


def test_a_type_is_found_by_each_of_its_names() -> None:
    reserved = {word.casefold() for word in facts.RESERVED}
    owner: dict[str, str] = {}
    for kind in taxonomy.types("known"):
        assert len(kind.label.split()) <= 4
        assert taxonomy.named(kind.code) == f"{kind.code} {kind.label}"
        for name in (kind.code, kind.display_name, kind.label):
            assert owner.setdefault(name.casefold(), kind.code) == kind.code, "two types of one name"
            assert name.casefold() not in reserved
            assert {taxonomy.find(name), taxonomy.find(name.swapcase())} == {kind.code}
            assert taxonomy.find_in(["CD", kind.code], name, "type") == kind.code
            assert taxonomy.codes_of(name) == (kind.code,)
    for drawn in (random.Random(seed).sample(sorted(owner), 5) for seed in range(50)):
        assert taxonomy.split(", ".join(drawn)) == taxonomy.split(drawn) == drawn
    refuses("did you mean cheap decoy, cryptic gold", taxonomy.find, "cheap decoy, cryptc gold")
    refuses(
        "unknown type of this run 'cd_nt': known: CD",
        taxonomy.find_in,
        ["CD"],
        "cd_nt",
        "type of this run",
    )
