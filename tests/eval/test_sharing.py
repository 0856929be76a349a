"""At temperature 0 equal requests of a run are asked once; every row has its line."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import api, schema

from ..loopback import SERVER_ERROR, LoopbackServer, reply
from . import small

ROWS = small.rows()


def lines(run: Path) -> list[dict[str, schema.Json]]:
    return [schema.loads(line) for line in (run / "journal.jsonl").read_bytes().splitlines()]


def bodies(server: LoopbackServer) -> Counter[str]:
    return Counter(schema.dumps(body) for body in server.bodies)


@pytest.fixture
def evaluate(release: Path, tmp_path: Path) -> Callable[..., Any]:
    def run(server: LoopbackServer, **options: Any) -> Any:
        given: dict[str, Any] = {"model": "tiny", "base_url": server.url, "out": tmp_path / "run"}
        return api.evaluate(release, **(given | {"probe": False, "max_retries": 0} | options)).folder.record

    return run


def unsteady() -> Callable[[dict[str, Any]], Any]:
    """A server that answers no two requests alike, as real ones may even at temperature 0."""
    number = itertools.count()

    def answer(body: dict[str, Any]) -> Any:
        if body.get("tools"):
            return reply("", [(body["tools"][0]["function"]["name"], f'{{"n": {next(number)}}}')])
        return reply(f"[ping(n={next(number)})]")

    return answer


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_equal_requests_have_one_answer_and_every_row_its_line(
    tmp_path: Path, evaluate: Callable[..., Any], mode: str
) -> None:
    with LoopbackServer(unsteady(), delay_s=0.01) as server:
        record = evaluate(server, mode=mode, price=(1e6, 1e6), max_cost=1e9)
    found = lines(tmp_path / "run")
    assert set(bodies(server).values()) == {1}
    first = [one["id"] for one in found if one["number"] == 1]
    assert sorted(map(str, first)) == sorted(row.id for row in ROWS)
    said: dict[schema.Json, set[str]] = {}
    for one in found:
        said.setdefault(one["request"], set()).add(schema.dumps([one.get("text"), one.get("tool_calls")]))
    assert {len(answers) for answers in said.values()} == {1}
    shared = [one for one in found if one.get("shared")]
    session = record.sessions[-1]
    assert len(shared) == session.shared == len(found) - server.count > 0
    assert session.cost == 15 * server.count  # what is shared costs nothing


@pytest.mark.parametrize("options", [{"share": False}, {"temperature": 0.5}])
def test_nothing_is_shared_where_it_is_not_wanted_or_answers_may_differ(
    tmp_path: Path, evaluate: Callable[..., Any], options: dict[str, Any]
) -> None:
    with LoopbackServer(unsteady()) as server:
        assert evaluate(server, **options).sessions[-1].shared == 0
        assert server.count == len(lines(tmp_path / "run"))


def test_a_repeat_is_asked_for_itself(evaluate: Callable[..., Any]) -> None:
    with LoopbackServer(unsteady()) as server:
        evaluate(server, types="clean,transient_timeout", repeat=3)
    assert set(bodies(server).values()) <= {1, 3} and 3 in bodies(server).values()


def test_a_run_that_was_cut_off_shares_on(tmp_path: Path, evaluate: Callable[..., Any]) -> None:
    with LoopbackServer(unsteady()) as server:
        evaluate(server, concurrency=1)
        whole, journal = server.count, tmp_path / "run" / "journal.jsonl"
        kept = journal.read_bytes().splitlines(keepends=True)
        for left in (1, len(kept) // 3, len(kept) - 1):
            before = sum(not schema.loads(line).get("shared") for line in kept[:left])
            journal.write_bytes(b"".join(kept[:left]))
            asked = server.count
            evaluate(server, concurrency=4)
            assert server.count - asked == whole - before


def test_a_failure_is_not_shared(evaluate: Callable[..., Any]) -> None:
    broken: Iterator[Any] = itertools.chain([SERVER_ERROR], itertools.repeat(reply("[ping()]")))
    with LoopbackServer(lambda body: next(broken)) as server:
        assert evaluate(server, mode="prompt", concurrency=1).totals["status"] == {
            "ok": len(ROWS) - 1, "request_error": 1,
        }  # fmt: skip
        asked = server.count
        assert evaluate(server, mode="prompt").totals["status"] == {"ok": len(ROWS)}
    assert server.count <= asked + 2
