"""What `rbtc summary` says of a run: by hand on a dozen rows, of any run on one screen, of the core alone."""

import json
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from robustbench_tc import api, taxonomy
from robustbench_tc.eval.report import drawings, page
from robustbench_tc.eval.stats import compare, runs, values
from robustbench_tc.eval.stats.screen import Overview, overview

from ..conftest import Done
from ..refusals import refuses
from .synthetic_runs import SIZES, Verdict, clean_ids, coin, pairs, write_run

A, B, C = "apibank__level1_1", "bfcl_v3__x", "tooleyes__y"

Row = tuple[str, str, bool | None, dict[str, Any]]


def row(clean_id: str, code: str, correct: bool | None, **fields: Any) -> Row:
    return clean_id, code, correct, fields


ROWS = [
    row(A, "clean", True),
    row(B, "clean", True),
    row(C, "clean", False, score=0.5),
    row(A, "realistic_typos", True),
    row(B, "realistic_typos", False),
    row(C, "realistic_typos", True),
    row(A, "same_name_A", False),
    row(B, "same_name_A", True),
    row(A, "CD", False, error_mode="name_bias"),
    row(B, "CD", True),
    row(A, "transient_timeout", False, status="too_long", error_mode="other", finish_reason=None),
    row(B, "transient_timeout", False, finish_reason="length"),
]


def overview_of(
    folder: Path,
    rows: Iterable[Row],
    expected: int,
    *,
    subset: runs.Subset = "all",
    allow_missing: bool = False,
) -> Overview:
    """The overview of a run folder that holds these rows."""
    rows = list(rows)
    verdicts = {(clean_id, code): correct for clean_id, code, correct, _ in rows}
    made = write_run(folder, lambda c, t: verdicts[c, t], [row[:2] for row in rows])
    table = pq.read_table(made / "scores.parquet")
    changed = table.to_pylist()
    for line, (*_, fields) in zip(changed, rows, strict=True):
        line |= {"error_mode": "wrong_name" if line["correct"] is False else None} | fields
    pq.write_table(pa.Table.from_pylist(changed, schema=table.schema), made / "scores.parquet")
    return overview(runs.read_run(made), expected, {}, subset=subset, allow_missing=allow_missing)


def test_accuracies_gaps_and_retention(tmp_path: Path) -> None:
    found = overview_of(tmp_path / "run", ROWS, len(ROWS))
    assert (found.summary.lines["clean"].tally, found.summary.lines["clean"].accuracy) == ((2, 3), 2 / 3)
    assert found.rows == len(ROWS)
    assert (found.summary.lines["perturbed"].tally, found.summary.lines["perturbed"].accuracy) == (
        (4, 9),
        4 / 9,
    )
    observation, action = found.summary.lines["observation"], found.summary.lines["action"]
    assert observation.delta == pytest.approx(0)
    assert observation.delta_matched == pytest.approx((0 + 1 - 1) / 3)
    # Over all clean rows 2/3 − 1/2; over the two anchored pairs one in two.
    assert action.delta == pytest.approx(1 / 6)
    assert action.delta_matched == pytest.approx(1 / 2)
    assert found.summary.lines["transition"].delta_matched == 1.0
    retention = found.summary.values["retention"]
    assert retention is not None
    assert retention.value == pytest.approx(1 - (0 + 1 / 6 + 1 / 6) / 3 / (2 / 3))
    assert found.mean_scores["tooleyes"] == pytest.approx(0.75)
    assert (found.length, found.too_long, found.rejected, found.missing) == (1, 1, 0, 0)
    assert [found.error_modes[name] for name in ("clean", "action", "transition")] == [
        {"wrong_name": 1},
        {"wrong_name": 1},
        {"wrong_name": 1, "other": 1},
    ]
    assert found.error_modes["CD"] == {"name_bias": 1}
    assert found.summary.gaps[0].startswith("no rows of query_paraphrase")


