"""Journals of live runs as they are uploaded: an honest one is replayed, a hostile one is one clear line."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from robustbench_tc import schema
from robustbench_tc.eval.leaderboard import worker
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.live_data import LiveAsked
from robustbench_tc.eval.leaderboard.live_worker import examine_live
from robustbench_tc.eval.leaderboard.records import Checked
from robustbench_tc.eval.leaderboard.refusal import APART, CORE, STEPS
from robustbench_tc.eval.live.conversation import TOO_MANY
from robustbench_tc.eval.live.episode import Place
from robustbench_tc.eval.live.record import LiveRecord

from . import live_runs
from .live_runs import copied, edited, said

Lines = list[dict[str, Any]]


def looked(run: Path, folder: Path, asked: LiveAsked | None, **limits: Any) -> Checked:
    """What the worker says of the two files of a run folder."""
    folder.mkdir(parents=True)
    shutil.copyfile(run / "journal.jsonl", folder / worker.UPLOAD)
    if (run / "live_run.json").is_file():
        shutil.copyfile(run / "live_run.json", folder / worker.RECORD)
    job = worker.Job(folder=str(folder), user="ann", now="2026-11-20T10:00:00+00:00")
    return examine_live(job, asked, Limits(**limits))


def results(lines: Lines) -> list[dict[str, Any]]:
    return [one for one in lines if one["key"].endswith(":results")]


def answers(lines: Lines) -> list[dict[str, Any]]:
    return [one for one in lines if "status" in one]


def test_an_honest_run_passes_every_check(live_run: Path, live_asked: LiveAsked, tmp_path: Path) -> None:
    made = looked(live_run, tmp_path / "job", live_asked)
    assert [step.passed for step in made.steps] == [True] * len(made.steps)
    assert {step.code for step in made.steps} == set(STEPS) - {*APART, *CORE}
    one, entry = made.submission, made.live
    assert one is not None and entry is not None and made.entry is None
    assert (one.kind, one.model, one.fingerprint) == ("live", "Alpha-3B", live_asked.fingerprint)
    assert entry.episodes == len(live_asked.data.rows) and entry.flags == ()
    assert one.page == f"/live/{one.id}"


def test_what_the_run_says_of_itself_changes_nothing(
    live_run: Path, live_asked: LiveAsked, tmp_path: Path
) -> None:
    """Totals, sessions and places are the submitter's words; a scores.parquet is not even sent."""
    boasting = said(
        live_run,
        tmp_path / "boasting",
        totals={"success": 1.0, "episodes": 10**6},
        dataset="/home/ann/secret/data",
        served_models=["something-else"],
    )
    honest, made = (
        looked(run, tmp_path / f"job{n}", live_asked) for n, run in enumerate((live_run, boasting))
    )
    assert honest.live == made.live and honest.submission == made.submission
    stored = (tmp_path / "job1" / worker.RUN / "run.json").read_text()
    assert "secret" not in stored and "something-else" not in stored


def test_lines_in_another_order_between_episodes_are_the_same_run(
    live_run: Path, live_asked: LiveAsked, tmp_path: Path
) -> None:
    """Episodes run side by side: only within one the order counts. What is stored is the same file."""

    def sorted_by_episode(lines: Lines) -> Lines:
        return sorted(lines, key=lambda line: str(line["id"]))

    other = edited(live_run, tmp_path / "other", sorted_by_episode)
    assert looked(other, tmp_path / "a", live_asked).submission == (
        looked(live_run, tmp_path / "b", live_asked).submission
    )


class Bad(NamedTuple):
    name: str
    step: str
    says: str
    change: Callable[[Lines], Lines]


def _swapped_steps(lines: Lines) -> Lines:
    """The results of two replies of one episode are exchanged."""
    first, second = [one for one in results(lines) if one["id"] == results(lines)[0]["id"]][:2]
    first["results"], second["results"] = second["results"], first["results"]
    return lines


def _results_first(lines: Lines) -> Lines:
    at = lines.index(results(lines)[0])
    return [lines[at], *lines[:at], *lines[at + 1 :]]


def _with(where: Callable[[Lines], dict[str, Any]], **changes: Any) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        where(lines).update(changes)
        return lines

    return change


def _step(**changes: Any) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        results(lines)[0]["results"][0] |= changes
        return lines

    return change


def _spared(lines: Lines) -> Lines:
    """A repeated write is said to have been refused by the harness, so that it had no effect."""
    one = results(lines)[-1]["results"][0]
    one |= {"text": TOO_MANY, "executed": 0, "met": False}
    return lines


