"""The process that has our rows, spoken to in lines: what the tasksets of verifiers rest on."""

import asyncio
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api.building import build_live
from robustbench_tc.eval.adapters.serve import LINE, Service
from tests.eval import small

from .episodes import Reply, completion, drawn
from .played import VERIFIERS

spec = importlib.util.spec_from_file_location("rbtc_process", VERIFIERS / "rbtc_process.py")
assert spec is not None and spec.loader is not None
rbtc_process = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rbtc_process)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live") / "robustbench-tc-live"
    build_live(out=folder, worlds=("orders",), kinds=("silent_no_op",))
    return folder


def asked(*lines: Any) -> list[dict[str, Any]]:
    """The answers of one service to these requests, one after the other."""

    async def run() -> list[dict[str, Any]]:
        service = Service()
        try:
            return [
                await service.answer(line if isinstance(line, bytes) else json.dumps(line).encode())
                for line in lines
            ]
        finally:
            await service.close()

    return asyncio.run(run())


def opened(dataset: Path, kind: str = "live", **settings: Any) -> dict[str, Any]:
    return {"id": 0, "do": "open", "kind": kind, "settings": {"dataset": str(dataset), **settings}}


def test_gold_earns_one_and_an_episode_goes_on_until_it_ends(dataset: Path) -> None:
    begin = {"id": 2, "do": "begin", "row": "orders_1::clean"}
    say = {"do": "reply", "dialogue": 1, "completion": completion(Reply("Done."), 1)}
    first, gold, begun, *said, end = asked(
        opened(dataset, ids="orders_1"),
        {"id": 1, "do": "gold", "row": "orders_1::live_silent_no_op"},
        begin,
        *[say] * 6,
        {"do": "end", "dialogue": 1},
    )
    assert {row["type"] for row in first["rows"]} == {"clean", "live_silent_no_op"}
    assert gold["score"]["reward"] == 1.0
    assert begun["ask"]["tools"] and begun["ask"]["messages"][0]["role"] == "user"
    ended = [one["ask"] is None for one in said if "ask" in one]
    assert ended[-1] and not any(ended[:-1])
    assert {one["error"] for one in said if "error" in one} == {"this dialogue has ended"}
    assert end["score"]["reward"] == 0.0 and end["score"]["record"]["silent_failure"] is True


def test_an_episode_that_is_cut_off_at_once_earns_nothing(dataset: Path) -> None:
    """Every task of the world changes it, so a world in which nothing was done is wrong."""
    [first] = asked(opened(dataset))
    requests = [
        line
        for number, row in enumerate(first["rows"], 1)
        for line in ({"do": "begin", "row": row["id"]}, {"do": "end", "dialogue": number})
    ]
    scores = [one["score"] for one in asked(opened(dataset), *requests)[2::2]]
    assert len(scores) == len(first["rows"]) and {one["reward"] for one in scores} == {0.0}
    assert {one["record"]["steps"] for one in scores} == {0}


def test_every_static_row_has_gold_that_earns_one(tmp_path: Path) -> None:
    release = small.write(tmp_path / "release", small.rows())
    for mode in ("prompt", "fc"):
        first, *gold = asked(
            opened(release, "static", mode=mode),
            *({"do": "gold", "row": row.id} for row in small.rows()),
        )
        assert len(first["rows"]) == len(gold) and {one["score"]["reward"] for one in gold} == {1.0}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "not a request: "),
        (b"[]", "a request is a JSON object"),
        ({"do": "stop"}, "unknown request 'stop'"),
        ({"do": "begin", "row": "x"}, "no rows were opened"),
        ({"do": "begin", "rows": "x"}, "not a request: "),
        ({"do": "end", "dialogue": 7}, "not a request: "),
        ({"do": "open", "kind": "dead", "settings": {}}, "unknown kind of rows 'dead'"),
        ({"do": "open", "kind": "live", "settings": {"dataset": "nowhere"}}, "nowhere"),
        ({"do": "open", "kind": "static", "settings": {"sorces": ""}}, "unknown setting 'sorces'"),
    ],
)
def test_what_is_wrong_with_a_request_is_one_line(line: Any, said: str) -> None:
    [found] = asked(line)
    assert said in found["error"] and "\n" not in found["error"]


