"""The oracle vectors hold, and the check of them can fail."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.schema import Call, dumps

from ..refusals import refuses
from . import CHECKS, CLASSES, FileResult, kind_of, rows_of, run_vectors
from .bfcl import bfcl_verdict
from .replies import RECALL, check_replies
from .rotbench import _equal_as_text
from .rows import Row

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def results(shared: Path) -> dict[str, FileResult]:
    return {result.name: result for result in run_vectors(shared / "vectors")}


def test_no_row_of_the_shared_vectors_disagrees_in_an_unlisted_way(results: dict[str, FileResult]) -> None:
    assert {name: result.unlisted for name, result in results.items() if result.unlisted} == {}


def test_every_row_is_counted_once(results: dict[str, FileResult], shared: Path) -> None:
    for name, result in results.items():
        registry = result.replies is not None  # the first line of a file of replies
        assert result.rows == len((shared / "vectors" / name).read_text().splitlines()) - registry
    assert results["bfcl_java_js.jsonl"].outcomes.keys() == {"not checked"}
    assert results["bfcl_nonlive.jsonl"].listed.keys() <= {"upstream_crash"}
    assert results["bfcl_live.jsonl"].listed.keys() <= {"upstream_crash"}


def test_the_replies_that_failed_before_are_read_under_every_source(shared: Path) -> None:
    found = check_replies(list(rows_of(shared / "inputs" / "replies3.jsonl")))
    assert found.share("call") >= RECALL
    assert found.share("none") <= 1 - RECALL


def test_the_page_says_what_every_style_of_the_replies_measures(results: dict[str, FileResult]) -> None:
    found = results["replies.jsonl"].replies
    assert found is not None and found.passed
    page = " ".join((ROOT / "docs" / "calls.md").read_text("utf-8").split())
    assert f"in each of its {len(found.styles)} styles, recall is 1.000 or false acceptance 0.000" in page
    assert {(one.kind, one.share) for one in found.styles} == {("call", 1.0), ("none", 0.0)}


def test_the_error_types_of_single_calls_are_ours(shared: Path) -> None:
    """Upstream's error type and our reason name the same thing in every row where upstream is that fine."""
    same = {
        "wrong_count": {"no_call", "call_count"},
        "wrong_func_name": {"wrong_name"},
        "missing_required": {"missing_parameter"},
        "missing_optional": {"missing_parameter"},
        "unexpected_param": {"unexpected_parameter"},
        "type_error": {"wrong_type"},
        "value_error": {"wrong_value"},
    }
    checked = 0
    for row in rows_of(shared / "vectors" / "bfcl_nonlive.jsonl"):
        if "parallel" in row["category"] or row["upstream_error_type"] is None:
            continue
        checker, _, detail = row["upstream_error_type"].partition(":")
        assert bfcl_verdict(row).reason in same[detail if checker.endswith("_checker") else checker]
        checked += 1
    assert checked > 100


# --- the closed list ------------------------------------------------------------------------------------

KINDS_OF_FILES = {
    "bfcl_nonlive, bfcl_live": "bfcl",
    "bfcl_decode": "bfcl_decoder",
    "apibank_toolrl": "apibank_toolrl",
    "apibank_damo": "apibank_damo",
    "rotbench": "rotbench",
    "toolrl_decode": "toolrl_bfcl_decoder",
    "toolrl_reward": "toolrl_reward",
}


OF_ANSWERS = {"bfcl": "`tuple`", "bfcl_decoder": "`lambda`", "rotbench": "noisy `ask_to_user`"}
"""What answers.md §6 adds."""


def test_the_page_lists_every_class() -> None:
    listed = (ROOT / "docs" / "spec" / "scoring.md").read_text("utf-8").partition("## 10.")[2]
    named = set(re.findall(r"`(\w+)`", listed)) | {"background"}
    assert named == {name for classes in CLASSES.values() for name in classes}