BAD = (
    Bad("an episode is missing", "ids", "not there, or not to their end",
        lambda lines: [one for one in lines if one["id"] != lines[0]["id"]]),
    Bad("an episode ends early", "ids", "not there, or not to their end",
        lambda lines: [one for one in lines if one is not answers(lines)[-1]]),
    Bad("an answer is there twice", "ids", "is there twice", lambda lines: [*lines, lines[0]]),
    Bad("an answer is another episode's", "ids", "its key is of",
        lambda lines: _with(lambda _: lines[0], id=lines[-1]["id"])(lines)),
    Bad("an answer is of another number", "ids", "its key is of", _with(lambda lines: lines[0], number=7)),
    Bad("a key of no row", "ids", "of no episode of the dataset",
        lambda lines: [*lines, {**lines[0], "key": "f" * 32, "id": "orders_999::clean"}]),
    Bad("an unanswered episode", "ids", "have no answer",
        _with(lambda lines: lines[-1], status="request_error")),
    Bad("results before their answer", "journal", "stands before what led to it", _results_first),
    Bad("steps of another reply", "journal", "not those of the answer's calls", _swapped_steps),
    Bad("a reply behind the end", "journal", "behind the end of an episode",
        lambda lines: [*lines, _further(lines)]),
    Bad("a result altered", "replay", "answered differently", _step(text='{"ok":true}')),
    Bad("a call said not to be carried out", "replay", "answered differently", _step(executed=0)),
    Bad("a call said to be refused", "journal", "not those of the answer's calls", _spared),
    Bad("a call said to have been cut off", "replay", "was cut off in the run",
        _step(problem="timeout", text='{"error":"the call took too long"}')),
    Bad("a fault said not to be met", "replay", "answered differently",
        lambda lines: _with(lambda _: next(step for one in results(lines) for step in one["results"]
                                           if step.get("met")), met=False)(lines)),
    Bad("tokens that are none", "format", "no number of tokens",
        _with(lambda lines: lines[0], prompt_tokens=-1)),
    Bad("a call that is no call", "format", "not of a live run's journal",
        _with(lambda lines: lines[0], tool_calls=[7])),
    Bad("too many calls", "size", "calls, at most",
        _with(lambda lines: lines[0], tool_calls=[{"name": "x", "arguments": "{}"}] * 99)),
    Bad("a text that the harness would cut", "size", "characters, at most",
        _with(lambda lines: lines[0], text="x" * 250_000)),
)  # fmt: skip


def _further(lines: Lines) -> dict[str, Any]:
    """An answer under the key that would follow the last of an episode."""
    last = answers(lines)[-1]
    asked, run = KEYS["asked"], KEYS["run"]
    settings = msgspec.json.decode((run / "live_run.json").read_bytes(), type=LiveRecord).settings
    place = Place.of(asked.by_id[last["id"]], settings, 0)
    return {**last, "key": place.key(last["number"] + 1), "number": last["number"] + 1}


KEYS: dict[str, Any] = {}


@pytest.mark.parametrize("bad", BAD, ids=[bad.name for bad in BAD])
def test_a_hostile_journal_meets_one_line(
    bad: Bad, live_run: Path, live_asked: LiveAsked, tmp_path: Path
) -> None:
    KEYS.update(asked=live_asked, run=live_run)
    made = looked(edited(live_run, tmp_path / "bad", bad.change), tmp_path / "job", live_asked)
    failed = made.refused
    assert failed is not None and made.live is None and made.submission is None
    assert (failed.code, bad.says in failed.text) == (bad.step, True), failed
    assert "\n" not in failed.text and failed.text.isascii() and len(failed.text) < 700
    assert [step.passed for step in made.steps].count(False) == 1


