"""Logs of inspect_ai as runs: the statistics of a run's own folder, foreign logs, and hostile ones."""

import json
import random
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import api, schema
from robustbench_tc.eval.adapters import inspect_log, logs
from robustbench_tc.eval.stats.compare import Comparison
from tests.conftest import Done
from tests.eval import small
from tests.refusals import refuses

from . import made_logs


def replies(seed: int, share: float) -> Callable[[schema.Sample], Mapping[str, Any]]:
    """Right in `share` of the rows, drawn by the row's id; some end at the limit."""

    def reply(row: schema.Sample) -> Mapping[str, Any]:
        draw = random.Random(f"{seed} {row.id}")
        gold = [
            {"name": call.name, "arguments": first_values(call.parameters)} for call in row.golden_answers[0]
        ]
        text = "\n".join(f"<tool_call>{schema.dumps(call)}</tool_call>" for call in gold)
        right = draw.random() < share
        met = {"injected": True, "first_output": text} if row.injected_error else {}
        finish = "length" if draw.random() < 0.1 else "stop"
        return {"raw_output": text if right else "I cannot help.", "finish_reason": finish, **met}

    return reply


def first_values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: allowed[0] for name, allowed in parameters.items()}
    return {name: value for name, value in found.items() if value not in (schema.OMIT, schema.ANY)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Two models over a small release: run folder and log."""
    place = tmp_path_factory.mktemp("runs")
    release = small.write(place / "release", small.rows())
    found = {}
    for name, seed, share in (("base", 1, 0.8), ("tuned", 2, 0.9)):
        run = small.scored_run(place / name, release, name, replies(seed, share))
        found[name] = (run, made_logs.of_run(run, place / f"{name}.eval"))
    return found


def test_the_statistics_of_logs_are_those_of_runs(runs: dict[str, tuple[Path, Path]]) -> None:
    (base, base_log), (tuned, tuned_log) = runs["base"], runs["tuned"]
    expected = api.compare(base, tuned)
    perturbed = expected.overall["perturbed"]
    assert perturbed.only_a > 0 and perturbed.only_b > 0
    for a, b in ((base_log, tuned_log), (base, tuned_log), (base_log, tuned)):
        assert msgspec.json.encode(api.compare(a, b)) == msgspec.json.encode(expected)


def test_a_report_of_logs_says_what_one_of_runs_says(
    runs: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    of_runs = api.report([run for run, _ in runs.values()], baseline="base", allow_missing=True)
    of_logs = api.report(
        [log for _, log in runs.values()], tmp_path / "report", baseline="base", allow_missing=True
    )
    for left, right in zip(of_runs.models, of_logs.models, strict=True):
        for name in (
            "summary",
            "answer",
            "sources",
            "marks",
            "type_marks",
            "error_modes",
            "stages",
            "levels",
        ):
            assert getattr(left, name) == getattr(right, name), name
        assert right.run.endswith(".eval")
    for mart, rows in of_runs.marts.items():
        told = [{**row, "run": ""} for row in of_logs.marts[mart]]
        assert told == [{**row, "run": ""} for row in rows], mart
    page = (tmp_path / "report" / "report.html").read_text()
    assert "rbtc-logs-" not in page and "/somewhere" not in page


def test_on_the_command_line(runs: dict[str, tuple[Path, Path]], rbtc: Callable[..., Done]) -> None:
    done = rbtc("compare", runs["base"][1], runs["tuned"][1])
    assert done.code == 0 and "A = base, B = tuned" in done.out
    done = rbtc("compare", runs["base"][1], "paper:o4-mini")
    assert done.code == 0 and "base beside paper:o4-mini" in done.out


def test_a_sample_that_failed_has_no_verdict(tmp_path: Path, runs: dict[str, tuple[Path, Path]]) -> None:
    """Never a wrong one: its row leaves the comparison, and the gap is named."""
    release = small.write(tmp_path / "release", small.rows("transient_timeout"))
    half = small.scored_run(tmp_path / "half", release, "half", replies(3, 0.9))
    log = made_logs.of_run(half, tmp_path / "half.eval")
    with logs.opened([str(log)]) as found:
        run = found[0].read_run()
    assert set(run.rows["status"].tolist()) == {"ok"}
    rows = schema.loads((half / "run.json").read_bytes())["expected"]

    def fails(sample: dict[str, Any]) -> None:
        del sample["scores"], sample["metadata"]["prediction"]
        sample["error"] = {"message": "HTTP 500"}

    broken = edited(log, tmp_path / "broken.eval", fails)
    found_gaps = api.compare(log, broken).notes
    assert any("1 of" in line and "no verdict" in line for line in found_gaps), found_gaps
    broken.write_bytes(made_logs.zip_of(unpacked(log)[:-2] + unpacked(log)[-1:]))
    with logs.opened([str(broken)]) as found:
        assert len(found[0].read_run().rows["id"]) == rows - 1
    assert any("never made" in line or "no verdict" in line for line in api.compare(log, broken).notes)


def edited(log: Path, path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The log with one of its samples changed."""
    members = dict(unpacked(log))
    name = next(name for name in members if name.startswith("samples/"))
    found = schema.loads(members[name])
    change(found)
    members[name] = json.dumps(found).encode()
    path.write_bytes(made_logs.zip_of(members.items()))
    return path


def unpacked(log: Path) -> list[tuple[str, bytes]]:
    with inspect_log.Zip(log) as opened_log:
        return [(name, opened_log.member(name) or b"") for name in opened_log.NameToInfo]


# --- logs of other tasks ------------------------------------------------------------------------------------


def sample(name: str, value: object, epoch: int = 1, **metadata: object) -> dict[str, Any]:
    asked = [{"id": f"drawn-{value}", "role": "user", "content": f"What is {name}?"}]
    return {
        "id": name, "epoch": epoch, "input": asked, "target": name,
        "scores": {"match": {"value": value}}, "metadata": metadata,
    }  # fmt: skip


def compared(tmp_path: Path, a: list[dict[str, Any]], b: list[dict[str, Any]], *keys: str) -> Comparison:
    first, second = made_logs.write(tmp_path / "a.eval", a), made_logs.write(tmp_path / "b.eval", b)
    return api.compare(first, second, log_keys=keys)


def test_any_two_logs_of_one_task_pair_by_sample(tmp_path: Path) -> None:
    a = [sample(f"q{n}", "C" if n < 4 else "I") for n in range(12)]
    b = [sample(f"q{n}", 1.0 if n < 11 else False) for n in range(12)]
    pair = compared(tmp_path, a, b).overall["clean"]
    assert (pair.n, pair.only_a, pair.only_b) == (12, 0, 7)
    assert pair.p == pytest.approx(2 * 0.5**7, abs=1e-12)  # McNemar's exact test


def test_keys_of_ones_own(tmp_path: Path) -> None:
    def rows(wrong: str) -> list[dict[str, Any]]:
        found = []
        for n in range(8):
            for kind in ("clean", "realistic_typos"):
                value = "I" if kind == wrong else "C"
                found.append(sample(f"{n}/{kind}", value, question=f"q{n}", condition=kind))
        return found

    found = compared(tmp_path, rows("realistic_typos"), rows("none"), "clean_id=question", "type=condition")
    assert found.overall["clean"].only_b == 0
    assert [*found.types] == ["realistic_typos"] and found.types["realistic_typos"].only_b == 8
    assert found.types["realistic_typos"].p == pytest.approx(2 * 0.5**8, abs=1e-12)
    # Epochs are repeats of one sample: they never count as further pairs.
    twice = [{**one, "epoch": epoch} for one in rows("none") for epoch in (1, 2)]
    assert compared(tmp_path, twice, twice, "clean_id=question", "type=condition").overall["clean"].n == 8


def test_scores_between_right_and_wrong_are_named(tmp_path: Path) -> None:
    a = [sample("q0", "P"), sample("q1", "C"), sample("q2", 0.25)]
    notes = compared(tmp_path, a, [sample(f"q{n}", "C") for n in range(3)]).notes
    assert any(line.endswith("2 scores lie between right and wrong: they count as wrong") for line in notes)


def test_what_inspect_could_not_score_has_no_verdict(tmp_path: Path) -> None:
    a = [sample("q0", "C"), sample("q1", "C")]
    whole = made_logs.write(tmp_path / "whole.eval", a)
    log = edited(whole, tmp_path / "nan.eval", lambda one: one["scores"]["match"].update(value=float("nan")))
    pair = api.compare(log, made_logs.write(tmp_path / "b.eval", a)).overall["clean"]
    assert (pair.n, pair.left_out) == (1, 1)


@pytest.mark.parametrize(
    ("samples", "keys", "said"),
    [
        ([sample("q", "C"), sample("q", "C")], (), "2 samples have clean_id 'q', type 'clean' and epoch 1"),
        ([sample("q", "C", type="typo")], (), "type 'typo' is neither clean nor a type of the taxonomy"),
        ([sample("q", {"a": 1})], (), "its score is neither C nor I nor a number"),
        ([sample("q", "C", epoch=0)], (), "epoch 0"),
        ([sample("q", "C") | {"scores": {"a": {"value": 1}, "b": {"value": 0}}}], (), "--log-key score=NAME"),
        ([sample("q", "C")], ("clean=x",), "write clean_id=KEY, type=KEY or score=NAME"),
        ([], (), "holds no samples"),
        ([sample("q", "C") | {"epoch": "one"}], (), "is not as inspect_ai writes it: Expected `int`"),
    ],
)
def test_a_foreign_log_that_cannot_be_paired(
    samples: list[dict[str, Any]], keys: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    log = made_logs.write(tmp_path / "a.eval", samples)
    caught = refuses(".", api.compare, log, log, log_keys=keys)
    assert said in caught and "\n" not in caught


def test_other_questions_under_the_same_ids_are_refused(tmp_path: Path) -> None:
    other = sample("q0", "C")
    other["input"] = "Something else?"
    refuses("asked different texts under the id", compared, tmp_path, [sample("q0", "C")], [other])


# --- hostile uploads ----------------------------------------------------------------------------------------


ONE = schema.dumps(sample("q", "C")).encode()
HEAD = ("header.json", schema.dumps(made_logs.header(1)).encode())
OURS = ("header.json", b'{"eval":{"metadata":{"robustbench_tc":{}}}}')


@pytest.mark.parametrize("method", [made_logs.STORED, made_logs.DEFLATED, made_logs.ZSTANDARD])
def test_every_way_of_packing(method: int, tmp_path: Path) -> None:
    log = made_logs.write(tmp_path / "a.eval", [sample("q", "C")], method=method)
    assert api.compare(log, log).overall["clean"].n == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a zip file"),
        (b"PK\x03\x04 no more", "not a zip file"),
        (made_logs.zip_of([("samples/1.json", ONE)]), "it has no header.json"),
        (made_logs.zip_of([HEAD, ("samples/1.json", ONE)])[:-30], "not a zip file"),
        (made_logs.zip_of([HEAD, ("samples/1.json", ONE)], wrong=1), "is not as it was written"),
        (made_logs.zip_of([HEAD], flags=1), "is encrypted"),
        (made_logs.zip_of([HEAD], 97), "packed by method 97, which is not read"),
        (made_logs.zip_of([HEAD], made_logs.BZIP2), "packed by method 12"),  # a few bytes of it have no bound
        (made_logs.zip_of([HEAD], made_logs.LZMA), "packed by method 14"),
        (made_logs.zip_of([("header.json", b'{"x":' + b"[" * 100_000)]), "cannot be read"),
        (made_logs.zip_of([HEAD, ("samples/\x1b[31m", b"{")]), "cannot be read"),
        (made_logs.zip_of([HEAD, ("samples/1", b'{"id":1,"scores":3}')]), "Expected `object"),
        (made_logs.zip_of([OURS]), "is not as inspect_ai writes it"),
    ],
)  # fmt: skip
def test_a_damaged_log_is_one_line(data: bytes, said: str, tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    path = tmp_path / "a.eval"
    path.write_bytes(data)
    found = rbtc("compare", path, path).refusal
    assert said in found and "\x1b" not in found


def test_a_member_that_unpacks_without_end(
    tmp_path: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect_log, "MEMBER", 2**20)
    path = tmp_path / "a.eval"
    for method in (made_logs.DEFLATED, made_logs.ZSTANDARD):
        path.write_bytes(made_logs.zip_of([HEAD, ("samples/1", b" " * 2**22)], method))
        assert "has more than 1,048,576 bytes" in rbtc("compare", path, path).refusal
    monkeypatch.setattr(inspect_log, "IN_ALL", 3 * len(ONE))
    made_logs.write(path, [sample(f"q{n}", "C") for n in range(9)])
    assert "bytes, which is as much as is read" in rbtc("compare", path, path).refusal


def test_a_list_of_members_that_fills_the_memory(tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    """The size is looked at before the list is read."""
    path = tmp_path / "a.eval"
    with path.open("wb") as file:
        file.truncate(inspect_log.DIRECTORY + 1)
        file.seek(0, 2)
        file.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 9, 9, inspect_log.DIRECTORY + 1, 0, 0))
    assert "its list of members has 33,554,433 bytes" in rbtc("compare", path, path).refusal