def test_the_classes_are_the_closed_list_of_the_specification(shared: Path) -> None:
    text = (shared / "spec" / "scoring.md").read_text().split("## 10.")[1]
    bars = (shared / "spec" / "answers.md").read_text().split("## 6.")[1]
    listed: dict[str, set[str]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 4 or cells[0] not in KINDS_OF_FILES:
            continue
        classes = set(re.findall(r"`(\w+)`", cells[1]))
        classes |= {name for name in re.findall(r"`(\w+)`", cells[3]) if name == "several_blocks"}
        if cells[0] == "apibank_damo":
            classes = {cells[1]}
        listed.setdefault(KINDS_OF_FILES[cells[0]], set()).update(classes)
    for kind, name in OF_ANSWERS.items():
        assert name in bars
        listed[kind].add(name.replace("noisy `ask_to_user", "noisy_ask_to_user").strip("`"))
    assert listed == {kind: set(classes) for kind, classes in CLASSES.items()}


# --- the check can fail ---------------------------------------------------------------------------------


def flipped(row: Row) -> Row:
    return {**row, "upstream_valid": not row["upstream_valid"], "upstream_exception": None}


def test_a_flipped_verdict_outside_every_class_is_unlisted(shared: Path) -> None:
    for name in ("bfcl_nonlive", "bfcl_live"):
        for row in list(rows_of(shared / "vectors" / f"{name}.jsonl"))[:300]:
            assert CHECKS["bfcl"](flipped(row)) == "unlisted"
    plain = {"canonical", "param_order", "name_case", "wrong_name", "missing_param", "empty_prediction"}
    for kind in ("apibank_toolrl", "rotbench"):
        outcomes = [
            CHECKS[kind](flipped(row))
            for row in rows_of(shared / "vectors" / f"{kind}.jsonl")
            if row["mutation"] in plain and not (kind == "rotbench" and "Input: {}" in row["ground_truth"][0])
        ]
        assert len(outcomes) > 50
        # A golden list in text is compared as 4.3 says, whatever upstream said.
        assert set(outcomes) <= {"unlisted", "python_list"}
        assert outcomes.count("unlisted") > 0.9 * len(outcomes)


def test_another_reward_is_unlisted(shared: Path) -> None:
    row = next(rows_of(shared / "vectors" / "toolrl_reward.jsonl"))
    assert CHECKS["toolrl_reward"](row) == "agreed"
    assert CHECKS["toolrl_reward"]({**row, "score": row["score"] - 1e-6}) == "unlisted"


def rotbench_row(
    tools: dict[str, list[str]], golden: list[str], reply: str, mutation: str, valid: bool
) -> Row:
    """Tools by name with their parameters, the last two as upstream's control tools."""
    entries = [
        {
            "name": name,
            "description": "",
            "parameters": {"type": "object", "properties": {key: {} for key in keys}},
        }
        for name, keys in tools.items()
    ]
    return {
        "source": "rotbench",
        "tools": entries,
        "ground_truth": golden,
        "raw_output": reply,
        "prediction": [],
        "mutation": mutation,
        "upstream_valid": valid,
    }


def act(name: str, **parameters: Any) -> str:
    return f"Action: {name}\nAction Input: {dumps(parameters)}"


PLAIN = {"seats": ["n"], "ask_to_user": ["question"], "finish": ["answer"]}
NOISY = {"ask_to_user": ["city"], "a_t_u": ["question"], "fin": ["answer"]}
MADE = [
    (PLAIN, [act("seats", n="3")], act("seats", n=3), "canonical", False, "numeric_text"),
    (
        PLAIN,
        [act("seats", n="3"), act("seats", n="4")],
        act("seats", n=4),
        "canonical",
        False,
        "numeric_text",
    ),
    (PLAIN, [act("seats", n="3")], act("seats", n=4), "canonical", True, "unlisted"),
    (PLAIN, [act("seats")], act("seats"), "canonical", False, "parameterless"),
    (PLAIN, [act("seats", n="3")], act("seats", n="3") * 2, "two_actions", True, "several_actions"),
    (PLAIN, [act("finish", answer="x")], act("finish", answer="y"), "finish_tool", False, "control_tool"),
    (
        NOISY,
        [act("ask_to_user", city="Oslo")],
        act("ask_to_user", city="Bergen"),
        "canonical",
        True,
        "unlisted",
    ),
    (
        NOISY,
        [act("a_t_u", question="Where?")],
        act("a_t_u", question="When?"),
        "canonical",
        False,
        "noisy_ask_to_user",
    ),
    (
        NOISY,
        [act("ask_to_user", question="x")],
        act("ask_to_user", question="y"),
        "canonical",
        False,
        "noisy_ask_to_user",
    ),
]


@pytest.mark.parametrize(("tools", "golden", "reply", "mutation", "valid", "outcome"), MADE)
def test_a_class_of_rotbench_is_what_its_scorer_says(
    tools: dict[str, list[str]], golden: list[str], reply: str, mutation: str, valid: bool, outcome: str
) -> None:
    assert CHECKS["rotbench"](rotbench_row(tools, golden, reply, mutation, valid)) == outcome


def test_several_gold_values_of_one_tool_are_compared_one_by_one() -> None:
    golden = Call("seats", {"n": ["3", "4"]})
    assert _equal_as_text(Call("seats", {"n": 4}), golden)
    assert not _equal_as_text(Call("seats", {"n": "4"}), golden) and not _equal_as_text(
        Call("seats", {"n": 5}), golden
    )


def test_a_declared_number_may_be_written_otherwise_and_a_tuple_is_a_list() -> None:
    tool = {"name": "seats", "description": "", "parameters": {"n": {"type": "int", "description": ""}}}
    call = {"name": "seats", "parameters": {"n": "3"}}
    said = {**call, "parameters": {"n": "3.0"}}
    row = {"tools": [tool], "ground_truth": [call], "prediction": [said], "upstream_valid": False}
    assert CHECKS["apibank_toolrl"]({**row, "mutation": "numeric_str_dot0"}) == "declared_number"
    listed = {
        "name": "pick",
        "description": "",
        "parameters": {"type": "dict", "properties": {"of": {"type": "array"}}},
    }
    of_bfcl = {
        "category": "simple_python",
        "tools": [listed],
        "ground_truth": [{"pick": {"of": [[1, 2]]}}],
        "prediction": [{"name": "pick", "parameters": {"of": [1, 2]}}],
        "upstream_valid": False,
        "mutation": "tuple_for_list",
    }
    assert CHECKS["bfcl"](of_bfcl) == "tuple"


def test_every_class_has_a_row(results: dict[str, FileResult]) -> None:
    """In the shared files, or one that is made here."""
    found = {name for result in results.values() for name in result.listed}
    made = {one[-1] for one in MADE} | OF_DECODER | {"tuple", "declared_number"}
    assert {name for names in CLASSES.values() for name in names} <= found | made


def decoder_row(text: str, decoded: Any, **more: Any) -> Row:
    return {
        "source": "bfcl_decoder",
        "raw_output": text,
        "entry_point": "prompting_wrapper",
        "upstream_decoded": decoded,
        "upstream_decoded_repr": repr(decoded),
        "upstream_error": None,
        "upstream_format_ok": True,
        **more,
    }


DECODED: list[tuple[str, Any, str]] = [
    ("[f(a=1)]", [{"f": {"a": 1}}], "agreed"),
    ("[f(a=1)]", [{"f": {"a": 2}}], "unlisted"),
    ("[f(a=1)]", [{"f": {"a": True}}], "unlisted"),
    ("[f(a=true)]", [{"f": {"a": "true"}}], "json_literal"),
    ("[f(a='true')]", [{"f": {"a": True}}], "unlisted"),
    ("[f(a=true, b='x')]", [{"f": {"a": "true", "b": "y"}}], "unlisted"),
    ("[f(a=+5)]", [{"f": {"a": -5}}], "unary"),
    ("[f(a=5)]", [{"f": {"a": -5}}], "unlisted"),
    ("[f(a=~5)]", [{"f": {"a": -5}}], "unary"),
    ("[f(a=1|2)]", [{"f": {"a": 3}}], "arithmetic"),
    ("[f(a=10/4)]", [{"f": {"a": 2}}], "unlisted"),
    ("[f(**x)]", [{"f": {"null": "x"}}], "expansion"),
    ("[a[0](x=1)]", [{"": {"x": 1}}], "empty_name"),
    ("[f(a={1: (2,)})]", [{"f": {"a": {"1": [2]}}}], "agreed"),
    ("nothing", [], "agreed"),
    ("f(a=1)\ng(b=2)", [], "tolerant"),
    ("[f(a=lambda: 1)]", [{"f": {"a": "lambda: 1"}}], "lambda"),
]
OF_DECODER = {outcome for *_, outcome in DECODED}


@pytest.mark.parametrize(("text", "decoded", "outcome"), DECODED)
def test_a_class_needs_its_cause_in_the_text(text: str, decoded: Any, outcome: str) -> None:
    assert CHECKS["bfcl_decoder"](decoder_row(text, decoded)) == outcome


def test_what_json_cannot_hold_is_nonliteral() -> None:
    row = decoder_row("[f(a=b'x')]", None, upstream_decoded_repr="[{'f': {'a': b'x'}}]")
    assert CHECKS["bfcl_decoder"](row) == "nonliteral"


def test_blocks_in_another_order_are_unlisted() -> None:
    a, b = (f'<tool_call>{{"name": "{name}", "parameters": {{}}}}</tool_call>' for name in "ab")
    row: Row = {"raw_output": a + b, "upstream_decoded": [{"b": {}}], "upstream_error": None}
    assert CHECKS["toolrl_bfcl_decoder"](row) == "several_blocks"
    assert CHECKS["toolrl_bfcl_decoder"]({**row, "upstream_decoded": [{"a": {}}]}) == "unlisted"


# --- files and the command line -------------------------------------------------------------------------


def write(folder: Path, name: str, *found: Row) -> None:
    (folder / name).write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in found))


