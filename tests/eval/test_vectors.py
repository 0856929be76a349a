"""The oracle vectors hold, and the check of them can fail."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from robustbench_tc.cli import vectors as verb
from robustbench_tc.errors import UserError
from robustbench_tc.eval.vectors import CHECKS, CLASSES, FileResult, kind_of, run_vectors

Row = dict[str, Any]


@pytest.fixture(scope="session")
def results(shared: Path) -> dict[str, FileResult]:
    return {result.name: result for result in run_vectors(shared / "vectors")}


def test_no_row_of_the_shared_vectors_disagrees_in_an_unlisted_way(results: dict[str, FileResult]) -> None:
    assert {name: result.unlisted for name, result in results.items() if result.unlisted} == {}


def test_every_row_is_counted_once(results: dict[str, FileResult], shared: Path) -> None:
    for name, result in results.items():
        registry = result.replies is not None  # the first line of a file of replies
        assert result.rows == len((shared / "vectors" / name).read_text().splitlines()) - registry
        parts = (result.agreed, *result.listed.values(), result.not_checked, len(result.unlisted))
        assert result.rows == sum(parts)


def test_the_page_shows_what_every_style_of_the_replies_measures(results: dict[str, FileResult]) -> None:
    found = results["replies.jsonl"].replies
    assert found is not None and found.passed
    lines = {
        f"| {one.style} | {one.replies} | {one.right} of {one.readings} | {one.share:.3f} |"
        for one in found.styles
    }
    page = (Path(__file__).resolve().parents[2] / "docs" / "calls.md").read_text("utf-8").splitlines()
    assert lines == {line for line in page if re.match(r"\| \w+ \| \d+ \| \d+ of", line)}


@pytest.mark.parametrize("name", ["bfcl_nonlive.jsonl", "bfcl_live.jsonl"])
def test_bfcl_python_rows_all_agree(results: dict[str, FileResult], name: str) -> None:
    assert set(results[name].listed) <= {"upstream_crash"}


def test_java_and_a_reward_without_its_checker_are_not_checked(results: dict[str, FileResult]) -> None:
    for name in ("bfcl_java_js.jsonl", "toolrl_reward.jsonl"):
        assert results[name].not_checked == results[name].rows


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
    for row in rows(shared / "vectors" / "bfcl_nonlive.jsonl"):
        if "parallel" in row["category"] or row["upstream_error_type"] is None:
            continue
        checker, _, detail = row["upstream_error_type"].partition(":")
        assert bfcl_reason(row) in same[detail if checker.endswith("_checker") else checker]
        checked += 1
    assert checked > 100


def bfcl_reason(row: Row) -> str | None:
    from robustbench_tc.eval.score import score
    from robustbench_tc.json_schema import normalise
    from robustbench_tc.schema import Call, Tool

    def named(name: str) -> str:
        return name.replace(".", "_") if row["underscore_to_dot"] else name

    found = score(
        [Call(item["name"], item["parameters"]) for item in row["prediction"]],
        source="bfcl_v3",
        category=row["category"],
        golden_answers=(tuple(Call(named(k), v) for g in row["ground_truth"] for k, v in g.items()),),
        tools=[Tool(named(t["name"]), "", normalise(t["parameters"])) for t in row["tools"]],
    )
    return found.reason


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


def rows(path: Path) -> Iterator[Row]:
    for line in path.read_bytes().splitlines():
        yield msgspec.json.decode(line)


def flipped(row: Row) -> Row:
    return {**row, "upstream_valid": not row["upstream_valid"], "upstream_exception": None}


@pytest.mark.parametrize("name", ["bfcl_nonlive", "bfcl_live"])
def test_a_flipped_bfcl_verdict_is_unlisted(shared: Path, name: str) -> None:
    for row in list(rows(shared / "vectors" / f"{name}.jsonl"))[:300]:
        assert CHECKS["bfcl"](flipped(row)) == "unlisted"


def test_a_flipped_verdict_outside_every_class_is_unlisted(shared: Path) -> None:
    plain = {"canonical", "param_order", "name_case", "wrong_name", "missing_param", "empty_prediction"}
    for name, kind in (("apibank_toolrl", "apibank_toolrl"), ("rotbench", "rotbench")):
        outcomes = [
            CHECKS[kind](flipped(row))
            for row in rows(shared / "vectors" / f"{name}.jsonl")
            if row["mutation"] in plain and not (kind == "rotbench" and "Input: {}" in row["ground_truth"][0])
        ]
        assert len(outcomes) > 50
        # A golden list in text is compared as 4.3 says, whatever upstream said.
        assert set(outcomes) <= {"unlisted", "python_list"}
        assert outcomes.count("unlisted") > 0.9 * len(outcomes)


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


@pytest.mark.parametrize(
    ("text", "decoded", "outcome"),
    [
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
    ],
)
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
    check: Callable[[Row], str] = lambda row: says[row["n"]]  # noqa: E731
    (result,) = run_vectors(tmp_path, {"toolrl_reward": check})
    assert (result.agreed, result.listed, len(result.unlisted)) == (1, {"upstream_crash": 1}, 2)


def test_a_checker_that_raises_is_a_defect_of_that_row(tmp_path: Path) -> None:
    write(tmp_path, "bfcl_live.jsonl", {"source": "bfcl", "language": "python"})
    (result,) = run_vectors(tmp_path)
    assert result.unlisted[0]["error"].startswith("KeyError")


@pytest.mark.parametrize(
    ("content", "message"), [(b'{"source": ', "1: not JSON"), (b"[1]\n", "is a JSON object")]
)
def test_a_file_that_is_no_vector_file_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(UserError, match=message):
        run_vectors(tmp_path)


def test_a_folder_without_vectors_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no \*\.jsonl files there"):
        run_vectors(tmp_path / "nowhere")


app = typer.Typer()
app.command()(verb.vectors)


def test_the_verb_prints_each_file_and_fails_on_an_unlisted_row(tmp_path: Path) -> None:
    good = decoder_row("[f(a=1)]", [{"f": {"a": 1}}])
    write(tmp_path, "bfcl_decode.jsonl", good)
    write(tmp_path, "bfcl_java_js.jsonl", {"source": "bfcl", "language": "java"})
    ran = CliRunner().invoke(app, [str(tmp_path)])
    assert ran.exit_code == 0
    assert "not checked" in ran.output
    write(tmp_path, "bfcl_decode.jsonl", good, decoder_row("[f(a=1)]", [{"f": {"a": "marked"}}]))
    ran = CliRunner().invoke(app, [str(tmp_path), "--show", "1"])
    assert ran.exit_code == 1
    assert '"marked"' in ran.output
    ran = CliRunner().invoke(app, [str(tmp_path), "--json"])
    assert {f["name"]: len(f["unlisted"]) for f in msgspec.json.decode(ran.stdout)} == {
        "bfcl_decode.jsonl": 1,
        "bfcl_java_js.jsonl": 0,
    }
