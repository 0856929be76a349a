"""Run folders that nobody honest hands in: each is refused by the check that it names, or changes nothing.

`step` None: it is taken, and what was planted changes nothing.
"""

import gzip
import io
import itertools
import os
import pickle
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robustbench_tc import schema
from robustbench_tc.eval.leaderboard import checker
from robustbench_tc.eval.leaderboard.datasets import Datasets
from robustbench_tc.eval.leaderboard.entry import Entry, Refused, Status

from . import made
from .conftest import SCORED, RunOf

Json = Any
Spoil = Callable[[Path], object]
SCRIPT = "<script>alert(1)</script>"


class Bad(NamedTuple):
    name: str
    step: str | None
    spoil: Spoil


# --- ways to spoil -------------------------------------------------------------------------------------


def put(name: str, content: bytes) -> Spoil:
    return lambda run: (run / name).write_bytes(content)


def table(change: Callable[[pa.Table], pa.Table], name: str = checker.PREDICTIONS) -> Spoil:
    return lambda run: pq.write_table(change(pq.read_table(run / name)), run / name, compression="zstd")


def rows(change: Callable[[list[dict[str, Json]]], object], name: str = checker.PREDICTIONS) -> Spoil:
    """The rows changed in place."""

    def changed(found: pa.Table) -> pa.Table:
        plain = found.to_pylist()
        change(plain)
        return pa.Table.from_pylist(plain, schema=found.schema)

    return table(changed, name)


def every(which: Callable[[dict[str, Json]], bool] = lambda row: True, /, **fields: Json) -> Spoil:
    return rows(lambda found: [row.update(fields) for row in found if which(row)])


def first(**fields: Json) -> Spoil:
    return rows(lambda found: found[0].update(fields))


def column(name: str, values: Callable[[int], Any]) -> Spoil:
    def changed(found: pa.Table) -> pa.Table:
        at = found.schema.get_field_index(name)
        array = values(found.num_rows)
        return found.append_column(name, array) if at < 0 else found.set_column(at, name, array)

    return table(changed)


def record(change: Callable[[dict[str, Json]], object]) -> Spoil:
    def spoil(run: Path) -> None:
        found = schema.loads((run / checker.RECORD).read_bytes())
        change(found)
        (run / checker.RECORD).write_bytes(msgspec.json.encode(found))

    return spoil


def settings(**fields: Json) -> Spoil:
    return record(lambda found: found["settings"].update(fields))


def stated(text: str) -> Spoil:
    return put(checker.SUBMISSION, text.encode())


def replaced(name: str, make: Callable[[Path], object]) -> Spoil:
    def spoil(run: Path) -> None:
        (run / name).unlink()
        make(run / name)

    return spoil


def linked(name: str, to: str) -> Spoil:
    return replaced(name, lambda path: path.symlink_to(to))


def dictionary_bomb(run: Path) -> None:
    """Twenty million characters, the same in each row: tiny on disk, four gigabytes as rows."""
    found = pq.read_table(run / checker.PREDICTIONS)
    column = pa.DictionaryArray.from_arrays(
        pa.array([0] * found.num_rows, pa.int32()), pa.array(["a" * 20_000_000])
    )
    found = found.set_column(found.schema.get_field_index("raw_output"), "raw_output", column)
    plain = found.replace_schema_metadata({})
    pq.write_table(plain, run / checker.PREDICTIONS, compression="zstd", store_schema=False)


def zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../predictions.parquet", b"\0" * 20_000_000)
    return out.getvalue()


class Trap:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Json, ...]:
        return (Path("/tmp/rbtc-unpickled").touch, ())


def one_pass(found: list[dict[str, Json]]) -> None:
    """Transition rows as if no error had been injected: the reply with the call stands."""
    for row in (one for one in found if one["injected"]):
        reply = {"raw_output": row["first_output"], "tool_calls": row["first_tool_calls"]}
        row.update(reply, injected=False, first_output=None, first_tool_calls=None)


