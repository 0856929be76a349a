"""The process that has our rows, spoken to line by line: what the taskset of verifiers rests on."""

import asyncio
import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc.api.building import build_live
from robustbench_tc.eval.adapters.rows import Rows
from robustbench_tc.eval.adapters.serve import Service
from robustbench_tc.eval.inputs import load_live
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


def asked(dataset: Path, *requests: tuple[str, Any], **settings: Any) -> list[Any]:
    """The answers of one service to these requests, one after the other: JSON, or what is wrong."""

    lines = [
        given if isinstance(given, bytes) else json.dumps({"do": name, **given}).encode()
        for name, given in requests
    ]
    out = io.BytesIO()
    asyncio.run(Service(Rows(str(dataset), **settings)).run(io.BytesIO(b"\n".join(lines)), out))
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    return [one.get("wrong", one) for one in answers]


def test_gold_earns_one_and_an_episode_goes_on_until_it_ends(dataset: Path) -> None:
    say = ("reply", {"dialogue": 1, "completion": completion(Reply("Done."), 1)})
    first, gold, begun, *said, end = asked(
        dataset,
        ("rows", {}),
        ("gold", {"row": "orders_1::live_silent_no_op"}),
        ("begin", {"row": "orders_1::clean"}),
        *[say] * 6,
        ("end", {"dialogue": 1}),
        ids="orders_1",
    )
    assert {row["type"] for row in first["rows"]} == {"clean", "live_silent_no_op"}
    assert gold["score"]["reward"] == 1.0
    assert begun["ask"]["tools"] and begun["ask"]["messages"][0]["role"] == "user"
    ended = [one["ask"] is None for one in said if isinstance(one, dict)]
    assert ended[-1] and not any(ended[:-1])
    assert {one for one in said if isinstance(one, str)} == {"this dialogue has ended"}
    assert end["score"]["reward"] == 0.0 and end["score"]["record"]["silent_failure"] is True


def test_an_episode_that_is_cut_off_at_once_earns_nothing(dataset: Path) -> None:
    """Every task of the world changes it, so a world in which nothing was done is wrong."""
    rows = [row.id for row in load_live(str(dataset)).rows]
    requests = [
        one
        for number, row in enumerate(rows, 1)
        for one in (("begin", {"row": row}), ("end", {"dialogue": number}))
    ]
    scores = [one["score"] for one in asked(dataset, *requests)[1::2]]
    assert len(scores) == len(rows) > 30 and {one["reward"] for one in scores} == {0.0}
    assert {one["record"]["steps"] for one in scores} == {0}


def test_every_static_row_has_gold_that_earns_one(tmp_path: Path) -> None:
    release = small.write(tmp_path / "release", small.rows())
    gold = [("gold", {"row": row.id}) for row in small.rows()]
    for mode in ("prompt", "fc"):
        found = asked(release, *gold, mode=mode)
        assert {one["score"]["reward"] for one in found} == {1.0}


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("begin", b"{", "not a request: "),
        ("begin", b"[]", "not a request: "),
        ("stop", {}, "unknown request 'stop'"),
        ("begin", {"row": "x"}, "'x' is not among the rows"),
        ("begin", {"rows": "x"}, "not a request: "),
        ("end", {"dialogue": 7}, "not a request: "),
    ],
)
def test_what_is_wrong_with_a_request_is_one_line(dataset: Path, name: str, given: Any, said: str) -> None:
    [found] = asked(dataset, (name, given))
    assert said in found and "\n" not in found


def test_random_episodes_are_drawn_from_the_seed_alone(dataset: Path) -> None:
    rows = load_live(str(dataset)).rows
    one, again, other = drawn(rows, 70), drawn(rows, 70), drawn(rows, 70, seed=1)
    assert one == again != other and len(one) == 70
    assert [played.row for played in one[: len(rows)]] == [row.id for row in rows]


@pytest.mark.parametrize(
    ("python", "settings", "said", "printed"),
    [
        (sys.executable, {"dataset": "nowhere"}, "gives no rows", "nowhere"),
        (sys.executable, {"types": "silent_op"}, "gives no rows", "unknown type in this dataset 'silent_op'"),
        ("/nowhere/python", {}, "/nowhere/python: No such file or directory", ""),
        ("/bin/false", {}, "/bin/false gives no rows of robustbench-tc", ""),
    ],
)
def test_what_is_wrong_ends_the_harness_with_one_line(
    python: str,
    settings: dict[str, Any],
    said: str,
    printed: str,
    dataset: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As verifiers meets it: the side of the socket that imports nothing of ours."""
    with pytest.raises(SystemExit) as ended:
        rbtc_process.core(python, json.dumps({"dataset": str(dataset), **settings}))
    assert said in str(ended.value) and "\n" not in str(ended.value)
    own = capfd.readouterr().err
    assert printed in own and "Traceback" not in own


def test_the_process_ends_with_its_input(dataset: Path) -> None:
    settings = json.dumps({"dataset": str(dataset), "ids": "orders_1"})
    core = rbtc_process.core(sys.executable, settings)
    assert core is rbtc_process.core(sys.executable, settings)
    with pytest.raises(RuntimeError, match="'nothing' is not among the rows"):
        asyncio.run(core.ask("begin", row="nothing"))
    begun = asyncio.run(core.ask("begin", row="orders_1::clean"))
    with pytest.raises(RuntimeError, match="no choices in x"):
        asyncio.run(core.ask("reply", dialogue=begun["dialogue"], completion="x" * 10**8))
    assert asyncio.run(core.ask("end", dialogue=begun["dialogue"]))["score"]["reward"] == 0.0
    core._process.stdin.close()
    assert core._process.wait(30) == 0
    with pytest.raises(RuntimeError, match="has ended"):
        asyncio.run(core.ask("begin", row="orders_1::clean"))
