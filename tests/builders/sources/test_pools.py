"""The pools of the mirror: the paper's 199 and every usable record, against counts taken upstream."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from robustbench_tc.builders import sources
from robustbench_tc.builders.sources import toolalpaca
from robustbench_tc.schema import ANY, CONTROL_TOOLS, OMIT, Json, Sample, columns, dumps, record

from ...known import SOURCES

UPSTREAM_RECORDS = {
    "BFCL_v3_simple.json": 400,
    "BFCL_v3_multiple.json": 200,
    "BFCL_v3_parallel.json": 200,
    "BFCL_v3_parallel_multiple.json": 200,
    "BFCL_v3_live_simple.json": 258,
    "BFCL_v3_live_multiple.json": 1053,
    "BFCL_v3_live_parallel.json": 16,
    "BFCL_v3_live_parallel_multiple.json": 24,
    "level-1-api_processed.json": 399,
    "level-2-api_processed.json": 67,
    "level-3-api_processed.json": 131,
    "clean.json": 105,
    "eval_real.json": 114,
    "eval_simulated.json": 100,
    "scenario_data_zero_processed.json": 382,
}


def of(pool: sources.Pool, source: str) -> list[Sample]:
    return [sample for sample in pool.samples if sample.source == source]


def test_paper_is_exactly_the_199(paper: sources.Pool, shared: Path) -> None:
    expected = json.loads((shared / "spec" / "clean_ids.json").read_text())
    assert {source: [s.clean_id for s in of(paper, source)] for source in SOURCES} == expected
    assert len(paper.samples) == 199


@pytest.mark.parametrize(
    ("source", "mean"),
    [("bfcl_v3", 2.8), ("apibank", 2.09), ("rotbench", 7.8), ("toolalpaca", 3.5), ("tooleyes", 6.3)],
)
def test_mean_registry_size_is_the_documented_one(paper: sources.Pool, source: str, mean: float) -> None:
    sizes = [len(sample.tools) for sample in of(paper, source)]
    assert round(sum(sizes) / len(sizes), len(str(mean).partition(".")[2])) == mean


def test_every_record_of_the_full_pool_is_a_row_or_an_issue(full: sources.Pool, root: Path) -> None:
    for reader in sources.READERS:
        for file in reader.files:
            records = [record for record, _ in reader.read_file(root, file)]
            assert len(records) == len(set(records)) == UPSTREAM_RECORDS[Path(file).name]
    assert len(full.samples) + len(full.issues) == sum(UPSTREAM_RECORDS.values())
    counts = {source: len(of(full, source)) for source in SOURCES}
    assert counts == {"bfcl_v3": 2346, "apibank": 581, "rotbench": 105, "toolalpaca": 171, "tooleyes": 51}


def test_what_is_left_out_of_the_full_pool_is_known(full: sources.Pool) -> None:
    counts = Counter((issue.source, issue.reason) for issue in full.issues)
    assert counts == {
        ("bfcl_v3", "known_wrong_gold"): 4,
        ("bfcl_v3", "gold_tool_not_listed"): 1,
        ("apibank", "gold_tool_not_listed"): 6,
        ("apibank", "identical_row"): 10,
        ("toolalpaca", "gold_not_decodable"): 34,
        ("toolalpaca", "gold_tool_not_listed"): 9,
        ("tooleyes", "no_label"): 329,
        ("tooleyes", "duplicate_id"): 2,
    }
    unlisted = {i.record for i in full.issues if i.source == "apibank" and i.reason == "gold_tool_not_listed"}
    assert unlisted == {"6", "13", "14", "19", "25", "54"}
    assert all(issue.reason in sources.REASONS and issue.detail.endswith(".") for issue in full.issues)


def test_the_paper_profile_draws_from_the_full_pool(paper: sources.Pool, full: sources.Pool) -> None:
    by_id = {sample.id: sample for sample in full.samples}
    assert len(by_id) == len(full.samples)
    assert all(by_id[sample.id] == sample for sample in paper.samples)


def test_a_clean_row_is_anchored_to_itself_and_its_gold_tool_listed_and_indexed(full: sources.Pool) -> None:
    """Every golden parameter maps to a list of accepted values."""
    for sample in full.samples:
        assert sample.id == f"{sample.clean_id}::clean"
        assert sample.clean_id.startswith(f"{sample.source}__")
        assert (sample.type_code, sample.component, sample.generator, sample.seed) == (
            "clean",
            None,
            "rule",
            0,
        )
        assert sample.category and sample.tools and not sample.changes
        names = {tool.name for tool in sample.tools}
        for call in (call for answer in sample.golden_answers for call in answer):
            assert call.name in names
            assert all(values and isinstance(values, list) for values in call.parameters.values())
            # One BFCL record has a tool of its own that is named `finish`.
            if call.name in CONTROL_TOOLS and sample.source != "bfcl_v3":
                assert all(values == [ANY] for values in call.parameters.values())
        assert sample.gold_tool_index is not None
        assert sample.tools[sample.gold_tool_index].name == sample.golden_answers[0][0].name


def test_a_gold_parameter_is_declared_but_for_one_known_sample(paper: sources.Pool) -> None:
    odd = [
        sample.clean_id
        for sample in paper.samples
        if sample.gold_tool_index is not None
        and not set(sample.golden_answers[0][0].parameters)
        <= set(sample.tools[sample.gold_tool_index].properties)
    ]
    assert odd == ["apibank__level1_357"]


def test_schemas_use_json_schema_type_words(full: sources.Pool) -> None:
    words: Counter[str] = Counter()

    def walk(schema: Json) -> None:
        words[schema.get("type", "any")] += 1
        for inner in schema.get("properties", {}).values():
            walk(inner)
        if "items" in schema:
            walk(schema["items"])

    for sample in full.samples:
        for tool in sample.tools:
            assert tool.parameters["type"] == "object"
            walk(tool.parameters)
    assert set(words) == {"object", "string", "integer", "number", "boolean", "array", "any"}


def test_only_upstream_marks_make_a_parameter_required_and_only_its_tools_are_listed(
    full: sources.Pool,
) -> None:
    """Not the prompt's own steps, and the control tools last."""
    listed = {source: [tool for sample in of(full, source) for tool in sample.tools] for source in SOURCES}
    assert [any(tool.required for tool in listed[source]) for source in SOURCES] == [
        source != "apibank" for source in SOURCES
    ]
    assert not any("Think" in tool.name for tool in listed["apibank"])
    assert not any(tool.name == "components" for tool in listed["toolalpaca"])
    for sample in (*of(full, "rotbench"), *of(full, "tooleyes")):
        assert [tool.name for tool in sample.tools[-2:]] == ["ask_to_user", "finish"]