def test_bytes_that_are_no_journal_are_refused(live_run: Path, live_asked: LiveAsked, tmp_path: Path) -> None:
    whole = (live_run / "journal.jsonl").read_bytes()
    first = whole[: whole.index(b"\n") + 1]
    at = first.index(b'"text":"') + len(b'"text":"')
    for number, (content, step, says) in enumerate(
        (
            (whole[:-40], "format", "is cut off in line"),
            (whole.replace(first, first[:at] + b"\\ud800" + first[at:]), "format", "hex escape"),
            (b'{"key":"' + b"x" * 2_000_000 + b'"}\n', "size", "line 1 of the journal has more than"),
            (b'{"key":"a","results":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n", "format", "too deeply"),
            (b'{"key":"\xff"}\n', "format", "not of a live run's journal"),
            (b'{"key":"a"}\n' * 2, "ids", "twice"),
            (b'{"key":"a"\n', "format", "not of a live run's journal"),
            (b"".join(b'{"key":"%d"}\n' % n for n in range(60_000)), "size", "lines, which is as many as"),
        )
    ):
        folder = copied(live_run, tmp_path / f"bad{number}")
        (folder / "journal.jsonl").write_bytes(content)
        failed = looked(folder, tmp_path / f"job{number}", live_asked).refused
        assert failed is not None and (failed.code, says in failed.text) == (step, True), (number, failed)
    failed = looked(live_run, tmp_path / "big", live_asked, file_bytes=1000).refused
    assert failed is not None and "at most 1,000 are read" in failed.text


def test_records_of_other_runs_are_refused(live_run: Path, live_asked: LiveAsked, tmp_path: Path) -> None:
    wrong: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("dataset", "play that version", {"settings": {"fingerprint": "0" * 32}}),
        ("dataset", "play that version", {"dataset_version": "9.9.9"}),
        ("record", "of selected rows", {"expected": 3}),
        ("record", "of selected rows", {"settings": {"selection": {"limit": 3}}}),
        ("record", "asked in other words", {"settings": {"prompt_version": "live-0"}}),
        ("ids", "1 to 5 are taken", {"settings": {"repeat": 100_000}}),
        ("ids", "of no episode of the dataset", {"settings": {"decoding": {"temperature": 1.0}}}),
        ("name", "cannot be listed", {"settings": {"model": "<script>alert(1)</script>"}}),
        ("record", "defences cannot be read", {"settings": {"defend": ["no-such"]}}),
    )
    for number, (step, says, changes) in enumerate(wrong):
        run = said(live_run, tmp_path / f"run{number}", **changes)
        failed = looked(run, tmp_path / f"job{number}", live_asked).refused
        assert failed is not None and (failed.code, says in failed.text) == (step, True), (changes, failed)
    run = copied(live_run, tmp_path / "none")
    (run / "live_run.json").unlink()
    failed = looked(run, tmp_path / "job-none", live_asked).refused
    assert failed is not None and "attach live_run.json" in failed.text
    found = schema.loads((live_run / "live_run.json").read_bytes())
    found["flagged"] = {}
    run = copied(live_run, tmp_path / "core")
    (run / "live_run.json").write_bytes(msgspec.json.encode(found))
    failed = looked(run, tmp_path / "job-core", live_asked).refused
    assert failed is not None and "one of `rbtc eval`" in failed.text


def test_a_scripted_agent_is_known_by_what_it_calls(live_asked: LiveAsked, tmp_path: Path) -> None:
    for agent in ("oracle", "verifying-retrier"):
        run = live_runs.played(tmp_path / agent, live_asked, agent, model="Honest-7B")
        made = looked(run, tmp_path / f"job-{agent}", live_asked).live
        assert made is not None
        [flag] = made.flags
        assert (flag.code, flag.of, flag.value) == ("reference-agent", agent, 1.0)


def test_without_a_live_dataset_live_runs_are_refused_in_a_line(live_run: Path, tmp_path: Path) -> None:
    failed = looked(live_run, tmp_path / "job", None).refused
    assert failed is not None and failed.code == "dataset" and "--live-dataset" in failed.text


def test_the_process_that_reads_uploads_bounds_a_replay(
    live_run: Path, live_asked: LiveAsked, tmp_path: Path
) -> None:
    """Its processor time is that of so many episodes, and of so many characters."""
    limits = Limits()
    assert limits.cpu_of_live(560) < 40 and limits.cpu_of_live(560, math.inf) == limits.cpu_of_live(560) + 50
    assert limits.cpu_of_live(560, 0, 10**9) == limits.cpu_of_live(560) + 50
    seen: list[tuple[int, int, int]] = []
    folder = tmp_path / "job"
    folder.mkdir()
    shutil.copyfile(live_run / "journal.jsonl", folder / worker.UPLOAD)
    shutil.copyfile(live_run / "live_run.json", folder / worker.RECORD)
    job = worker.Job(folder=str(folder), user="ann", now="2026-11-20T10:00:00+00:00")
    assert worker.is_live(job)
    examine_live(job, live_asked, limits, lambda *of: seen.append(of))
    journal = live_run / "journal.jsonl"
    calls = sum(len(line.get("results", ())) for line in map(schema.loads, journal.read_bytes().splitlines()))
    assert seen == [(len(live_asked.data.rows), journal.stat().st_size, calls)]
