"""A run that grows: what it holds after several selections, and that nothing is asked for twice."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc import api, schema
from robustbench_tc.eval import data as draw, inputs, predictions, record
from robustbench_tc.eval.data import Selection

from ..known import SOURCES
from ..loopback import SERVER_ERROR, LoopbackServer, reply
from ..refusals import refuses
from . import small
from .test_run import is_second

ROWS = small.rows()
TIMING = ["latency_s", "retries"]
"""What differs between two runs that are otherwise the same."""


def called(body: dict[str, Any]) -> Any:
    """A call whose argument follows from the request, so that every answer is its own."""
    said = len(json.dumps(body["messages"])) + body.get("seed", 0)
    if body.get("tools"):
        return reply("", [(body["tools"][0]["function"]["name"], f'{{"n": {said}}}')])
    return reply(f"[ping(n={said})]")


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(called) as running:
        yield running


Evaluate = Callable[..., record.RunFolder]


@pytest.fixture
def evaluate(release: Path, server: LoopbackServer) -> Evaluate:
    """`api.evaluate` of the small release into a folder."""

    def run(out: Path, dataset: Path = release, **options: Any) -> record.RunFolder:
        asked: dict[str, Any] = {"model": "tiny", "base_url": server.url, "seed": 5, "probe": False}
        asked["max_retries"] = 0
        return api.evaluate(dataset, out=out, **(asked | options)).folder

    return run


def table(folder: record.RunFolder, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder.path / name).drop_columns(TIMING).to_pylist()
    return found


def answered(folder: record.RunFolder) -> Counter[str]:
    """How often the journal has each answer."""
    lines = map(schema.loads, folder.journal_path.read_bytes().splitlines())
    return Counter(line["key"] for line in lines if line["status"] != "request_error")


# --- the bar: five steps, and at once ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_a_run_grown_in_five_steps_is_the_run_made_at_once(
    tmp_path: Path, evaluate: Evaluate, server: LoopbackServer, mode: str
) -> None:
    steps: list[dict[str, Any]] = [
        {"limit": 8},
        {"limit": 9},
        {"types": "reward,clean", "sources": "bfcl_v3,apibank"},
        {"samples": 3},
        {"repeat": 2},
    ]
    sizes = []
    for step in steps:
        grown = evaluate(tmp_path / "grown", mode=mode, **step)
        sizes.append(grown.record.expected)
        assert len(predictions.read_predictions(grown.answers_path)) == grown.record.expected
    requests = server.count
    at_once = evaluate(tmp_path / "at-once", mode=mode, repeat=2)

    assert sizes[:2] == [8, 9] and sizes == sorted(set(sizes)) and sizes[-1] == 2 * len(ROWS)
    assert server.count - requests == requests  # as many requests in five steps as at once
    assert set(answered(grown).values()) == {1} and answered(grown) == answered(at_once)
    for name in ("predictions.parquet", "scores.parquet"):
        assert table(grown, name) == table(at_once, name)
    assert grown.record.settings == at_once.record.settings and grown.record.also == ()
    assert grown.record.totals["status"] == at_once.record.totals["status"] == {"ok": 2 * len(ROWS)}
    asked = [one.selection for one in grown.record.sessions]
    assert asked[:2] + asked[3:] == [
        Selection(limit=8),
        Selection(limit=9),
        Selection(samples=3),
        Selection(),
    ]
    assert asked[2] is not None and asked[2].sources == ("bfcl_v3", "apibank")


def test_a_grown_run_goes_on_and_asks_nothing(
    tmp_path: Path, evaluate: Evaluate, server: LoopbackServer
) -> None:
    evaluate(tmp_path / "run", types="CD")
    folder = evaluate(tmp_path / "run", types="clean", sources="rotbench,bfcl_v3")
    before, count = table(folder, "scores.parquet"), server.count
    for again in ({"types": "CD"}, {"types": "clean", "sources": "rotbench,bfcl_v3"}):
        folder = evaluate(tmp_path / "run", **again)
    assert server.count == count and table(folder, "scores.parquet") == before
    assert folder.record.selections == (
        Selection(types=("CD",)),
        Selection(types=("clean",), sources=("rotbench", "bfcl_v3")),
    )
    wanted = [row.id for row in ROWS if row.type_code == "CD"]
    wanted += [row.id for row in ROWS if row.type_code == "clean" and row.source in ("rotbench", "bfcl_v3")]
    assert {row["id"] for row in before} == set(wanted)
    assert folder.record.expected == len(wanted) == len(before)


def test_a_smaller_selection_does_not_shrink_the_run(
    tmp_path: Path, evaluate: Evaluate, server: LoopbackServer
) -> None:
    evaluate(tmp_path / "run", types="clean,CD", repeat=2)
    count = server.count
    folder = evaluate(tmp_path / "run", types="CD")
    assert server.count == count
    size = sum(row.type_code in ("clean", "CD") for row in ROWS)
    assert folder.record.expected == 2 * size == len(table(folder, "scores.parquet"))
    assert folder.notes == [
        f"{folder.path} keeps its {size} rows × 2; asked are the {size - 5} selected here",
        f"{folder.path} asks every row 2 times: --repeat 1 cannot shrink it",
    ]


def test_new_rows_are_asked_as_often_as_the_others(tmp_path: Path, evaluate: Evaluate) -> None:
    evaluate(tmp_path / "run", types="clean", repeat=3)
    folder = evaluate(tmp_path / "run", types="clean,CD")
    size = sum(row.type_code in ("clean", "CD") for row in ROWS)
    assert len(table(folder, "predictions.parquet")) == folder.record.expected == 3 * size
    assert folder.notes[0] == f"{folder.path} grows: 5 rows × 3, now {size} rows × 3"


def test_more_repeats_of_a_part_are_refused_before_anything_is_asked(
    tmp_path: Path, evaluate: Evaluate, server: LoopbackServer
) -> None:
    folder = evaluate(tmp_path / "run", types="clean,CD")
    count, record_then = server.count, (folder.path / "run.json").read_bytes()
    refuses(
        r"run holds 4 other rows than .* --repeat 2 .* --reuse",
        evaluate,
        tmp_path / "run",
        types="clean",
        repeat=2,
    )
    assert (server.count, (folder.path / "run.json").read_bytes()) == (count, record_then)


def test_a_run_that_got_no_answer_to_grow_by_is_what_it_was(
    tmp_path: Path, evaluate: Evaluate, server: LoopbackServer
) -> None:
    folder = evaluate(tmp_path / "run", types="clean")
    scores = table(folder, "scores.parquet")
    server.handler = lambda body: SERVER_ERROR
    refuses("stopped answering", evaluate, tmp_path / "run", concurrency=1)
    refuses("nothing answers", evaluate, tmp_path / "run", base_url="http://127.0.0.1:9/v1")
    folder = record.open_run(tmp_path / "run")
    assert folder.record.settings.selection == Selection(types=("clean",)) and folder.record.expected == 5
    assert len(predictions.read_predictions(folder.answers_path)) == 5
    assert table(folder, "scores.parquet") == scores
    server.handler = called
    assert evaluate(tmp_path / "run").record.totals["status"] == {"ok": len(ROWS)}


def test_damaged_predictions_of_a_grown_run_are_made_again_whole(tmp_path: Path, evaluate: Evaluate) -> None:
    evaluate(tmp_path / "run", types="CD")
    folder = evaluate(tmp_path / "run", types="TD")
    before = table(folder, "scores.parquet")
    folder.answers_path.write_bytes(b"PAR1")
    refuses("the same rbtc eval makes it again", api.score, folder.path)
    evaluate(tmp_path / "run", types="TD")
    assert table(folder, "scores.parquet") == before


# --- run folders of another format -------------------------------------------------------------------------


@pytest.mark.parametrize("other", [1, 3])
def test_a_record_of_another_format_is_one_line(tmp_path: Path, evaluate: Evaluate, other: int) -> None:
    path = evaluate(tmp_path / "run", types="clean").path / "run.json"
    path.write_text(path.read_text().replace('"format": 2', f'"format": {other}'))
    refuses(f"is of format {other}, this version reads 2: begin a new run", record.open_run, path.parent)


# --- which rows -------------------------------------------------------------------------------------------


def many(**sizes: int) -> list[schema.Sample]:
    """Clean rows of our sources under other ids, each with a row of CD behind it."""
    return [
        msgspec.structs.replace(
            row, id=f"{row.source}__{number}::{code}", clean_id=f"{row.source}__{number}", type_code=code
        )
        for row in small.clean_rows()
        for number in range(sizes.get(row.source, 0))
        for code in ("clean", "CD")
    ]


def test_samples_are_whole_and_in_the_proportions_of_the_sources_at_every_length() -> None:
    sizes = {"apibank": 74, "tooleyes": 51, "bfcl_v3": 32, "rotbench": 21, "toolalpaca": 21}
    data = inputs.Dataset(name="made", rows=tuple(many(**sizes)))
    before: set[str] = set()
    for length in range(1, 200):
        rows = data.select(Selection(samples=length))
        ids = Counter(row.clean_id for row in rows)
        assert len(ids) == length and set(ids.values()) == {2}
        assert before < set(ids)  # the first N of the N + 1
        before = set(ids)
        taken = Counter(row.source for row in rows if row.type_code == "clean")
        assert all(abs(taken[one] - size * length / 199) < 1 for one, size in sizes.items())
    assert len(data.select(Selection(samples=500))) == 398


def test_samples_are_the_same_whatever_else_the_dataset_has() -> None:
    """Within a source the order is the clean ids' own: not their place, not the other samples."""
    some, more = many(apibank=30), many(apibank=60)
    ids = {row.clean_id for row in some}
    assert draw.order(some) == [one for one in draw.order(list(reversed(more))) if one in ids]
    assert draw.order(some) != sorted(ids)


