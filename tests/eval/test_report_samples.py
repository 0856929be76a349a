"""What a page embeds of rows and replies: unchanged, bounded and inert, and what is left out is said."""

import base64
import json
import re
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.eval import inputs
from robustbench_tc.eval.report import page, samples
from robustbench_tc.eval.report.samples import Embedded, cut, embed
from robustbench_tc.eval.stats.runs import Run, read
from robustbench_tc.schema import Call, Message, Sample, dumps

from . import small

OTHER = (Message("user", "Something else was asked."),)

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "\u202egnp.exe\u202c\u0000\u200b\x1b[31m",
    "<img src=x onerror=alert(1)>",
    "x" * 30_000,
    "\U0001d54f" * 9_000,
)


@pytest.fixture(scope="module")
def runs(release: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    def reply(row: Sample) -> Mapping[str, Any]:
        made = {"raw_output": HOSTILE[len(row.id) % len(HOSTILE)], "finish_reason": "stop"}
        return made | ({"injected": True, "first_output": "first"} if row.injected_error else {})

    root = tmp_path_factory.mktemp("runs")
    return [read(small.scored_run(root / name, release, f"{name}-3b", reply)) for name in ("a", "b")]


def unpacked(found: Embedded) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found.text), -15))
    return made


def test_every_row_comes_back_as_the_dataset_has_it(release: Path, runs: list[Run]) -> None:
    data = unpacked(embed(runs, ["a", "b"]))
    texts, tools = data["texts"], data["tools"]
    found = {}
    for sample, kind, messages, registry, _, error, flags, _ in data["rows"]:
        row = f"{data['samples'][sample][0]}::{data['types'][kind][0]}"
        injected = None if error < 0 else texts[error]
        found[row] = (
            [(role, texts[at]) for role, at in messages],
            [tools[at] for at in registry],
            injected,
            flags,
        )
    dataset = inputs.load_samples(str(release))
    assert found == {
        row.id: (
            [(message.role, message.content) for message in row.messages],
            [dumps(tool) for tool in row.tools],
            row.injected_error,
            list(row.flags),
        )
        for row in dataset.rows
    }
    assert len(set(texts)) == len(texts) and len(set(tools)) == len(tools)


def test_every_reply_and_verdict_is_there_and_bounded(release: Path, runs: list[Run]) -> None:
    data = unpacked(embed(runs, ["a", "b"]))
    assert [run["label"] for run in data["runs"]] == ["a", "b"]
    clip = data["clip"]
    rows = [f"{data['samples'][row[0]][0]}::{data['types'][row[1]][0]}" for row in data["rows"]]
    answers = {rows[one[0]]: one for one in data["runs"][0]["answers"]}
    assert set(answers) == {row.id for row in inputs.load_samples(str(release)).rows}
    for row, one in answers.items():
        whole = HOSTILE[len(row) % len(HOSTILE)]
        assert one[8] == whole[:clip] and one[9] == (len(whole) if len(whole) > clip else 0)
        assert one[2] == 0 and one[3] and one[5] == "ok"
        assert (one[12] == "first") == ("transient" in row)


def test_texts_are_inert_where_they_lie(runs: list[Run]) -> None:
    found = embed(runs, ["a", "b"])
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", found.text)
    made = page.html(api.report([run.path for run in runs]), found)
    assert "alert(1)" not in made and found.text in made and 'id="by-text"' in made


def test_the_same_runs_give_the_same_text(runs: list[Run]) -> None:
    assert embed(runs, ["a", "b"]) == embed(runs, ["a", "b"])