DEEP = "[" * 50_000 + "]" * 50_000
BIDI = "safe \u202e txet"
MANY_CALLS = schema.dumps([{"name": "f", "arguments": "{}"}] * 200)

PARQUET = (
    Bad("empty file", "format", put(checker.PREDICTIONS, b"")),
    Bad("plain text", "format", put(checker.PREDICTIONS, b"hello, board\n" * 50)),
    Bad("pickle", "format", put(checker.PREDICTIONS, pickle.dumps(Trap()))),
    Bad("zip bomb", "format", put(checker.PREDICTIONS, zip_bomb())),
    Bad("gzip", "format", put(checker.PREDICTIONS, gzip.compress(b"{}\n" * 9))),
    Bad("false footer", "format", put(checker.PREDICTIONS, b"PAR1" + b"\xff" * 400 + b"PAR1")),
    Bad("another schema", "ids", table(lambda found: pa.table({"a": [1, 2]}))),
    Bad("column missing", "format", table(lambda found: found.drop_columns(["sample_hash"]))),
    Bad("column twice", "format", table(lambda t: t.append_column("id", t["id"]))),
    Bad("column of lists", "format", column("raw_output", lambda n: pa.array([[1]] * n))),
    Bad("column of texts for numbers", "format", column("repeat", lambda n: pa.array(["x"] * n))),
    Bad("no rows", "format", table(lambda found: found.slice(0, 0))),
    Bad("six times the rows", "size", table(lambda found: pa.concat_tables([found] * 6))),
    Bad("four gigabytes of rows", "size", dictionary_bomb),
    Bad(
        "a sparse file of three gigabytes", "size",
        lambda run: os.truncate(run / checker.PREDICTIONS, 3 << 30),
    ),
    Bad("rows missing", "ids", table(lambda found: found.slice(0, 50))),
    Bad("row twice for another", "ids", rows(lambda found: found[1].update(found[0]))),
    Bad("row unknown", "ids", first(id=SCRIPT)),
    Bad("row of another repeat", "ids", first(repeat=1)),
    Bad("rows unanswered", "ids", every(lambda row: row["type_code"] == "CD", status="request_error")),
    Bad("other words", "dataset", every(sample_hash="0" * 16)),
    Bad("huge text", "size", first(raw_output="a" * 300_000)),
    Bad("huge error", "size", first(error="a" * 3_000)),
    Bad("many calls", "format", first(tool_calls=MANY_CALLS)),
    Bad("calls nested deeply", "format", first(tool_calls=DEEP)),
    Bad("calls that are none", "format", first(tool_calls='{"name": "f"}')),
    Bad("calls with more in them", "format", first(tool_calls='[{"name": "f", "arguments": "", "x": 1}]')),
    Bad("negative repeat", "format", first(repeat=-1)),
    Bad("negative tokens", "format", first(prompt_tokens=-5)),
    Bad("tokens beyond measure", "format", first(prompt_tokens=2**62)),
    Bad("not a number", "format", every(latency_s=float("nan"))),
    Bad("endless latency", "format", first(latency_s=float("inf"))),
    Bad("unknown status", "format", first(status="won")),
    Bad("answers of another model", "record", first(model="somebody-else")),
    Bad("answers of another mode", "record", every(mode="fc")),
    Bad("error never injected", "protocol", rows(one_pass)),
    Bad(
        "error without a call", "protocol",
        every(lambda row: bool(row["injected"]), first_output="I would rather not.", first_tool_calls=None),
    ),
    Bad("injection unsaid", "protocol", every(lambda row: row["injected"] is not None, injected=None)),
    Bad("scores inserted", None, column("correct", lambda n: pa.array([True] * n))),
    Bad("verdicts inserted", None, column("error_mode", lambda n: pa.array([SCRIPT] * n))),
    Bad("another order", None, rows(lambda found: found.reverse())),
    Bad("types renamed", None, every(type_code="clean", component=None, source="bfcl_v3", category=SCRIPT)),
    Bad("log probabilities nested deeply", None, first(logprobs=DEEP)),
    Bad("script in an error", None, every(error=SCRIPT)),
    Bad("script as finish reason", None, every(finish_reason=SCRIPT)),
)  # fmt: skip