def test_rows_that_nobody_could_answer_are_counted_apart(tmp_path: Path) -> None:
    """Sample A is flagged: its rows are in no number of `verified`, and no honest model has them right."""
    flagged = [
        (*one[:3], one[3] | {"flags": ["x", "gold_not_stated"]}) if one[0] == A else one for one in ROWS
    ]
    found = overview_of(tmp_path / "run", flagged, len(ROWS))
    assert found.summary.lines["clean"].tally == (2, 3) and found.summary.lines["perturbed"].tally == (4, 9)
    clean, perturbed = found.verified["clean"], found.verified["perturbed"]
    assert (clean.correct, clean.n, clean.left_out) == (1, 2, 1)
    assert (clean.accuracy, clean.best) == (1 / 2, 2 / 3)
    assert (perturbed.correct, perturbed.n, perturbed.left_out) == (3, 5, 4)
    assert (perturbed.accuracy, perturbed.best) == (3 / 5, 5 / 9)
    asked = overview_of(tmp_path / "asked", flagged, len(ROWS), subset="verified")
    assert (asked.summary.lines["clean"].tally, asked.summary.lines["perturbed"].tally) == ((1, 2), (3, 5))
    assert (asked.verified["perturbed"].left_out, asked.verified["perturbed"].best) == (0, 1.0)
    assert found.error_modes["CD"] == {"name_bias": 1} and "CD" not in asked.error_modes
    plain = overview_of(tmp_path / "plain", ROWS, len(ROWS), subset="verified")
    assert plain.summary.lines["perturbed"].tally == (4, 9) and plain.verified["clean"].best == 1.0


def test_there_is_no_headline_while_an_answer_is_missing(tmp_path: Path) -> None:
    rows = [*ROWS[:-1], row(B, "transient_timeout", None)]
    refuses(
        r"2 of 13 rows have no answer \(1 request_error, 1 not asked\)",
        overview_of,
        tmp_path / "run",
        rows,
        13,
    )
    found = overview_of(tmp_path / "run", rows, 13, allow_missing=True)
    assert (found.expected, found.missing) == (13, 2)
    assert found.summary.lines["transition"].n == 1


def test_a_run_without_clean_rows_has_no_gaps(tmp_path: Path) -> None:
    found = overview_of(tmp_path / "run", [row(A, "CD", True)], 1)
    assert (found.summary.lines["clean"].accuracy, found.summary.values["retention"]) == (None, None)
    assert found.summary.lines["reward"].accuracy == 1.0
    assert found.summary.lines["reward"].delta is None
    assert found.summary.lines["reward"].delta_matched is None


def test_a_damaged_column_is_one_line(tmp_path: Path) -> None:
    made = write_run(tmp_path / "run", lambda c, t: True, [(A, "clean")])
    table = pq.read_table(made / "scores.parquet")
    at = table.schema.get_field_index("correct")
    pq.write_table(table.set_column(at, "correct", pa.array([["yes"]])), made / "scores.parquet")
    refuses(r"scores\.parquet is damaged: ", runs.read_run, made)


# --- the first screen of any run ----------------------------------------------------------------------


LINES, WIDTH = 16, 100

FEW = {"bfcl_v3": 6, "apibank": 9, "rotbench": 3, "toolalpaca": 3, "tooleyes": 3}
OWN = {"own": 14}
LONG = "🦊 a-model/of ‮strange\nname " * 12

Rows = list[tuple[str, str]]


def biased(clean_id: str, code: str) -> bool:
    """Right but for the types with decoys."""
    return taxonomy.component_of(code) != "reward"


def thirds(clean_id: str, code: str) -> bool:
    """Wrong on one perturbed row of three."""
    return code == "clean" or hash_of(clean_id + code) % 3 > 0


def half(clean_id: str, code: str) -> bool | None:
    """Right on every other row, no answer to the rest."""
    return None if hash_of(clean_id + code) % 2 else True


def hash_of(text: str) -> int:
    return sum(map(ord, text))


def of_packs(sizes: dict[str, int], *, core: bool) -> Rows:
    """Rows of every type beyond the core, with their clean rows, beside the core or alone."""
    ids = clean_ids(sizes)
    codes = [kind.code for kind in taxonomy.types("extension")]
    rows = pairs(ids) if core else [(one, "clean") for one in ids]
    return rows + [(one, code) for code in codes for one in ids]