def test_replies_are_cut_shorter_until_the_page_is_small_enough(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = embed(runs, ["a", "b"])
    monkeypatch.setattr(samples, "BUDGET", len(whole.text) - 1)
    found = embed(runs, ["a", "b"])
    assert whole.clip == samples.CLIPS[0] > found.clip
    assert len(found.text) < len(whole.text) and found.rows == whole.rows and found.notes == ()


def test_of_too_many_rows_whole_samples_stay_and_the_page_says_so(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = embed(runs, ["a", "b"]).rows
    monkeypatch.setattr(samples, "MOST_ROWS", every // 2)
    found = embed(runs, ["a", "b"])
    data = unpacked(found)
    assert found.notes == (
        f"The page holds {found.rows} of {every} rows: whole samples, in proportion to the sources.",
    )
    assert 0 < len(data["samples"]) < 5 and len(data["rows"]) == found.rows <= every // 2
    assert {row[0] for row in data["rows"] if row[1] == 0} == set(range(len(data["samples"])))
    monkeypatch.setattr(samples, "BUDGET", 10)
    assert embed(runs, ["a", "b"]).rows > 0  # one sample is never given up


def test_without_the_dataset_there_is_a_line_and_no_browser(
    release: Path, runs: list[Run], tmp_path: Path
) -> None:
    moved = tmp_path / "gone"
    shutil.copytree(runs[0].path, moved)
    record = json.loads((moved / "run.json").read_text())
    (moved / "run.json").write_text(json.dumps(record | {"dataset": "/data/of/somebody/rows"}))
    run = read(moved)
    found = embed([run], ["a"])
    assert found.text == "" and found.notes == (
        "The dataset folder of these runs (rows) is not on this machine: --dataset names one.",
    )
    made = page.html(api.report([moved]), found)
    assert found.notes[0] in made and "by-text" not in made and "/data/of" not in made
    assert embed([run], ["a"], release).rows == embed(runs[:1], ["a"]).rows


def test_a_dataset_with_other_texts_is_not_shown_as_what_was_asked(runs: list[Run], tmp_path: Path) -> None:
    changed = [
        row if row.source == "bfcl_v3" else msgspec.structs.replace(row, messages=OTHER)
        for row in small.rows("CD")
    ]
    found = embed(runs, ["a", "b"], small.write(tmp_path / "other", changed))
    assert "rows of these runs have other texts in other, or none." in found.notes[0]
    assert {one[1] for one in unpacked(found)["samples"]} == {"bfcl_v3"}
    none = small.write(tmp_path / "none", [row for row in changed if row.source != "bfcl_v3"])
    assert embed(runs, ["a", "b"], none).notes == (
        "The dataset folder none has none of the texts that these runs were asked.",
    )
    (tmp_path / "empty").mkdir()
    assert (
        "The dataset cannot be read: empty is not a RobustBench-TC dataset"
        in embed(runs, ["a", "b"], tmp_path / "empty").notes[0]
    )


def test_a_damaged_dataset_is_a_line(runs: list[Run], release: Path, tmp_path: Path) -> None:
    shutil.copytree(release, tmp_path / "torn")
    next((tmp_path / "torn" / "CD").iterdir()).write_bytes(b"PAR1 torn PAR1")
    found = embed(runs, ["a", "b"], tmp_path / "torn")
    assert found.text == "" and found.notes[0].startswith("The dataset cannot be read: ")
    assert str(tmp_path) not in found.notes[0] and "\n" not in found.notes[0]


def test_scores_without_texts_are_shown_without_them(runs: list[Run], tmp_path: Path) -> None:
    shutil.copytree(runs[0].path, tmp_path / "a")
    table = pq.read_table(tmp_path / "a" / "scores.parquet")
    pq.write_table(table.drop_columns(["raw_output"]), tmp_path / "a" / "scores.parquet")
    embedded = embed([read(tmp_path / "a")], ["a"])
    [run] = unpacked(embedded)["runs"]
    assert {one[8] for one in run["answers"]} == {""} and embedded.cases == {}


def test_a_case_is_a_sample_of_its_component_that_was_lost_and_its_texts_are_inert(
    release: Path, tmp_path: Path
) -> None:
    right = '[summit.height(mountain="Galdhoppen")]'

    def reply(row: Sample) -> Mapping[str, Any]:
        told = {"injected": True, "first_output": right} if row.injected_error else {}
        clean = row.type_code in ("clean", "redundant")
        return {"raw_output": right if clean else HOSTILE[2], "finish_reason": "stop"} | told

    run = small.scored_run(tmp_path / "run", release, "a-3b", reply)
    embedded = embed([read(run)], ["a-3b"])
    [cases] = embedded.cases.values()
    verdicts = {one["id"]: one for one in pq.read_table(run / "scores.parquet").to_pylist()}
    lost = {
        one["component"]
        for one in verdicts.values()
        if not one["correct"] and verdicts[f"{one['clean_id']}::clean"]["correct"]
    }
    assert [case.component for case in cases] == [name for name in taxonomy.COMPONENTS if name in lost]
    assert {"action", "reward", "transition"} <= lost
    for case in cases:
        clean, perturbed = case.sides
        judged = verdicts[case.row]
        assert taxonomy.component_of(case.type_code) == case.component == judged["component"]
        assert verdicts[f"{judged['clean_id']}::clean"]["correct"] and not judged["correct"]
        assert dict(clean)["reply"] == (right, 0) and dict(clean)["gold"].text.startswith("summit.height ")
        assert "stage" not in dict(clean) and dict(clean)["verdict"].text.startswith("right")
        assert dict(perturbed)["stage"].text.split(":")[0] == judged["stage"]
        assert r"\u202egnp.exe\u202c\x00\u200b\x1b[31m" in {text.text for _, text in perturbed}
    said = [name for name, _ in cases[-1].sides[1]]
    assert said[:3] == ["first reply", "answered with", "second reply"]
    shown = (
        page.html(api.report([run]), embedded).partition('<section id="cases">')[2].partition("</section>")[0]
    )
    assert shown.count('<article class="case">') == len(cases) and "\u202e" not in shown


def test_a_cut_text_states_its_length() -> None:
    assert cut("abc", 3) == ("abc", 0) and cut("abcd", 3) == ("abc", 4)


def test_calls_are_written_as_calls() -> None:
    assert samples.calls_said([Call("f", {"a": 1, "b": "x"}), Call("g", {})]) == 'f(a: 1, b: "x"); g()'
