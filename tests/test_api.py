"""The verbs from Python: docs/api/verbs.md is run as it is printed, and no verb needs the command line."""

import asyncio
import inspect
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import robustbench_tc
from robustbench_tc import api
from robustbench_tc.compute import loop
from robustbench_tc.eval.leaderboard.submit import init
from robustbench_tc.eval.run import Progress
from robustbench_tc.eval.stats.screen import Screen

from .conftest import ROOT
from .loopback import LoopbackServer, reply

BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "api" / "verbs.md").read_text("utf-8"), re.DOTALL
)

VERBS = ("build", "audit", "release", "publish", "evaluate", "score", "report", "compare", "serve", "submit")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("api")


@pytest.fixture(scope="module")
def answers(place: Path) -> Iterator[dict[str, Any]]:
    """The names that the page's first block makes."""
    made: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        exec(BLOCKS[0], made)
        yield made


def test_every_verb_is_there_with_types_and_a_docstring() -> None:
    assert set(VERBS) <= set(api.__all__)
    for name in VERBS:
        verb = getattr(api, name)
        assert "Raises UserError" in " ".join((verb.__doc__ or "").split()), name
        hinted = set(verb.__annotations__) - {"return"}
        assert hinted == set(inspect.signature(verb).parameters), name


def test_every_name_of_the_api_is_there() -> None:
    assert [name for name in api.__all__ if getattr(api, name).__name__ != name] == []
    assert set(api.__all__) <= set(dir(api))
    with pytest.raises(AttributeError, match="has no attribute 'perturb'"):
        api.perturb  # noqa: B018


def test_the_page_builds_evaluates_scores_compares_and_reports(place: Path, answers: dict[str, Any]) -> None:
    built, good, biased = answers["built"], answers["good"], answers["biased"]
    assert built.total == good.answered == good.asked.total > biased.answered > 0
    assert good.unexpected == biased.unexpected == []
    assert answers["found"].overall["clean"].n == 73
    assert answers["found"].deltas["reward"].difference.value < 0
    for name in ("html", "md", "csv", "json"):
        assert (place / "report" / f"report.{name}").stat().st_size > 0
    assert {model.label for model in answers["page"].models} == {"agent-oracle", "agent-name-biased"}


def test_the_page_audits_and_releases(place: Path, answers: dict[str, Any]) -> None:
    pytest.importorskip("great_expectations", reason="needs the extra audit (make env)")
    exec(BLOCKS[1], answers)
    assert answers["verdict"].checks and answers["verdict"].report.kind == "benchmark"
    assert (place / "releases/1.0.0/robustbench-tc/manifest.json").is_file()
    with pytest.raises(api.UserError, match="starter samples, which are never published"):
        api.publish("releases/1.0.0/robustbench-tc", "acme/robustbench-tc", dry_run=True)


def test_an_endpoint_is_evaluated_with_progress_and_gone_on_with(
    place: Path, answers: dict[str, Any]
) -> None:
    begun: list[api.Evaluated] = []
    states: list[int] = []

    def progress(state: Progress) -> None:
        states.append(state.done)

    with LoopbackServer(lambda body: reply("[ping(a=1)]")) as server:

        def ask() -> api.Evaluated:
            return api.evaluate(
                place / "robustbench-tc",
                model="tiny",
                base_url=server.url,
                types="CD,transition",
                ids=(),
                limit=9,
                out=place / "tiny",
                started=begun.append,
                progress=progress,
            )

        first = ask()
        count = server.count
        assert ask().answered == first.answered == 9
        assert server.count == count
    assert [run.folder.path for run in begun] == [place / "tiny"] * 2
    assert states[0] == 0 and states[9] == 9 and sorted(states[:10]) == states[:10]
    beside = api.compare(place / "tiny", "paper:o4-mini")
    assert {line.name for line in beside.paper} > {"CD"}
    assert api.score(place / "tiny").folder.scores_path.is_file()


def test_in_a_notebook_it_is_asked_beside_the_running_loop(place: Path, answers: dict[str, Any]) -> None:
    async def cell() -> api.Evaluated:
        dataset, out = place / "robustbench-tc", place / "notebook"
        return robustbench_tc.evaluate(dataset, agent="oracle", types="clean", limit=3, out=out)

    run = asyncio.run(cell())
    assert (run.answered, run.scores.num_rows) == (3, 3)
    assert run.sql("select count(*) as n from stg_predictions").to_pylist() == [{"n": 3}]
    assert str(run).startswith("agent-oracle") and "Cannot tell" in run._repr_html_()
    assert isinstance(run.summary, Screen)
    assert run.summary.overview.answer.sentence in str(run)


def test_what_is_interrupted_in_a_notebook_ends_there_too() -> None:
    """Ctrl-C reaches the cell's thread; the work beside it is cancelled, not left behind."""
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.to_thread(os.kill, os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            ended.append("closed")

    async def cell() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop.run(work())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    assert ended == ["closed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeat": 0}, "repeat 0: give 1 or more"),
        ({"temperature": float("nan")}, "temperature nan: give 0 or more"),
        ({"concurrency": 0}, "concurrency 0: give 1 or more"),
        ({"backend": "vlm"}, "did you mean vllm"),
        ({"mode": "chat"}, "mode 'chat': prompt or fc"),
        ({"types": "CDD"}, "did you mean CD"),
        ({"agent": "oracle", "base_url": "http://127.0.0.1:9/v1"}, "answers in this process"),
        ({"agent": None}, "no model"),
    ],
)
def test_a_wrong_option_is_refused_before_a_folder_is_made(
    options: dict[str, Any], message: str, place: Path, answers: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {"agent": "oracle", "out": place / "never"} | options
    with pytest.raises(api.UserError, match=message):
        api.evaluate(place / "robustbench-tc", **asked)
    assert not (place / "never").exists()


def test_a_wrong_profile_is_refused_and_nothing_is_built(tmp_path: Path) -> None:
    wrong: Any = "papre"
    with pytest.raises(api.UserError, match="did you mean paper"):
        api.build(tmp_path / "out", profile=wrong)
    assert not (tmp_path / "out").exists()


def test_the_leaderboard_is_served_and_stopped(place: Path, answers: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("gradio", reason="needs the extra leaderboard (make env-leaderboard)")
    init(str(tmp_path / "results"), str(place / "robustbench-tc"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = f"import sys; from robustbench_tc import api; api.serve(sys.argv[1], port={port})"
    words = [sys.executable, "-c", code, str(tmp_path / "results")]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert any("running on" in line for line in server.stderr)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/submit/", timeout=60) as page:
            assert b"Submit a run" in page.read()
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


def test_what_cannot_be_served_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(api.UserError, match="nowhere"):
        api.serve(tmp_path / "nowhere")