def kinds() -> dict[str, dict[str, Any]]:
    """Kind of run → what `write_run` makes it of."""
    few = pairs(clean_ids(FEW))
    clean = [row for row in few if row[1] == "clean"]
    mixed = next(kind.code for kind in taxonomy.types("all") if kind.pack == "mixed")
    found: dict[str, dict[str, Any]] = {
        "a whole run": {"verdict": biased, "rows": pairs(clean_ids(SIZES))},
        "nothing right": {"verdict": lambda c, t: False},
        "all right": {"verdict": lambda c, t: True},
        "no answers": {"verdict": lambda c, t: None},
        "half missing": {"verdict": half},
        "clean only": {"verdict": coin(3), "rows": clean},
        "one clean row": {"verdict": coin(3), "rows": clean[:1]},
        "no clean rows": {"verdict": coin(3), "rows": [row for row in few if row[1] != "clean"]},
        "one perturbed row": {"verdict": biased, "rows": [row for row in few if row[1] == "CD"][:1]},
        "one type": {"verdict": biased, "rows": [row for row in few if row[1] in ("clean", "CD_AB")]},
        "own tools": {"verdict": biased, "rows": pairs(clean_ids(OWN))},
        "packs only": {"verdict": thirds, "rows": of_packs(FEW, core=False)},
        "packs beside the core": {"verdict": thirds, "rows": of_packs(FEW, core=True)},
        "a mixture that loses": {
            "verdict": lambda c, t: t == "clean",
            "rows": clean + [(one, mixed) for one, _ in clean],
        },
        "strange names": {"verdict": biased, "model": LONG, "version": LONG},
        "a defence": {"verdict": biased, "settings": {"defend": ["retry", "shuffle:3"]}},
        "all cut": {"verdict": biased, "finish_reason": lambda c, t: "length"},
        "rejected": {"verdict": lambda c, t: t == "clean", "status": lambda c, t: "rejected"},
        "agent errors": {
            "verdict": lambda c, t: hash_of(c) % 3 > 0,
            "status": lambda c, t: "ok" if hash_of(c) % 3 else "agent_error",
        },
    }
    for seed, (right, kept) in enumerate([(0.2, 0.5), (0.6, 0.95), (0.95, 0.7)]):
        found[f"a coin of {right}"] = {
            "verdict": coin(seed, right, kept),
            "mode": lambda c, t: "fc",
            "settings": {"mode": "fc"},
        }
        found[f"a coin of {right}, 3 repeats"] = {"verdict": coin(seed, right, kept), "repeats": 3}
    return {name: {"rows": few, **one} for name, one in found.items()}


KINDS = kinds()


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    given = dict(KINDS[request.param])
    settings = given.pop("settings", {})
    made = write_run(tmp_path / "run", given.pop("verdict"), given.pop("rows"), **given)
    record = json.loads((made / "run.json").read_text())
    record["settings"] |= settings
    (made / "run.json").write_text(json.dumps(record))
    return made


def test_a_summary_is_one_screen_with_the_numbers_of_its_json_and_full_goes_on_with_every_table(
    folder: Path, rbtc: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = rbtc("summary", folder, "--allow-missing")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) <= LINES
    assert [line for line in lines if cell_len(line) > WIDTH] == []
    monkeypatch.setenv("COLUMNS", "40")
    full = rbtc("summary", folder, "--allow-missing", "--full")
    assert full.code == 0 and full.out.startswith(done.out), "a pipe has no width"
    made = json.loads(rbtc("summary", folder, "--allow-missing", "--json").out)
    answer = made["answer"]
    assert lines[2] == answer["sentence"]
    accuracies = {name: made["summary"]["lines"][name] for name in values.HEADS}
    shown = {line.split()[0]: line for line in lines[5:] if line.split()[0] in accuracies}
    assert shown.keys() == {name for name, one in accuracies.items() if one["n"]}
    for name, line in shown.items():
        wanted = [accuracies[name]["accuracy"]]
        if found := answer["lines"].get(name):
            wanted += [found["drop"][end] for end in ("value", "low", "high")]
            assert line.endswith(found["word"])
            assert found["keeps"] is None or f"≥ {round(100 * found['keeps'])} %" in line
        printed = re.findall(r"-?\d+\.\d", line)
        assert printed == [f"{100 * one + 0:.1f}".replace("-0.0", "0.0") for one in wanted if one is not None]
    warned = [line for line in lines if line.startswith("warn ")]
    assert len(warned) == bool(answer["warnings"])
    if len(answer["warnings"]) > 1:
        assert warned[0].endswith(f" (+{len(answer['warnings']) - 1} more: --full)")
    if answer["worst"]:
        [worst] = [line for line in lines if line.startswith("worst ")]
        after = answer["types"][answer["worst"][0]]["after"]
        assert worst.startswith(f"worst  {taxonomy.named(answer['worst'][0])} {100 * after:.1f}")
        assert any(f"--type {answer['worst'][0]}" in line for line in lines if line.startswith("next "))
    assert all(f"warning: {one}" in full.out for one in answer["warnings"])
    assert made["summary"]["types"].keys() <= {
        line.split()[0] for line in full.out.splitlines() if line.strip()
    }


