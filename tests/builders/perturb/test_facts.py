"""Every type states all that the other rooms need to know of it, and each statement is true."""

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from robustbench_tc import sources, taxonomy
from robustbench_tc.audits.checks import rules
from robustbench_tc.audits.rows import RowChecks
from robustbench_tc.builders.build import BuildSpec, prepare
from robustbench_tc.builders.perturb import REGISTRY, Case, Context, Perturbation, cases, facts
from robustbench_tc.builders.perturb.base import register
from robustbench_tc.builders.plain import row_dict
from robustbench_tc.builders.sources import READERS
from robustbench_tc.schema import Message, Sample, dumps

from ...conftest import ROOT
from ...refusals import refuses

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


def test_a_type_states_every_fact_and_its_golden_cases_hold() -> None:
    wrong = [
        (code, got)
        for code in CODES
        if (got := facts.problems(REGISTRY[code], sources.sources(), CHECKS)) != []
    ]
    assert wrong == []


def test_what_the_other_rooms_read_is_what_types_and_sources_state() -> None:
    stale = [
        path.relative_to(ROOT)
        for path, text in writer().files().items()
        if not path.is_file() or path.read_text("utf-8") != text
    ]
    assert stale == [], "run `make facts`"


def test_the_rows_that_types_state_are_those_of_the_papers_samples(shared: Path) -> None:
    """Those of the bundled samples are compared by `tests/audits/test_extensions.py`."""
    spec = BuildSpec(sources=shared / "sources", codes=tuple(REGISTRY))
    plan, _, _ = prepare(spec)
    context = plan.context()
    found = {
        code: [row.source for row in plan.rows(code, context) if isinstance(row, Sample)] for code in REGISTRY
    }
    assert {code: len(rows) for code, rows in found.items()} == {c: u.rows.paper for c, u in REGISTRY.items()}
    for code, rows in found.items():
        kind = taxonomy.get(code)
        if kind.pack == "language":  # whose samples hold words with a form of their own, language by language
            assert set(rows) <= set(kind.sources), code
        else:  # one type's records are in no profile but full and bundled
            assert set(rows) == (set(kind.sources) if kind.rows.paper else set()), code


def test_the_core_is_the_papers_22_in_its_order() -> None:
    core = [kind for kind in taxonomy.types() if kind.status == "core"]
    assert [kind.order for kind in core] == list(range(1, 23))
    assert {kind.pack for kind in taxonomy.types("extension")} & {"core"} == set()


def _held(clean: Sample, row: Sample) -> dict[str, str | None]:
    """What the gate's pass over the rows says of `row`, by check."""
    checks = RowChecks()
    checks.check("clean", 0, [row_dict(clean)])
    found = checks.check(row.type_code, 0, [row_dict(row)]).rows
    return {name: found[name][0] for name in CHECKS}


def test_the_gate_takes_a_golden_row_and_catches_the_types_planted_defect(subtests: pytest.Subtests) -> None:
    for code in CODES:
        with subtests.test(code=code):
            unit = REGISTRY[code]
            clean, row, spoiled = cases.spoiled(unit)
            sound = _held(clean, row)
            assert {name: said for name, said in sound.items() if said} == {}
            assert sound["unit_finds_nothing"] == sound["type_is_audited"] == sound["no_new_credential"] == ""
            assert len(spoiled) == 1 + (unit.pack != "core"), "two checks have to catch the two defects"
            for check, defect in spoiled.items():
                assert dumps(defect) != dumps(row), f"the planted defect for {check} changes nothing"
                assert _held(clean, defect)[check], f"{check} does not catch the planted defect"


def test_make_facts_names_a_check_and_a_scorer_that_do_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(REGISTRY["CD"]), "caught_by", "no_such_check")
    with pytest.raises(ValueError, match=r"CD \(perturb/reward\.py\): caught_by names 'no_such_check'"):
        writer().files()
    broken = msgspec.structs.replace(READERS[0], scorer="nobody")
    made = writer()
    monkeypatch.setattr(made, "READERS", (broken, *READERS[1:]))
    with pytest.raises(ValueError, match=f"{broken.source}: scorer names 'nobody'"):
        made.files()


# --- what is left out is named -------------------------------------------------------------------------


def without(name: str) -> Perturbation:
    """A type like `same_name_A` of another code, that does not state `name`."""
    model = REGISTRY["same_name_A"]
    stated = {fact: getattr(model, fact) for fact in (*facts.STATED, *model.traits, "paper_rows")}
    doing = {fact: getattr(type(model), fact) for fact in (*facts.DOING, "_distractor", "_check_distractor")}
    body = {**stated, **doing, "code": "my_type", "order": 99, "pack": "registry", "paper_rows": None}
    body |= {"prior_art": "none known", "otherwise_caught_by": "gold_is_there"}
    body |= {"spoiled_otherwise": lambda self, clean, row: row}
    body |= {"traits": model.traits, "__doc__": "A type of the test.", "__module__": "perturb.my_type"}
    body.pop(name, None)
    unit: Perturbation = type("MyType", (Perturbation,), body)()
    return unit


def test_a_fact_that_is_left_out_is_named(subtests: pytest.Subtests) -> None:
    for name in [*facts.STATED, *facts.DOING, *facts.BEYOND_CORE, "description"]:
        with subtests.test(name=name):
            unit = without(name)
            if name == "code":  # the registry itself asks for it
                with pytest.raises(ValueError, match=r"MyType: a type states its own `code`"):
                    register(type(unit))
                continue
            (problem,) = facts.problems(unit, sources.sources())
            assert problem.startswith("my_type (perturb/my_type.py) does not state ") and name in problem