def test_messages_are_what_the_user_sees(full: sources.Pool) -> None:
    roles = {
        source: Counter(tuple(m.role for m in s.messages) for s in of(full, source)) for source in SOURCES
    }
    assert roles["bfcl_v3"][("system", "user")] == 48  # of 49: one is a known wrong gold
    assert all(set(roles[source]) == {("user",)} for source in SOURCES if source != "bfcl_v3")
    for sample in (*of(full, "rotbench"), *of(full, "tooleyes")):
        assert sample.clean_id == f"{sample.source}__Turn 1: {sample.messages[0].content}"
    for sample in of(full, "apibank"):
        assert sample.messages[0].content.count("one tool call") == 1


def test_markers_of_upstream_survive(full: sources.Pool) -> None:
    def values(source: str) -> list[list[Json]]:
        return [
            v for s in of(full, source) for a in s.golden_answers for c in a for v in c.parameters.values()
        ]

    assert any(OMIT in accepted for accepted in values("bfcl_v3"))
    assert not any("None" in accepted for accepted in values("rotbench"))
    assert sum(ANY in accepted for accepted in values("rotbench")) >= 13
    assert any(len(sample.golden_answers) == 8 for sample in of(full, "rotbench"))


def test_no_credential_is_published(full: sources.Pool, root: Path) -> None:
    text = (root / toolalpaca.READER.files[0]).read_text()
    names = "|".join(toolalpaca.CREDENTIALS)
    secrets = set(re.findall(rf'\\"(?:{names})\\": \\"([^"\\ ]+)\\"', text))
    published = dumps(of(full, "toolalpaca")) + dumps(full.issues)
    # counts only: a test prints what fails
    assert (len(secrets), sum(secret in published for secret in secrets)) == (3, 0)
    kept = {"CurrencyBeacon": "api_key", "WolframAlpha": "appid", "apilayer weatherstack": "access_key"}
    for api, parameter in kept.items():
        rows = [s for s in of(full, "toolalpaca") if s.clean_id.startswith(f"toolalpaca__{api}__")]
        assert rows
        assert all(parameter in tool.properties for sample in rows for tool in sample.tools)
        assert not any(parameter in call.parameters for s in rows for call in s.golden_answers[0])


def test_rows_survive_the_columns(full: sources.Pool) -> None:
    data = columns(full.samples, Sample)
    names = list(data)
    rows = [dict(zip(names, values, strict=True)) for values in zip(*data.values(), strict=True)]
    assert [record(row, Sample) for row in rows] == list(full.samples)


# --- Samples of the whole pools that repeat another one leave with their reason; the paper's stay


def test_no_two_samples_of_the_whole_pools_are_the_same_but_the_papers(
    paper: sources.Pool, full: sources.Pool
) -> None:
    again = [issue for issue in full.issues if issue.reason == "identical_row"]
    papers = {sample.clean_id for sample in paper.samples}
    kept = {sample.clean_id: sample for sample in full.samples}
    assert papers <= kept.keys() and not papers & {issue.clean_id for issue in again}
    for issue in again:
        (first,) = (one for one in kept if issue.detail.endswith(f" {one}."))
        assert kept[first].source == issue.source and issue.clean_id not in kept
    shown = [dumps((s.messages, s.tools, s.golden_answers)) for s in full.samples]
    assert len(set(shown)) == len(shown)