# --- rows beyond the core move nothing ----------------------------------------------------------------


BEYOND = [kind.code for kind in taxonomy.types("extension")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Two models, each with the core alone and with every further type, on which they are all wrong."""
    root, ids = tmp_path_factory.mktemp("runs"), clean_ids()
    made: dict[str, list[str]] = {"core": [], "all": []}
    for model, verdict in (("a-7b", coin(1, 0.6, 0.7)), ("b-7b", coin(2, 0.8, 0.9))):
        further = [(one, code) for code in BEYOND for one in ids]
        for name, rows in (("core", pairs(ids)), ("all", [*pairs(ids), *further])):
            folder = root / f"{model}-{name}"
            write_run(folder, partial(of_core, verdict), rows, model=model)
            made[name].append(str(folder))
    return made


def of_core(verdict: Verdict, clean_id: str, code: str) -> bool | None:
    """The verdict on a row of the core; every other row is wrong."""
    return code not in BEYOND and verdict(clean_id, code)


LEFT_OUT = {*BEYOND, "extension", "marts", "run", "card", "packs", "mean_scores"}
"""What a report says of further types, of all rows together and of single ones."""


def of_the_core(said: Any) -> Any:
    """A report's JSON without these, at any depth, and without the levels' lines of packs."""
    if isinstance(said, dict):
        return {name: of_the_core(one) for name, one in said.items() if name not in LEFT_OUT}
    if isinstance(said, list):
        of_packs = [one for one in said if isinstance(one, dict) and one.get("pack", "core") != "core"]
        return [of_the_core(one) for one in said if one not in of_packs]
    return said


def test_a_report_says_the_same_of_the_core(folders: dict[str, list[str]]) -> None:
    core, whole = (api.report(folders[name], baseline="a-7b") for name in ("core", "all"))
    scored = {code for code in BEYOND if taxonomy.get(code).traits.get("scored", True)}
    assert scored <= set(whole.models[0].summary.types)
    assert of_the_core(json.loads(page.as_json(core))) == of_the_core(json.loads(page.as_json(whole)))
    for draw in (drawings.losses, drawings.heatmap):
        assert draw(core.models) == draw(whole.models)
    assert drawings.stage_shifts(core.models[0]) == drawings.stage_shifts(whole.models[0])
    for drops in (drawings.of_types, drawings.answered):
        assert drawings.axis_of(drops(core.models)) == drawings.axis_of(drops(whole.models))


def test_a_comparison_says_the_same_of_the_core(folders: dict[str, list[str]]) -> None:
    core, whole = (compare.compare_runs(*map(runs.read_run, folders[name])) for name in ("core", "all"))
    assert (core.verdict, core.overall, core.deltas) == (whole.verdict, whole.overall, whole.deltas)
    assert core.power == whole.power
    assert core.types == {code: one for code, one in whole.types.items() if code not in BEYOND}


def test_a_summary_says_the_same_of_the_core(folders: dict[str, list[str]]) -> None:
    core, whole = (
        overview(runs.read_run(folders[name][0]), 0, {}, allow_missing=True) for name in ("core", "all")
    )
    assert core.summary.values == whole.summary.values
    assert (core.summary.power, core.verified) == (whole.summary.power, whole.verified)
    for name in ("sentence", "lines", "worst", "warnings"):
        assert getattr(core.answer, name) == getattr(whole.answer, name), name
    assert core.levels == tuple(line for line in whole.levels if line.pack == "core")
    assert core.stages is not None and whole.stages is not None
    assert core.stages.shifts == whole.stages.shifts
    types = whole.summary.types
    assert core.summary.types == {code: row for code, row in types.items() if code not in BEYOND}
