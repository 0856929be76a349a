"""A reference agent handed in as a user's own has the verdicts that it has over HTTP, however it answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api import Reply, Task, evaluate
from robustbench_tc.eval import agents, inputs
from robustbench_tc.eval.prompts.calls import python_calls
from robustbench_tc.eval.wire import WireNames
from robustbench_tc.io import parquet
from robustbench_tc.schema import Call, Sample
from tests.agent_server import Index

from .. import small

TEXTS = {row.injected_error for row in small.rows() if row.injected_error is not None}
"""What calls are answered with that meet an error."""

Answers = Callable[[Task], tuple[tuple[Call, ...] | str, Sample]]


def answers(release: Path, name: str) -> Answers:
    """What the reference agent `name` says to a task, found by its messages and tools."""
    index = Index(inputs.load_samples(str(release)).rows)

    def said(task: Task) -> tuple[tuple[Call, ...] | str, Sample]:
        found = index.find(task.messages, task.tools or None)
        assert found is not None, "the task is not the request that the row makes"
        return agents.reply(name, found[1]), found[1].row

    return said


def verdicts(folder: Path) -> dict[str, tuple[bool, str]]:
    rows = parquet.read_rows([folder / "scores.parquet"], ["id", "correct", "stage_detail"])
    return {row["id"]: (row["correct"], row["stage_detail"]) for row in rows}


def returning(said: Answers) -> Callable[[Task], Any]:
    def answer(task: Task) -> Any:
        found, row = said(task)
        if isinstance(found, str):
            return found
        names = WireNames(row.tools)
        return Reply(calls=[(names.wire(call.name), call.parameters) for call in found])

    return answer


def writing(said: Answers) -> Callable[[Task], str]:
    """Writes its calls into its text."""

    def answer(task: Task) -> str:
        found, _ = said(task)
        return found if isinstance(found, str) else python_calls(found)

    return answer


def calling(said: Answers) -> Callable[[Task], Any]:
    """Makes every call itself, and looks at the task again once the first call was answered."""
    returned = returning(said)

    def answer(task: Task) -> Any:
        for _ in range(4):
            found = returned(task)
            if isinstance(found, str):
                return found
            results = (task.call(*call) for call in found.calls)
            error = next((result for result in results if result in TEXTS), None)
            if error is None:
                return "Done."
            function = {"name": found.calls[0][0], "arguments": "{}"}
            call = {"id": "call_0", "type": "function", "function": function}
            task.messages = [
                *task.messages,
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_0", "content": error},
            ]
        return "Enough."

    return answer


RETURNED = ["oracle", "name-biased", "gives-up-on-error", "calls-everything", "rambler"]


@pytest.mark.parametrize("name", RETURNED)
def test_returned_calls_have_the_verdicts_of_calls_over_http(
    release: Path, tmp_path: Path, name: str
) -> None:
    evaluate(release, agent=name, mode="fc", out=tmp_path / "http")
    evaluate(release, callable=returning(answers(release, name)), out=tmp_path / "own")
    assert verdicts(tmp_path / "own") == verdicts(tmp_path / "http")


@pytest.mark.parametrize("name", RETURNED)
def test_a_text_is_read_for_calls_in_prompt_mode(release: Path, tmp_path: Path, name: str) -> None:
    agent = writing(answers(release, name))
    evaluate(release, agent=name, mode="prompt", out=tmp_path / "http")
    evaluate(release, callable=agent, mode="prompt", out=tmp_path / "own")
    assert verdicts(tmp_path / "own") == verdicts(tmp_path / "http")


def test_a_text_is_not_read_for_calls_where_calls_are_returned(release: Path, tmp_path: Path) -> None:
    run = evaluate(release, callable=writing(answers(release, "oracle")), out=tmp_path / "own")
    columns = ["correct", "calls", "stage_detail", "raw_output"]
    rows = list(parquet.read_rows([run.folder.scores_path], columns))
    assert all(row["calls"] in (None, "[]") for row in rows)
    written = {(row["correct"], row["stage_detail"]) for row in rows if "(" in row["raw_output"]}
    assert written == {(False, "no_call")}


@pytest.mark.parametrize("name", ["oracle", "name-biased", "gives-up-on-error"])
def test_calls_that_are_made_have_the_verdicts_of_calls_over_http(
    release: Path, tmp_path: Path, name: str
) -> None:
    # Not the stages: who stops at the first error has made one call, where a reply over HTTP holds all.
    evaluate(release, agent=name, mode="fc", out=tmp_path / "http")
    evaluate(release, callable=calling(answers(release, name)), out=tmp_path / "own")
    right = {row: correct for row, (correct, _) in verdicts(tmp_path / "http").items()}
    assert {row: correct for row, (correct, _) in verdicts(tmp_path / "own").items()} == right