RECORD = (
    Bad("no record", "format", lambda run: (run / checker.RECORD).unlink()),
    Bad("record of nothing", "record", put(checker.RECORD, b"null")),
    Bad("record nested deeply", "record", put(checker.RECORD, b"[" * 25_000)),
    Bad("record without an end", "record", put(checker.RECORD, b'{"format": 2')),
    Bad("huge record", "size", put(checker.RECORD, b" " * 2_000_000)),
    Bad("record of another format", "record", record(lambda found: found.update(format=9))),
    Bad("record of another dataset", "dataset", settings(fingerprint="f" * 32)),
    Bad("record of a selection", "record", settings(selection={"types": ["clean"]})),
    Bad("record of fewer rows", "record", record(lambda found: found.update(expected=3))),
    Bad("asked a million times", "ids", settings(repeat=1_000_000)),
    Bad("asked never", "ids", settings(repeat=0)),
    Bad("unknown defence", "record", settings(defend=["rm -rf"])),
    Bad("defence written otherwise", "record", settings(defend=["schema", "schema"])),
    Bad("settings without end", "size", settings(decoding={"x": "y" * 30_000})),
    Bad("model as a page", "record", settings(model="m" * 3_000)),
    Bad("record of episodes", "record", record(lambda found: found.update(live=True))),
    Bad("more in the record", None, record(lambda found: found.update(score=1.0, html=SCRIPT))),
    Bad("totals of its own", None, record(lambda found: found.update(totals={"prompt_tokens": 10**15}))),
    Bad("script in places", None, record(lambda f: f.update(dataset=SCRIPT, served_models=[SCRIPT] * 9))),
    Bad("flagged of its own", None, record(lambda f: f.update(flagged={SCRIPT: {"a": {"n": 1}}}))),
    Bad("a system text with a script", None, settings(system=SCRIPT)),
)

FILES = (
    Bad("no submission", "format", lambda run: (run / checker.SUBMISSION).unlink()),
    Bad("a file more", "format", put("evil.py", b"print()")),
    Bad("both kinds of replies", "format", put(checker.EPISODES, b"PAR1")),
    Bad("a name with a script", "format", put("<img src=x onerror=alert(1)>", b"")),
    Bad("a hidden file", "format", put(".gitattributes", b"* -text")),
    Bad("a folder for a file", "format", replaced(checker.PREDICTIONS, Path.mkdir)),
    Bad("a pipe for a file", "format", replaced(checker.RECORD, os.mkfifo)),
    Bad("a link out", "format", linked(checker.SUBMISSION, "/etc/passwd")),
    Bad("a link to a device", "format", linked(checker.PREDICTIONS, "/dev/zero")),
    Bad("a link to nowhere", "format", linked(checker.RECORD, "nowhere")),
    Bad("an entry of its own", None, put(checker.ENTRY, b'{"core": {"metrics": {"perturbed": 1}}}')),
)

STATED = (
    Bad("nothing stated", "form", stated("")),
    Bad("a list stated", "form", stated("- model: Alpha-3B")),
    Bad("more stated", "form", stated("model: Alpha-3B\ntier: reproduced")),
    Bad("code stated", "form", stated("model: !!python/object/apply:os.system ['touch /tmp/rbtc-yaml']")),
    Bad("nested statement", "form", stated("model: " + "[" * 5_000)),
    Bad("laughing statement", "form", stated("a: &a [x]\n" + "b: &b [*a,*a,*a,*a,*a,*a]\nmodel: *b")),
    Bad("huge statement", "size", stated(f"model: Alpha-3B\nnote: {'x' * 30_000}")),
    Bad("long note", "form", stated(f"model: Alpha-3B\nnote: {'x' * 3_000}")),
    Bad("note that steers", "form", stated(f"model: Alpha-3B\nnote: '{BIDI}'")),
    Bad("no UTF-8", "form", put(checker.SUBMISSION, b"model: Alpha-3B\nnote: \xff\xfe")),
    Bad("endless parameters", "form", stated("model: Alpha-3B\nparams_b: .inf")),
    Bad("parameters that are none", "form", stated("model: Alpha-3B\nparams_b: .nan")),
    Bad("price below nothing", "form", stated("model: Alpha-3B\nprice_in: -1")),
    Bad("card that runs", "form", stated("model: Alpha-3B\ncard: 'javascript:alert(1)'")),
    Bad("card with quotes", "form", stated("model: Alpha-3B\ncard: 'https://a.example/\"onload=x'")),
    Bad("licence with a script", "form", stated(f"model: Alpha-3B\nlicence: '{SCRIPT}'")),
    Bad("another model", "name", stated("model: GPT-9")),
    Bad("a model up there", "form", stated("model: ../Alpha-3B")),
    Bad("a model of another script", "form", stated("model: Alph\u0430-3B")),
)