@pytest.mark.parametrize("code", ["my-type", "2fast", "", "a b", 5])
def test_a_code_that_is_not_a_plain_word_never_enters_the_registry(code: object) -> None:
    with pytest.raises(ValueError, match="a plain word"):
        register(type("MyType", (type(without("")),), {"code": code}))
    assert code not in REGISTRY


def test_a_fact_that_cannot_be_is_named(subtests: pytest.Subtests) -> None:
    mistakes: list[tuple[dict[str, object], str]] = [
        ({"order": 5}, "order 5 is taken by same_name_A"),
        ({"level": "reading"}, "level"),
        ({"pack": "mine"}, "pack"),
        ({"channel": "registri"}, "channel"),
        ({"may_change": ("tool colours",)}, "may_change"),
        ({"may_change": ()}, "may_change is empty"),
        ({"pack": "core"}, "paper_rows is stated for the types of the core"),
        ({"ground_truth_changes": True}, "may_change does not hold the golden answers"),
        ({"channel": "query", "method": "llm"}, "judged_as is not stated"),
        ({"channel": "tool_result"}, "injected_error belongs to the channel tool_result"),
        ({"injected_error": "Out of order."}, "injected_error belongs to the channel tool_result"),
        ({"applies_to": ("nowhere",)}, "applies_to names no source"),
        ({"applies_to": ("bfcl_v3", "nowhere")}, "a source that there is not: nowhere"),
        ({"channel": "offers"}, "traits of the channel offers are not stated: quality, suffix, stated"),
        ({"rows": object()}, "object"),
        ({"golden": ()}, "golden holds no Case"),
        ({"method": "llm"}, "builders/prompts/my_type.v1.txt"),
        ({"caught_by": "no_such_check"}, "caught_by names 'no_such_check', and the gate has no such check"),
        ({"series": "typos"}, "a type of a series states its dose"),
        ({"dose": 3}, "a type of a series states its dose"),
        ({"otherwise_caught_by": "no_check"}, "otherwise_caught_by names 'no_check', and the gate has no"),
        ({"__doc__": None}, "no docstring"),
    ]
    for changed, words in mistakes:
        with subtests.test(words):
            unit = without("")
            kind = type("MyType", (type(unit),), {**vars(type(unit)), **changed})
            found = facts.problems(kind(), sources.sources(), CHECKS)
            assert any(words in problem and "my_type" in problem for problem in found), found


def test_a_golden_case_that_reads_otherwise_is_shown_as_it_reads() -> None:
    unit = without("golden")
    case = Case(clean="table", reads="+ tool: something_else()")
    kind = type("MyType", (type(unit),), {**vars(type(unit)), "golden": (case,)})
    (problem,) = facts.problems(kind(), sources.sources())
    assert "the golden case on 'table' reads otherwise:\n+ tool: reserve()" in problem


def test_a_row_whose_messages_are_a_list_is_named_before_a_build_meets_it() -> None:
    model = type(REGISTRY["same_name_A"])

    class Listed(model):  # type: ignore[misc, valid-type]
        def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
            row: Sample = super().perturb(sample, rng, context)
            return msgspec.structs.replace(row, messages=list(row.messages))

    body = {**vars(type(without(""))), "perturb": Listed.perturb}
    kind = type("MyType", (Listed,), body)
    (problem,) = facts.problems(kind(), sources.sources())
    assert problem.endswith("(a list for a tuple?): messages")


def test_what_no_part_of_may_change_allows_is_seen_by_beyond() -> None:
    clean = cases.CLEAN["table"]
    more = msgspec.structs.replace(clean, messages=(Message("user", "Hello."), *clean.messages))
    other = msgspec.structs.replace(clean, messages=(Message("user", "Hello."),))
    fewer = msgspec.structs.replace(clean, tools=clean.tools[1:])

    def beyond(may_change: tuple[str, ...], row: Sample) -> list[str]:
        unit = type("MyType", (Perturbation,), {"may_change": may_change})()
        return [one.split(",")[0] for one in unit.beyond(clean, row)]

    assert beyond(("the number or roles of messages",), more) == []
    assert beyond(("messages",), more) == ["messages changed"]
    assert beyond(("messages",), other) == []
    assert beyond(("the number or roles of messages",), other) == ["messages changed"]
    assert beyond(("messages", "golden answers"), fewer) == ["the tools changed"]
    assert beyond((), fewer) == ["the tools changed"]
    assert beyond(("the set of tools",), fewer) == []


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


def test_a_type_inherits_no_identity_from_another() -> None:
    kind = type(
        "MyType", (type(REGISTRY["redundant"]),), {"code": "my_type", "__module__": "perturb.my_type"}
    )
    (problem,) = facts.problems(kind(), sources.sources())
    for name in ("order", "display_name", "label", "what_is_modified", "how_made", "golden", "rows"):
        assert name in problem, problem


@pytest.mark.parametrize("code", ["clean", "taxonomy", "reward", "perception", "severity", "perturbed"])
def test_a_code_that_means_something_else_is_refused(code: str) -> None:
    unit = without("")
    kind = type("MyType", (type(unit),), {**vars(type(unit)), "code": code})
    assert any("choose another code" in problem for problem in facts.problems(kind(), sources.sources()))
