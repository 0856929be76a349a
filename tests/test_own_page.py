"""docs/own.md as a user follows it: its commands one after the other, its tables row by row."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustbench_tc.eval.score import matchers
from robustbench_tc.own import cases_file, yaml
from robustbench_tc.own.desk import desk

from .commands import shell
from .conftest import ROOT, Rbtc
from .refusals import refuses
from .trees import write

PAGE = (ROOT / "docs" / "own.md").read_text("utf-8")
CASES = "version: 1\ntools: [orders.json, crm.json]\ncases:\n- "
IMAGE = 150_000
"""Bytes of an image."""

WRONG = [
    (
        "{id: a, request: Hi, expect: [{call: find}]}",
        "'find' is a tool of 2 files; write orders:find or crm:find",
    ),
    ("{id: a, request: Hi, expect: [{call: get_ordre}]}", "unknown tool 'get_ordre': did you mean get_order"),
    ("{id: a, request: Hi, expect: [{call: get_order}]}", "'order_id' is required by the tool and missing"),
    (
        '{id: a, request: Hi, expect: [{call: get_order, arguments: {order_id: "1042"}}]}',
        "'order_id' is of type string, the tool wants integer",
    ),
    (
        "{id: a, request: Hi, expect: [{call: cancel_order, arguments: {order_id: 1, reason: broken}}]}",
        "'reason' is 'broken', the tool allows: changed_mind",
    ),
    ("{id: a, request: Hi, expected: no_call}", "unknown key 'expected' of a case: did you mean expect?"),
    ("{id: a, request: Hi}", "a case has either 'expect' or 'any_of'"),
    ("{id: a, request: Hi, expect: nothing}", "an answer is a list of calls"),
    (
        "{id: a, request: Hi, expect: no_call, extra: true}",
        "'extra' can only be allow; leave it out otherwise",
    ),
    ("{id: a b, request: Hi, expect: no_call}", "an id is up to 64 letters, digits and -_."),
    (
        "{id: a, request: Hi, expect: [{call: get_order, arguments: {order_id: {number: many}}}]}",
        "'order_id': number must be a number",
    ),
    (
        "{id: a, request: Hi, expect: [{call: reschedule_delivery, "
        "arguments: {order_id: 1, date: {date: tomorrow}}}]}",
        "date must be an ISO date such as 2026-11-21",
    ),
    (
        "{id: a, messages: [{role: assistant, content: Hi}], expect: no_call}",
        "messages end with the user's message",
    ),
    (
        "{id: a, turns: [{request: Hi, expect: no_call}], expect: no_call}",
        "'expect' belongs into the turns of this case",
    ),
]
"""A case, and why it is refused."""


def blocks(language: str) -> list[str]:
    every = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [text for name, text in every if name == language]


def table(heading: str) -> Iterator[list[str]]:
    """The cells of a table's rows, by the beginning of its heading."""
    lines = iter(PAGE[PAGE.index(f"\n| {heading} |") + 1 :].splitlines())
    next(lines), next(lines)
    for line in lines:
        if not line.startswith("| "):
            return
        yield [cell.strip() for cell in line.strip("| ").split(" | ")]


def listed(text: str) -> set[str]:
    """The keys that a list explains."""
    return set(re.findall(r"^- `(\w+)`:", text, re.MULTILINE))


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_command_does_what_the_page_says(
    rbtc: Rbtc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = dict[str, str]()
    for line in "".join(blocks("sh")).splitlines():
        command, _, comment = (part.strip() for part in line.partition(" #"))
        if command.startswith("cd "):
            monkeypatch.chdir(command.removeprefix("cd "))
        elif "--callable" in command:  # the desk's `agent` stays out of this process
            printed[command] = shell(Path.cwd(), command)
        else:
            done = rbtc(*shlex.split(command)[1:])
            assert done.code == int(comment.removeprefix("exit code ") if "exit code" in comment else 0), done
            printed[command] = done.out
    assert len(printed) >= 10
    assert (Path.cwd() / "report" / "report.html").is_file()
    (shown,) = blocks("")
    summary = printed["rbtc eval bench --agent name-biased --out run"]
    assert shown in summary
    (samples, rows) = re.search(r"(\d+) samples, (\d+) rows", summary).groups()  # type: ignore[union-attr]
    assert f"{samples} clean rows" in PAGE and f"{int(rows) - int(samples)} perturbed ones" in PAGE
    assert "failed: reward: lost 65" in printed["rbtc gate run"]
    assert "3 of 30 cases were right before" in printed["rbtc gate runs/mine --against baseline/"]
    assert "right on 13 of the 37 requests" in PAGE
    mine = printed["rbtc eval bench --callable agent:answer --out runs/mine"]
    assert re.search(rf"^clean +{100 * 13 / 37:.1f}$", mine, re.MULTILINE)


def test_the_first_case_is_the_example_of_the_desk() -> None:
    assert blocks("yaml")[0] in desk()["cases.yaml"].decode()


def test_the_whole_cases_file_can_be_read(tmp_path: Path) -> None:
    write(tmp_path, {**desk(), "cases.yaml": blocks("yaml")[1]})
    assert len(cases_file.read_cases(tmp_path / "cases.yaml").cases) == 5


def test_matchers_accept_and_refuse_what_the_table_says() -> None:
    seen = set()
    for matcher, accepted, refused in table("matcher"):
        (text,) = quoted(matcher)
        expected = yaml.load(text.encode(), "the page").data()
        assert matchers.problem(expected) is None
        seen.add(matchers.kind(expected))
        for right, cell in ((True, accepted), (False, refused)):
            assert quoted(cell)
            for value in map(json.loads, quoted(cell)):
                assert matchers.matches(value, expected, {}) is right, (text, value)
    assert seen == matchers.MATCHERS


@pytest.mark.parametrize(("case", "said"), WRONG)
def test_a_wrong_case_is_refused_with_its_line_and_the_reason(tmp_path: Path, case: str, said: str) -> None:
    write(tmp_path, desk())
    path = tmp_path / "cases.yaml"
    path.write_text(CASES + case + "\n")
    error = refuses(".", cases_file.read_cases, path)
    assert error.startswith(f"{path}:4: ")
    assert said in error


def test_every_key_of_a_cases_file_is_listed() -> None:
    of_the_file, of_a_case = PAGE.partition("Keys of the file:")[2].partition("Keys of a case:")[::2]
    assert listed(of_the_file) == set(cases_file.TOP)
    assert listed(of_a_case.partition("A call is")[0]) == {"id", "turns", *cases_file.TURN}


def test_the_images_are_there_and_small() -> None:
    named = re.findall(r"!\[[^\]]+\]\(images/([\w-]+\.png)\)", PAGE)
    assert sorted(named) == sorted(path.name for path in (ROOT / "docs" / "images").glob("own-*"))
    for name in named:
        data = (ROOT / "docs" / "images" / name).read_bytes()
        assert data.startswith(b"\x89PNG") and len(data) <= IMAGE