# --- live runs -----------------------------------------------------------------------------------------


def episodes(change: Callable[[list[dict[str, Json]]], object]) -> Spoil:
    """Episodes changed in place, their replies as JSON."""

    def whole(found: list[dict[str, Json]]) -> None:
        for row in found:
            row["replies"] = schema.loads(row["replies"])
        change(found)
        for row in found:
            row["replies"] = schema.dumps(row["replies"])

    return rows(whole, checker.EPISODES)


def reply(change: Callable[[dict[str, Json]], object]) -> Spoil:
    """The first reply with calls, of an episode whose calls all have a result."""
    return episodes(lambda found: change(next(r for one in found for r in one["replies"] if r.get("steps"))))


def step(**fields: Json) -> Spoil:
    return reply(lambda found: found["steps"][0].update(fields))


def deep_arguments(found: list[dict[str, Json]]) -> None:
    for row in found:
        row["replies"] = row["replies"].replace('"arguments":{', f'"arguments":{{"x":{DEEP},')


LIVE = (
    Bad("live: an episode missing", "ids", table(lambda found: found.slice(1), checker.EPISODES)),
    Bad("live: an episode for another", "ids", episodes(lambda found: found[1].update(found[0]))),
    Bad("live: another row's words", "journal", episodes(lambda found: found[0].update(row_hash="0" * 16))),
    Bad("live: another ending", "journal", episodes(lambda found: found[0].update(ended="too_many_steps"))),
    Bad("live: given up without an answer", "ids", episodes(lambda f: f[0].update(ended="request_error"))),
    Bad("live: the last reply left out", "journal", episodes(lambda found: found[0]["replies"].pop())),
    Bad("live: a reply more", "journal", episodes(lambda f: f[0]["replies"].append(f[0]["replies"][-1]))),
    Bad("live: another world", "journal", episodes(lambda found: found[0].update(world="calendar"))),
    Bad("live: a result edited", "replay", step(text="all is well")),
    Bad("live: a call that was not made", "replay", step(executed=0)),
    Bad("live: a call that was lost", "replay", step(problem="timeout")),
    Bad("live: other arguments", "journal", step(arguments={"x": 1})),
    Bad("live: a script for a call", "journal", step(name=SCRIPT)),
    Bad("live: a step left out", "journal", reply(lambda found: found["steps"].pop())),
    Bad("live: a defence that is none", "journal", step(defence="repeat")),
    Bad("live: arguments nested deeply", "format", rows(deep_arguments, checker.EPISODES)),
    Bad("live: nine requests without a defence", "journal", reply(lambda found: found.update(requests=9))),
    Bad("live: tokens taken back", "format", reply(lambda found: found.update(prompt_tokens=-10))),
    Bad("live: calls that are none", "format", reply(lambda found: found.update(tool_calls=[1]))),
    Bad("live: a huge reply", "size", reply(lambda found: found.update(text="x" * 300_000))),
    Bad("live: asked in other words", "record", settings(prompt_version="v0")),
    Bad("live: record of rows", "record", record(lambda found: found.update(live=False))),
    Bad("live: another dataset", "dataset", settings(fingerprint="0" * 32)),
    Bad("live: scores inserted", None, table(
        lambda found: found.append_column("success", pa.array([True] * found.num_rows)), checker.EPISODES
    )),
    Bad("live: totals of its own", None, record(lambda found: found.update(totals={"x": SCRIPT}))),
)  # fmt: skip