def test_kinds_go_by_source_and_else_by_file_name() -> None:
    assert kind_of({"source": "bfcl", "language": "java"}, "x.jsonl") == "bfcl_java_js"
    assert kind_of({"source": "apibank", "judge": "damo_execute"}, "x.jsonl") == "apibank_damo"
    assert kind_of({}, "bfcl_live.jsonl") == "bfcl"
    assert kind_of({}, "bfcl_decode.jsonl") == "bfcl_decoder"
    assert kind_of({}, "apibank_toolrl.jsonl") == "apibank_toolrl"


def test_a_checker_that_is_handed_in_counts_and_its_classes_are_closed(tmp_path: Path) -> None:
    write(tmp_path, "r.jsonl", *({"source": "toolrl_reward", "n": n} for n in range(4)))
    says = ["agreed", "upstream_crash", "made_up", "unlisted"]
    (result,) = run_vectors(tmp_path, {"toolrl_reward": lambda row: says[row["n"]]})
    assert result.outcomes == {"agreed": 1, "upstream_crash": 1, "unlisted": 2}
    assert [row["n"] for row in result.unlisted] == [2, 3]


def test_a_checker_that_raises_is_a_defect_of_that_row(tmp_path: Path) -> None:
    write(tmp_path, "bfcl_live.jsonl", {"source": "bfcl", "language": "python"})
    (result,) = run_vectors(tmp_path)
    assert result.unlisted[0]["error"].startswith("KeyError")


def test_a_folder_without_vectors_or_with_another_file_is_an_error(tmp_path: Path) -> None:
    refuses(r"no \*\.jsonl files there", run_vectors, tmp_path / "nowhere")
    for content in ('{"source": ', "[1]\n"):
        (tmp_path / "x.jsonl").write_text(content)
        refuses(r"x\.jsonl:1: no JSON object", run_vectors, tmp_path)


def test_the_command_prints_each_file_and_fails_on_an_unlisted_row(tmp_path: Path) -> None:
    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.vectors", str(tmp_path), *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    good = decoder_row("[f(a=1)]", [{"f": {"a": 1}}])
    write(tmp_path, "bfcl_decode.jsonl", good)
    write(tmp_path, "bfcl_java_js.jsonl", {"source": "bfcl", "language": "java"})
    passed = ran()
    assert passed.returncode == 0
    assert "not checked" in passed.stdout
    write(tmp_path, "bfcl_decode.jsonl", good, decoder_row("[f(a=1)]", [{"f": {"a": "marked"}}]))
    failed = ran("--show", "1")
    assert failed.returncode == 1
    assert '"marked"' in failed.stdout