def test_a_limit_gives_every_type_a_pair(release: Path) -> None:
    data = inputs.load_samples(str(release))
    types = {row.type_code for row in ROWS} - {"clean"}
    before: set[str] = set()
    for limit in range(1, len(ROWS) + 1):
        rows = data.select(Selection(limit=limit))
        ids = {row.id for row in rows}
        assert len(rows) == limit and before < ids
        assert all(f"{row.clean_id}::clean" in ids for row in rows)
        before = ids
    first = data.select(Selection(limit=len(types) + 5))
    assert {row.type_code for row in first} == types | {"clean"}
    assert {row.source for row in first} == set(SOURCES)
    # Without clean rows in the selection there are none: what was named is asked, nothing else.
    assert {row.type_code for row in data.select(Selection(types=("CD", "TD"), limit=3))} == {"CD", "TD"}


def test_samples_and_limit_are_two_ways(release: Path) -> None:
    data = inputs.load_samples(str(release))
    refuses(
        "--limit counts rows, --samples counts whole samples: give one",
        data.select,
        Selection(samples=2, limit=2),
    )
    refuses("--samples 0: give 1 or more", data.select, Selection(samples=0))


# --- answers of other runs --------------------------------------------------------------------------------


def test_answers_of_an_equal_run_are_taken(
    tmp_path: Path, evaluate: Evaluate, server: LoopbackServer
) -> None:
    evaluate = partial(evaluate, temperature=0.5)
    first = evaluate(tmp_path / "first", samples=2)
    taken, count = answered(first), server.count
    journal = first.journal_path.read_bytes()
    second = evaluate(tmp_path / "second", reuse=[first.path])
    rows = table(second, "predictions.parquet")
    left = len(rows) - len(table(first, "predictions.parquet"))
    assert second.notes == [
        f"reused {len(taken)} answers of {first.path}",
        f"{left} of {len(rows)} rows are left to ask",
    ]
    assert second.record.reused == {str(first.path): len(taken)}
    assert first.journal_path.read_bytes() == journal
    lines = map(schema.loads, second.journal_path.read_bytes().splitlines())
    assert {line["key"] for line in lines if line.get("reused")} == set(taken)
    whole = evaluate(tmp_path / "whole")
    assert server.count - count == 2 * len(answered(whole)) - len(taken)
    assert table(second, "scores.parquet") == table(whole, "scores.parquet")
    again = evaluate(tmp_path / "second", reuse=first.path)
    assert again.notes == [f"reused 0 answers of {first.path}", f"0 of {len(rows)} rows are left to ask"]