def random_damage(seed: int) -> Spoil:
    """A few bytes of the replies' file changed, cut out or doubled."""

    def spoil(run: Path) -> None:
        path = next(one for name in (checker.PREDICTIONS, checker.EPISODES) if (one := run / name).is_file())
        draw, found = np.random.default_rng(seed), bytearray(path.read_bytes())
        for _ in range(1 + seed % 5):
            at = int(draw.integers(4, len(found) - 4))
            size = int(draw.integers(1, 64))
            found[at : at + size] = draw.bytes(size) if seed % 3 else found[at : at + size] * (seed % 2 * 2)
        path.write_bytes(found)

    return spoil


def scripts_in_texts(run: Path) -> Iterator[tuple[str, Spoil]]:
    """A script in every text of a run over rows, one after the other."""
    columns = pq.read_schema(run / checker.PREDICTIONS)
    for name in columns.names:
        if pa.types.is_string(columns.field(name).type):
            yield f"column {name}", every(**{name: SCRIPT})
    found = schema.loads((run / checker.RECORD).read_bytes())
    for name, value in found.items():
        if not isinstance(value, int | dict):
            yield f"run.json {name}", record(partial(_script, name))
    for name, value in found["settings"].items():
        if not isinstance(value, int | dict):
            yield f"settings {name}", settings(**{name: SCRIPT})
    for name in ("weights", "licence", "card", "agent", "defences", "contact", "note"):
        yield f"submission {name}", stated(f"model: Alpha-3B\n{name}: '{SCRIPT}'")


def _script(name: str, found: dict[str, Json]) -> None:
    found[name] = [SCRIPT] if isinstance(found[name], list) else SCRIPT


# --- each is refused, in a bounded child --------------------------------------------------------------


AGENT = "gives-up-on-error"
OF_ROWS = (*PARQUET, *RECORD, *FILES, *STATED)
ID = f"{made.DAY}-{'0' * 12}"


@pytest.fixture(scope="module")
def both(release: Path, live_release: Path) -> Datasets:
    return Datasets.of_status(Status(dataset=str(release), live=str(live_release)))


