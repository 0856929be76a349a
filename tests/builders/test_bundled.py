"""The bundled starter samples: complete, unambiguous in form, accepted by our own checks, and our own."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.builders import sources
from robustbench_tc.builders.perturb import REGISTRY, TextRequest
from robustbench_tc.builders.perturb.base import normalise_text, refuse_text
from robustbench_tc.builders.perturb.query import kept_values, query_text
from robustbench_tc.builders.sources import BUNDLED
from robustbench_tc.schema import CONTROL_TOOLS, Sample

from ..known import SOURCES

REWRITTEN = (
    "realistic_typos",
    "query_paraphrase",
    "paraphrase_tool_description",
    "paraphrase_parameter_description",
)


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (BUNDLED / name).read_text().splitlines()]


def key(answer: dict[str, Any]) -> str:
    """The request that a line of generations.jsonl or judgments.jsonl answers."""
    return TextRequest(
        kind=answer["kind"],
        input=answer["input"],
        tool=answer.get("tool"),
        parameter=answer.get("parameter"),
    ).key


@pytest.fixture(scope="module")
def samples() -> tuple[Sample, ...]:
    pool = sources.read_pool(BUNDLED, "bundled")
    assert [issue.reason for issue in pool.issues] == ["no_label"]
    return pool.samples


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """Outputs by request key; a key that two lines answer is refused."""
    found = [(key(line), line["output"]) for line in lines("generations.jsonl")]
    assert len(dict(found)) == len(found)
    return dict(found)


def requests(samples: Iterable[Sample], codes: Iterable[str]) -> Iterator[tuple[Sample, TextRequest]]:
    for code in codes:
        for sample in samples:
            for request in REGISTRY[code].requests(sample):
                # new tools are for the samples that the judgments name: their lines say none
                yield sample, msgspec.structs.replace(request, sample=None)


def test_every_source_has_at_least_twelve_samples_each_with_its_id(samples: tuple[Sample, ...]) -> None:
    counts = Counter(sample.source for sample in samples)
    assert set(counts) == set(SOURCES)
    assert min(counts.values()) >= 12
    assert len(samples) >= 60
    assert len({sample.clean_id for sample in samples}) == len(samples)
    assert all(sample.clean_id.startswith(f"{sample.source}__") for sample in samples)


def test_golds_call_listed_tools_with_declared_and_all_required_parameters(
    samples: tuple[Sample, ...],
) -> None:
    for sample in samples:
        tools = {tool.name: tool for tool in sample.tools}
        assert len(tools) == len(sample.tools), sample.clean_id
        for call in (call for answer in sample.golden_answers for call in answer):
            tool = tools[call.name]
            if sample.source == "tooleyes":  # its labels are names
                continue
            assert set(call.parameters) <= set(tool.properties), sample.clean_id
            hidden = {"api_key"} if sample.source == "toolalpaca" else set()
            assert set(tool.required) - hidden <= set(call.parameters), sample.clean_id


def test_no_golden_answer_holds_a_credential(samples: tuple[Sample, ...]) -> None:
    keyed = [s for s in samples if any("api_key" in tool.properties for tool in s.tools)]
    assert keyed
    for sample in keyed:
        assert all("api_key" not in call.parameters for answer in sample.golden_answers for call in answer)


def test_the_pseudo_tool_of_the_prompt_is_no_tool(samples: tuple[Sample, ...]) -> None:
    text = (BUNDLED / "toolrl/benchmarks/API-Bank/level-1-api_processed.json").read_text()
    assert "1. **Think:**" in text
    assert not any("Think" in tool.name for sample in samples for tool in sample.tools)


def test_many_queries_hold_a_gold_value_verbatim(samples: tuple[Sample, ...]) -> None:
    assert sum(bool(kept_values(sample, query_text(sample))) for sample in samples) >= 12


def test_every_required_text_exists_and_is_accepted(
    samples: tuple[Sample, ...], answers: dict[str, Any]
) -> None:
    needed = set()
    for sample, request in requests(samples, REWRITTEN):
        where = (sample.clean_id, request.kind, request.tool, request.parameter)
        assert request.key in answers, where
        assert refuse_text(request, answers[request.key]) is None, where
        needed.add(request.key)
    needed |= {request.key for _, request in requests(samples, ["redundant"])}
    assert needed == set(answers), "a text that no sample needs"


def test_query_texts_carry_the_clean_id_that_they_belong_to(samples: tuple[Sample, ...]) -> None:
    found = {(g["kind"], g["clean_id"]): g["input"] for g in lines("generations.jsonl") if "clean_id" in g}
    wanted = {(kind, s.clean_id): query_text(s) for kind in REWRITTEN[:2] for s in samples}
    assert found == wanted


def test_typing_errors_are_two_to_four_words_and_nothing_else() -> None:
    for line in lines("generations.jsonl"):
        if line["kind"] == "realistic_typos":
            before, after = line["input"].split(), line["output"].split()
            assert len(before) == len(after), line
            changed = [(b, a) for b, a in zip(before, after, strict=True) if b != a]
            assert 2 <= len(changed) <= 4, line
            # A slip keeps the length within one letter and never hits a word with a digit.
            assert all(abs(len(b) - len(a)) <= 1 and b.isascii() for b, a in changed), line
            assert not any(character.isdigit() for b, _ in changed for character in b), line


def test_every_text_pair_has_exactly_one_judgment() -> None:
    texts = {key(g): g["output"] for g in lines("generations.jsonl") if g["kind"] != "redundant"}
    judged = lines("judgments.jsonl")
    assert {key(line): line["output"] for line in judged} == texts
    assert len(judged) == len(texts)
    assert all(line["score"] in (1, 2, 3, 4, 5) for line in judged)
    assert all(bool(line["reason"]) == (line["score"] < 5) for line in judged)


def test_every_new_tool_is_judged_for_every_sample_that_may_get_it(
    samples: tuple[Sample, ...], answers: dict[str, Any]
) -> None:
    judged = Counter(
        (line["clean_id"], line["tool"], line["description"]) for line in lines("redundant_judgments.jsonl")
    )
    assert set(judged.values()) == {1}
    written = {
        (sample.clean_id, tool["name"], tool["description"])
        for sample, request in requests(samples, ("redundant",))
        for tool in answers[request.key]
    }
    assert set(judged) <= written
    named = {(clean_id, tool) for clean_id, tool, _ in judged}
    for clean_id, tool, _ in written - set(judged):  # a name that two tools bring is taken once
        assert (clean_id, tool) in named
    assert all(bool(line["reason"]) or not line["serves"] for line in lines("redundant_judgments.jsonl"))


def test_nothing_bundled_stands_upstream(samples: tuple[Sample, ...], shared: Path) -> None:
    upstream = sources.read_pool(shared / "sources", "full").samples
    queries = {normalise_text(query_text(sample)).lower() for sample in upstream}
    assert not [s.clean_id for s in samples if normalise_text(query_text(s)).lower() in queries]
    tools = {normalise_text(tool.description).lower() for sample in upstream for tool in sample.tools}
    assert not {t.name for s in samples for t in s.tools if normalise_text(t.description).lower() in tools}
    names = {tool.name for sample in upstream for tool in sample.tools}
    assert {tool.name for sample in samples for tool in sample.tools} & names <= CONTROL_TOOLS