@pytest.mark.parametrize(
    ("other", "asked"),
    [
        ({"messages": (schema.Message("user", "Something else?"),)}, 1),
        ({"golden_answers": ((schema.Call("another", {}),),)}, 0),
    ],
)
def test_answers_to_equal_rows_of_another_dataset_are_taken(
    tmp_path: Path, evaluate: Evaluate, server: LoopbackServer, other: dict[str, Any], asked: int
) -> None:
    """A new version of the dataset: a run does not go on over it, and the rows that stayed count there. An
    answer is one to what was asked; whether it is right is for the scorer, which reads the new gold."""
    changed = [row for row in small.rows("CD") if row.source != "tooleyes"]
    changed[0] = msgspec.structs.replace(changed[0], **other)
    folder = small.write(tmp_path / "other", changed)
    first = evaluate(tmp_path / "first")
    count = server.count
    refuses(r"dataset: .* Take another --out \(with --reuse ", evaluate, first.path, folder)
    second = evaluate(tmp_path / "second", folder, reuse=first.path)
    assert server.count - count == asked
    assert second.notes == [
        f"reused {len(changed) - asked} answers of {first.path}",
        f"{asked} of {len(changed)} rows are left to ask",
    ]


def test_a_second_answer_is_taken_behind_its_own_first_only(
    tmp_path: Path, evaluate: Evaluate, server: LoopbackServer
) -> None:
    """It answers a conversation that holds the first reply."""
    first = evaluate(tmp_path / "first", types="transient_timeout")
    server.handler = lambda body: SERVER_ERROR if is_second(body) else reply("[pong()]")
    folder = evaluate(tmp_path / "second", types="transient_timeout", score=False)
    assert folder.record.totals["status"] == {"request_error": 5}
    server.handler = called
    count = server.count
    folder = evaluate(tmp_path / "second", types="transient_timeout", reuse=first.path)
    assert folder.notes == [f"reused 0 answers of {first.path}", "5 of 5 rows are left to ask"]
    assert server.count - count == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": 0.5}, "its answers were made with other settings: temperature: 0.0 there, 0.5 here"),
        ({"mode": "prompt"}, 'other settings: mode: "fc" there, "prompt" here'),
        ({"model": "small"}, 'other settings: model: "tiny" there, "small" here'),
    ],
)
def test_answers_under_other_settings_are_never_taken(
    tmp_path: Path, evaluate: Evaluate, options: dict[str, Any], said: str
) -> None:
    first = evaluate(tmp_path / "first", types="clean")
    refuses(said, evaluate, tmp_path / "second", reuse=first.path, **options)
    assert not (tmp_path / "second").exists()