@pytest.fixture(scope="module")
def live_run(both: Datasets, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert both.live is not None
    folder = tmp_path_factory.mktemp("live-runs")
    return made.as_handed_in(made.mixed(folder, both.live), folder / "handed-in")


def judged(folder: Path, data: Datasets) -> Entry | Refused:
    """What the checker says, under the name that fits the files."""
    try:
        name = made.name_of(folder)
    except Refused:
        name = f"ann/Alpha-3B/{ID}"
    try:
        return checker.checked(folder, name, data)
    except Refused as refused:
        return refused


def figures(entry: Entry | Refused) -> bytes:
    """An entry without what names its files."""
    assert isinstance(entry, Entry), entry
    return checker.encode(msgspec.structs.replace(entry, run="", inputs={}))


def test_there_are_eighty() -> None:
    bad = [*OF_ROWS, *LIVE]
    assert len({one.name for one in bad}) == len(bad) >= 80


@pytest.mark.parametrize("bad", (*OF_ROWS, *LIVE), ids=lambda bad: bad.name)
def test_a_hostile_run_is_refused_or_without_effect(
    bad: Bad, both: Datasets, run_of: RunOf, live_run: Path, tmp_path: Path
) -> None:
    honest = live_run if bad in LIVE else run_of(AGENT)
    folder = made.changed(honest, tmp_path / "run")
    bad.spoil(folder)
    found = judged(folder, both)
    if bad.step is None:
        assert figures(found) == figures(SCORED(honest, made.name_of(honest), both))
        return
    assert isinstance(found, Refused), found
    assert (found.step, bad.name) == (bad.step, bad.name), str(found)
    for line in (str(found), *found.details):
        assert line.replace("…", "").isascii() and "\n" not in line and len(line) < 700
    assert not Path("/tmp/rbtc-unpickled").exists() and not Path("/tmp/rbtc-yaml").exists()


def test_scripts_in_every_text_are_in_no_entry(both: Datasets, run_of: RunOf, tmp_path: Path) -> None:
    tried = 0
    for name, spoil in scripts_in_texts(run_of(AGENT)):
        folder = made.changed(run_of(AGENT), tmp_path / f"run{tried}")
        spoil(folder)
        found = judged(folder, both)
        tried += 1
        if isinstance(found, Entry):
            of_us = msgspec.structs.replace(found, submission=made.entry(0).submission)
            assert "<script" not in checker.encode(of_us).decode() + checker.table(found), name
        else:
            assert "<script" not in str(found) or "'<script" in str(found), name  # quoted, as it came
    assert tried > 30


@pytest.mark.parametrize("seed", range(24))
def test_random_damage_costs_nothing_but_the_run(
    seed: int, both: Datasets, run_of: RunOf, live_run: Path, tmp_path: Path
) -> None:
    honest = live_run if seed % 4 == 0 else run_of(AGENT)
    folder = made.changed(honest, tmp_path / "run")
    random_damage(seed)(folder)
    found = judged(folder, both)
    assert isinstance(found, Refused) or found.checker == checker.CHECKER


@pytest.mark.parametrize(
    "name",
    [
        "", "a", "a/b", "a/b/c/d", f"../b/{ID}", f"a/../{ID}", f"a/b/../{ID}", f"/a/{ID}", f"a//{ID}",
        f"<img>/b/{ID}", f"a/=HYPERLINK(1)/{ID}", f"a/Qw\u0435n/{ID}", f"a/b c/{ID}", f"a/{'b' * 200}/{ID}",
        "a/b/20261399-000000000000", "a/b/2026-000000000000", f"a/b/{made.DAY}-00000000000G", f"a/b/{ID}\n",
        f".git/b/{ID}", f"a/.hidden/{ID}", f"a\\b/c/{ID}", f"a/b\x00/{ID}",
    ],
)  # fmt: skip
def test_a_name_that_no_path_bears_is_refused(name: str, both: Datasets, run_of: RunOf) -> None:
    with pytest.raises(Refused) as refused:
        checker.checked(run_of(AGENT), name, both)
    assert refused.value.step == "name"
    assert str(refused.value).replace("…", "").isascii()


def test_a_run_under_the_id_of_another_and_a_live_one_where_none_are_taken_are_refused(
    data: Datasets, run_of: RunOf, live_run: Path
) -> None:
    with pytest.raises(Refused, match="does not fit the files"):
        checker.checked(run_of(AGENT), made.name_of(run_of("oracle")), data)
    with pytest.raises(Refused, match="no live runs are taken"):
        checker.checked(live_run, made.name_of(live_run), data)


# --- the child -----------------------------------------------------------------------------------------


FEW = checker.Limits(memory=3 << 30, cpu_s=1, wall_s=3, file=1 << 20)
TOO_MUCH: dict[str, tuple[Callable[[Path], Any], str]] = {
    "endless": (lambda _: all(itertools.repeat(True)), "took longer"),
    "asleep": (lambda _: time.sleep(600), "took longer"),
    "greedy": (lambda _: bytes(8 << 30), "more memory"),
    "wasteful": (
        lambda scratch: b"%d" % (scratch / "large").write_bytes(bytes(2 << 20)),
        "not be read to its end",
    ),
    "failing": (lambda _: 1 // 0, "not be read to its end"),
}


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_a_child_is_killed_where_it_exceeds_its_limits(kind: str) -> None:
    work, says = TOO_MUCH[kind]
    with pytest.raises(Refused, match=says):
        checker.in_child(work, FEW)


def test_a_child_within_its_limits_answers() -> None:
    assert checker.in_child(lambda _: b"x" * 500_000, FEW) == b"x" * 500_000
