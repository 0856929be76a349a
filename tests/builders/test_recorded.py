"""What ships with the package answers what was recorded, letter by letter, and holds no upstream query."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.builders.generators.recorded import (
    HAND_WRITTEN,
    SHIPPED,
    from_path,
    judgment_address,
    load_judgments,
    load_served,
    shipped,
)
from robustbench_tc.builders.perturb import TextRequest
from robustbench_tc.schema import tool_hash

from ..refusals import refuses

PASS = "Is the pass open?"
TOLL = {
    "name": "pass.toll",
    "description": "The toll of a pass.",
    "parameters": {"type": "object", "properties": {}, "required": []},
}


def line(kind: str, text: str, output: Any, **key: str) -> dict[str, Any]:
    return {"kind": kind, **key, "input": text, "output": output}


LINES: list[dict[str, Any]] = [
    line("realistic_typos", PASS, "Is teh pass open?", clean_id="a"),
    line("realistic_typos", PASS, "Is the pass opne?", clean_id="b"),
    line("query_paraphrase", PASS, "Can I cross the pass?", clean_id="a"),
    line("paraphrase_tool_description", "State of a pass.", "Tells the state of a pass.", tool="pass.state"),
    line("paraphrase_parameter_description", "The pass.", "Which pass.", tool="pass.state", parameter="name"),
    line("redundant", "State of a pass.", [TOLL], source="s", tool="pass.state", clean_id="a"),
]
LOST = line("redundant", "State of a pass.", [TOLL], source="s", tool="pass.state")
"""New tools that say no sample."""


def request(line: dict[str, Any]) -> TextRequest:
    return TextRequest(
        kind=line["kind"],
        input=line["input"],
        tool=line.get("tool"),
        parameter=line.get("parameter"),
        sample=line.get("clean_id") if line["kind"] == "redundant" else None,
    )


def write(
    folder: Path,
    lines: list[dict[str, Any]] = LINES,
    serving: Iterable[tuple[str, dict[str, Any], bool]] = (),
) -> Path:
    """A folder of answers and judgments. `serving`: sample, tool, if it could serve."""
    judged = [{**line, "score": 4, "reason": "vague"} for line in lines if line["kind"] != "redundant"]
    files = {"generations": lines, "judgments": judged}
    if serving:
        files["redundant_judgments"] = [
            {"clean_id": i, "tool": t["name"], "description": t["description"], "serves": s}
            | {"reason": "why" if s else ""}
            for i, t, s in serving
        ]
    for name, found in files.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found))
    return folder


def jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_folder_and_its_file_answer_alike(tmp_path: Path) -> None:
    folder = write(tmp_path)
    for path in (folder, folder / "generations.jsonl"):
        (book,) = from_path(path)
        for line in LINES:
            assert line["output"] in list(book.answers(request(line)))


def test_whether_a_new_tool_serves_is_kept_for_the_sample_and_what_the_tool_does(tmp_path: Path) -> None:
    name, description = str(TOLL["name"]), str(TOLL["description"])
    folder = write(tmp_path, serving=[("a", TOLL, True), ("b", TOLL, False)])
    found = load_served(folder)
    assert {served.reason for served in found.values()} == {"why", ""}
    assert found[tool_hash("a", name, description)].serves
    assert not found[tool_hash("b", name, description)].serves
    for said in ("the toll of a pass.", "The toll of a pass", "The toll of  a pass."):
        assert said == description or tool_hash("b", name, said) not in found
    assert tool_hash("a", name, "The toll of two passes.") not in found
    assert tool_hash("c", name, description) not in found
    assert load_served(folder / "generations.jsonl") == {}


def test_a_judgment_of_a_tool_that_nobody_wrote_is_named(tmp_path: Path) -> None:
    write(tmp_path, serving=[("a", TOLL, False)])
    with (tmp_path / "redundant_judgments.jsonl").open("a") as file:
        file.write('{"clean_id": "a", "tool": "x", "description": "y", "serves": false, "reason": ""}')
    refuses(r"line 2: no answer in generations\.jsonl wrote tool 'x'", load_served, tmp_path)


def test_new_tools_are_for_the_samples_that_their_judgments_name(tmp_path: Path) -> None:
    other = {**TOLL, "name": "pass.height", "description": "How high a pass is."}
    lost = {**LOST, "output": [TOLL, other]}
    (book,) = from_path(write(tmp_path, [lost], [("a", TOLL, True), ("b", TOLL, False)]))
    given = {s: list(book.answers(request({**lost, "clean_id": s}))) for s in ("a", "b", "c")}
    assert given == {"a": [[other]], "b": [[TOLL, other]], "c": []}


def test_new_tools_for_no_sample_are_refused(tmp_path: Path) -> None:
    write(tmp_path, [LOST])
    refuses(r"'pass\.state' are for no sample: give their lines a `clean_id`", from_path, tmp_path)


def test_white_space_and_a_full_stop_do_not_matter(tmp_path: Path) -> None:
    (book,) = from_path(write(tmp_path))
    odd = TextRequest(kind="paraphrase_tool_description", tool="pass.state", input=" State\n of a  pass ")
    assert list(book.answers(odd)) == ["Tells the state of a pass."]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ('{"kind": "query_paraphrase", "input": "a"}', r"line 2: .*output"),
        (
            '{"kind": "query_parafrase", "input": "a", "output": "b"}',
            "line 2: .*did you mean query_paraphrase",
        ),
        ('{"kind": "query_para', "line 2: "),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, broken: str, said: str) -> None:
    path = tmp_path / "generations.jsonl"
    path.write_text(json.dumps(LINES[0]) + "\n" + broken + "\n")
    refuses(said, from_path, path)


def test_the_starter_samples_texts_ship_with_their_label() -> None:
    assert [book.label for book in shipped(bundled=True)] == ["hand-written", "recorded"]
    assert [book.label for book in shipped()] == ["recorded", "hand-written"]


# --- the real ones ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(shared: Path) -> list[dict[str, Any]]:
    return jsonl(shared / "recorded" / "generations.jsonl")


def test_every_recorded_answer_ships_and_comes_back_exactly(real: list[dict[str, Any]]) -> None:
    book = next(book for book in shipped() if book.label == "recorded")
    for line in real:
        assert line["output"] in list(book.answers(asked(line)))
    first: dict[str, Any] = {}
    for line in real:
        first.setdefault(request(line).key, line)
    for line in first.values():
        assert next(book.answers(asked(line))) == line["output"]


def asked(line: dict[str, Any]) -> TextRequest:
    """The request as a build makes it: new tools for some sample of the 199."""
    known = "bfcl_v3__BFCL_v3_multiple__multiple_110"
    return request({**line, "clean_id": known} if line["kind"] == "redundant" else line)


def test_the_one_new_tool_in_doubt_is_not_given_to_its_sample(
    shared: Path, real: list[dict[str, Any]]
) -> None:
    (doubt,) = [one for one in jsonl(shared / "recorded" / "redundant_judgments.jsonl") if one["serves"]]
    book = next(book for book in shipped() if book.label == "recorded")
    (wrote,) = (
        line
        for line in real
        if line["kind"] == "redundant" and doubt["tool"] in [tool["name"] for tool in line["output"]]
    )
    (given,) = book.answers(request({**wrote, "clean_id": doubt["clean_id"]}))
    assert given == [tool for tool in wrote["output"] if tool["name"] != doubt["tool"]]


def test_every_judgment_ships(shared: Path) -> None:
    judgments = load_judgments()
    for folder, judge in ((shared / "recorded", "recorded"), (HAND_WRITTEN, "hand-written")):
        for each in jsonl(folder / "judgments.jsonl"):
            found = judgments[judgment_address(request(each), each["output"])]
            said = found.kind, found.score, found.reason, found.judge
            assert said == (each["kind"], each["score"], each["reason"], judge)


def test_every_judgment_of_a_new_tool_ships(shared: Path) -> None:
    served, lines = load_served(), jsonl(shared / "recorded" / "redundant_judgments.jsonl")
    for each in lines:
        found = served[tool_hash(each["clean_id"], each["tool"], each["description"])]
        assert (found.serves, found.reason, found.judge) == (each["serves"], each["reason"], "recorded")
    assert sum(found.judge == "recorded" for found in served.values()) == len(lines)


def test_no_upstream_query_stands_in_what_ships(real: list[dict[str, Any]]) -> None:
    text = SHIPPED.read_text("utf-8")
    queries = {line["input"] for line in real if line["kind"] in ("realistic_typos", "query_paraphrase")}
    assert len(queries) > 180
    for query in queries:
        assert query not in text and json.dumps(query)[1:-1] not in text