def test_what_cannot_be_reused_is_one_line(tmp_path: Path, evaluate: Evaluate) -> None:
    first = evaluate(tmp_path / "first", types="clean")
    refuses("is the run itself", evaluate, first.path, reuse=tmp_path / "." / "first")
    refuses("is not a run folder", evaluate, tmp_path / "second", reuse=tmp_path / "nowhere")
    with first.journal_path.open("ab") as file:
        file.write(b'{"key":"torn')
    assert evaluate(tmp_path / "second", reuse=first.path).notes[0].startswith("reused 5 answers")
    lines = first.journal_path.read_bytes().splitlines(keepends=True)
    first.journal_path.write_bytes(b"".join([lines[0], b'{"key":"a"]\n', *lines[1:]]))
    refuses("line 2 is damaged", evaluate, tmp_path / "third", reuse=first.path)
    first.journal_path.unlink()
    refuses(r"no journal\.jsonl", evaluate, tmp_path / "third", reuse=first.path)


def test_27_rows_of_profile_paper_hold_a_pair_of_every_type(paper: Path) -> None:
    """docs/evaluating.md says so; 46 rows left 7 of the 22 types without one before."""
    data = inputs.load_samples(str(paper))

    def paired(limit: int) -> set[str]:
        rows = data.select(Selection(limit=limit))
        ids = {row.id for row in rows}
        return {row.type_code for row in rows if f"{row.clean_id}::clean" in ids} - {"clean"}

    assert [len(paired(limit)) for limit in (2, 26, 27, 46)] == [1, 21, 22, 22]
    rows = data.select(Selection(samples=10))
    assert Counter(row.source for row in rows if row.type_code == "clean") == {
        **{"apibank": 4, "tooleyes": 2, "bfcl_v3": 2},
        **{"rotbench": 1, "toolalpaca": 1},
    }