def test_the_process_ends_with_its_input(dataset: Path) -> None:
    lines = [opened(dataset), {"id": 1, "do": "begin", "row": "nothing"}]
    done = subprocess.run(
        [sys.executable, "-m", "robustbench_tc.eval.adapters.serve"],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and done.stderr == ""
    assert len(said[0]["rows"]) > 30


def test_random_episodes_are_drawn_from_the_seed_alone(dataset: Path) -> None:
    from robustbench_tc.eval.live import inputs

    rows = inputs.load(str(dataset)).rows
    one, again, other = drawn(rows, 70), drawn(rows, 70), drawn(rows, 70, seed=1)
    assert one == again != other and len(one) == 70
    assert [played.row for played in one[: len(rows)]] == [row.id for row in rows]


def test_a_line_over_the_bound_ends_the_process_with_one_line() -> None:
    words = [sys.executable, "-m", "robustbench_tc.eval.adapters.serve"]
    lines = b'{"id": 1, "do": "stop"}\n' + b"x" * (LINE + 2**20) + b"\n"
    done = subprocess.run(words, input=lines, capture_output=True, timeout=120)
    assert done.returncode == 1 and json.loads(done.stdout)["id"] == 1
    assert done.stderr.decode() == (
        "a request has more than 67,108,864 bytes: nothing after it can be read\n"
    )
    with Path(__file__).open("rb") as file:
        done = subprocess.run(words, stdin=file, capture_output=True, timeout=120)
    assert done.returncode == 1 and done.stderr == b"requests are read from a pipe, not from a file\n"


@pytest.mark.parametrize(
    ("python", "settings", "said"),
    [
        (sys.executable, {"dataset": "nowhere"}, "nowhere"),
        (sys.executable, {"types": "silent_op"}, "unknown type in this dataset 'silent_op'"),
        ("/nowhere/python", {}, "/nowhere/python: No such file or directory"),
        ("/bin/false", {}, "/bin/false has ended; it needs robustbench-tc in it"),
    ],
)
def test_what_is_wrong_ends_the_harness_with_one_line(
    python: str, settings: dict[str, Any], said: str, dataset: Path
) -> None:
    """As verifiers meets it: the side of the pipe that imports nothing of ours."""
    with pytest.raises(SystemExit) as ended:
        rbtc_process.Core.of(python, "live", {"dataset": str(dataset), **settings})
    assert said in str(ended.value) and "\n" not in str(ended.value)


def test_an_end_that_reader_and_sender_both_see_is_said_once(dataset: Path) -> None:
    core = rbtc_process.Core.of(sys.executable, "live", {"dataset": str(dataset), "ids": "orders_2"})

    class Pipe:
        def write(self, line: bytes) -> None:
            core._process.kill()

        def flush(self) -> None:
            while core._waiting:  # until the reader has seen it
                time.sleep(0.01)
            raise BrokenPipeError

    core._in = Pipe()
    with pytest.raises(RuntimeError, match="has ended"):
        asyncio.run(core.ask("begin", row="orders_2::clean"))


def test_a_reply_over_the_bound_fails_alone(dataset: Path) -> None:
    core = rbtc_process.Core.of(sys.executable, "live", {"dataset": str(dataset), "ids": "orders_1"})
    assert core is rbtc_process.Core.of(sys.executable, "live", {"ids": "orders_1", "dataset": str(dataset)})
    assert core._most == LINE
    core._most = 10_000
    begun = asyncio.run(core.ask("begin", row="orders_1::clean"))
    with pytest.raises(RuntimeError, match=r"a reply of 2.,... bytes: at most 10,000"):
        asyncio.run(core.ask("reply", dialogue=begun["dialogue"], completion="x" * 20_000))
    assert asyncio.run(core.ask("end", dialogue=begun["dialogue"]))["score"]["reward"] == 0.0
    core.close()
    with pytest.raises(RuntimeError, match="has ended"):
        asyncio.run(core.ask("begin", row="orders_1::clean"))