def test_a_sample_with_the_answer_of_another(
    tmp_path: Path, runs: dict[str, tuple[Path, Path]], rbtc: Callable[..., Done]
) -> None:
    log, path = runs["base"][1], tmp_path / "a.eval"
    other = schema.loads(next(data for name, data in reversed(unpacked(log)) if name.startswith("samples/")))
    strange = other["metadata"]["prediction"]
    edited(log, path, lambda one: one["metadata"].update(prediction=strange))
    assert "it holds the prediction of another sample" in rbtc("compare", path, path).refusal
    edited(log, path, lambda one: one["scores"]["verdict"]["metadata"].update(verdict={"correct": "yes"}))
    assert "no prediction and verdict of our task" in rbtc("compare", path, path).refusal


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("raw_output", "half a pair: \ud800"),
        ("model", "\ud800"),
        ("prompt_tokens", 10**30),
        ("retries", 2**40),
        ("tool_calls", [[float("nan")]]),
        ("mode", "\x1b[31m"),
        ("repeat", 2**40),
        ("id", "x" * 10**6),
    ],
)
def test_values_that_no_run_has(
    field: str, value: object, tmp_path: Path, runs: dict[str, tuple[Path, Path]], rbtc: Callable[..., Done]
) -> None:
    path = edited(
        runs["base"][1],
        tmp_path / "a.eval",
        lambda one: one["metadata"]["prediction"].update({field: value}),
    )
    if field == "model":  # the log's own model counts
        assert rbtc("compare", path, path).code in (0, 1)
    else:
        assert "\x1b" not in rbtc("compare", path, path).refusal


def test_a_run_folder_may_be_called_like_a_log(runs: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    (tmp_path / "run.eval").symlink_to(runs["base"][0])
    assert api.compare(tmp_path / "run.eval", runs["base"][1]).overall["clean"].only_a == 0


def test_a_score_that_somebody_changed_counts_as_changed(
    tmp_path: Path, runs: dict[str, tuple[Path, Path]]
) -> None:
    members = dict(unpacked(runs["base"][1]))
    name = next(name for name in members if b'"value":"C"' in members[name])
    members[name] = members[name].replace(b'"value":"C"', b'"value":"I"')
    path = tmp_path / "a.eval"
    path.write_bytes(made_logs.zip_of(members.items()))
    found = api.compare(runs["base"][1], path).overall
    assert sum(pair.only_a for name, pair in found.items() if name in ("clean", "perturbed")) == 1


def test_a_file_that_is_no_log(tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    assert "neither a run folder nor a supported log" in rbtc("compare", path, path).refusal
    assert "No such file" in rbtc("compare", tmp_path / "gone.eval", tmp_path / "gone.eval").refusal
