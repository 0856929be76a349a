"""The report: numbers with intervals and gaps, shown inert and whole, in a page that needs nothing else."""

import base64
import csv
import hashlib
import html
import io
import json
import re
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.eval import paper
from robustbench_tc.eval.report import content, drawings, page
from robustbench_tc.eval.stats import breakdown, caveats, intervals
from robustbench_tc.io import numbers, templates

from ..conftest import Rbtc
from ..pages import Page
from ..refusals import refuses
from .synthetic_runs import clean_ids, coin, pairs, write_run

HOSTILE = "<script>alert(1)</script> | `x` *b* 7B"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("runs")
    made = coin(3)
    hole = ("apibank__level1_20", "TD")
    session = {"started": "2026-11-20", "package_version": "1", "concurrency": 1}
    session |= {"endpoint": "http://me:secret@host:8000/v1?key=k"}
    return [
        str(write_run(root / "base", coin(1, 0.55, 0.6), model="base-1.5b")),
        str(
            write_run(
                root / "tuned",
                coin(2, 0.75, 0.9),
                model=HOSTILE,
                record={"sessions": [session]},
            )
        ),
        str(write_run(root / "holed", lambda c, t: None if (c, t) == hole else made(c, t), model="holed-3b")),
    ]


@pytest.fixture(scope="module")
def report(folders: list[str]) -> content.Report:
    return api.report(folders, baseline="base-1.5b")


@pytest.fixture(scope="module")
def shown(report: content.Report) -> str:
    return page.html(report)


def test_the_page_is_well_formed_and_runs_and_styles_what_its_policy_names(shown: str) -> None:
    parsed = Page(shown)
    assert parsed.open == [] and parsed.inline == []
    assert parsed.scripts[""] == [(Path(page.__file__).parent / "page.js").read_text()]
    [files] = parsed.scripts["application/octet-stream"]
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", files)
    policy = dict(part.strip().split(" ", 1) for part in parsed.policy.split(";"))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    for name, texts in (("script-src", parsed.scripts[""]), ("style-src", parsed.styles)):
        hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert policy[name].split() == [f"'sha256-{one}'" for one in hashes]
    outside = [a for a in (*parsed.links, *parsed.loads) if not a.startswith(("#", "data:,"))]
    assert set(outside) == {"https://arxiv.org/abs/2605.11928"}  # a link to follow, nothing that is loaded
    assert "@import" not in shown and "url(" not in shown


def test_names_and_records_are_shown_inert_and_without_secrets(shown: str) -> None:
    assert "<script>alert" not in shown and shown.count("<script>") == 1  # ours: the test before
    assert re.sub("<wbr>", "", shown).count("&lt;script&gt;alert(1)&lt;/script&gt;") > 10
    assert "http://host:8000/v1" in re.sub("<wbr>", "", shown)
    assert "secret" not in shown and "key=k" not in shown


def test_every_anchor_of_the_menu_is_there(shown: str) -> None:
    wanted = set(re.findall(r'<a href="#(\w+)"', shown))
    assert len(wanted) == len(page.SECTIONS) - 5  # no dataset, pack, baselines, episode; no domain asked for
    assert all(f'<section id="{anchor}"' in shown for anchor in wanted)


def test_a_model_with_a_gap_shows_it_and_stands_last(report: content.Report, shown: str) -> None:
    assert [m.label for m in report.models] == [HOSTILE, "base-1.5b", "holed-3b"]
    holed = report.models[-1]
    assert holed.summary.values["perturbed"] is None and "TD" not in holed.summary.types
    assert report.gaps == ("holed-3b: TD: 1 of 148 rows have no verdict",)
    assert "TD: 1 of 148 rows have no verdict" in shown and '<td class="none">gap</td>' in shown


def test_missing_rows_are_averaged_over_only_when_allowed(folders: list[str]) -> None:
    allowed = api.report(folders[2:], allow_missing=True)
    assert allowed.models[0].summary.values["perturbed"] is not None
    assert allowed.gaps
    assert "values rest on the rows that are there" in page.html(allowed)


def test_marks_are_against_the_named_baseline_only(report: content.Report, folders: list[str]) -> None:
    tuned, base, holed = report.models
    assert report.baseline == "base-1.5b"
    assert base.marks == {} and base.type_marks == {}
    assert tuned.marks["perturbed"].stars == 3 and tuned.marks["perturbed"].difference > 0
    assert set(tuned.type_marks) == set(taxonomy.codes())
    assert "perturbed" not in holed.marks and "TD" not in holed.type_marks
    assert "delta_reward" not in holed.marks and "delta_action" in holed.marks
    assert all(not model.marks for model in api.report(folders[:2]).models)
    refuses("another dataset version", api.report, folders[:2], baseline="paper:o4-mini")
    refuses(r"did you mean base-1\.5b", api.report, folders[:2], baseline="base-1b")


def test_the_paper_stands_apart_unranked_and_unmarked(report: content.Report, shown: str) -> None:
    assert [m.label for m in report.paper] == list(paper.models())
    assert all(not m.marks for m in report.paper)
    assert "not ranked with yours" in shown
    assert shown.count("mean over clean rows of (2p − 1)²") == len(report.models)  # not of the paper's
    values = {(m.label, metric): found for m in report.paper for metric, found in m.summary.values.items()}
    for row in paper.table2():
        found = values[row.model, row.metric]
        assert found is not None and f"{found.value:.3f}" == f"{row.value:.3f}"
        assert numbers.typeset(numbers.number(found.value)) in shown


def test_every_value_carries_its_n(report: content.Report) -> None:
    rows = list(csv.DictReader(io.StringIO(page.as_csv(report))))
    assert list(rows[0]) == page.CSV_COLUMNS
    assert all(int(row["n"]) > 0 and float(row["low"]) <= float(row["high"]) for row in rows)
    assert {row["dataset_version"] for row in rows} == {"1.0.0 (ffffffff)", "paper"}
    ours = {row["method"] for row in rows if row["dataset_version"] == "1.0.0 (ffffffff)"}
    assert ours == {"hull", "mover", "fieller"}
    theirs = {row["method"] for row in rows if row["dataset_version"] == "paper"}
    assert theirs == {"exact", "simulated"}
    assert all((float(row["error"]) > 0) == (row["method"] == "simulated") for row in rows)
    assert not [r for r in rows if r["run"].endswith("holed") and r["type_code"] == "TD"]


def test_replies_that_are_read_with_care_are_counted_and_left_out(report: content.Report) -> None:
    first = report.models[0]
    flags = dict.fromkeys(breakdown.READ_WITH_CARE, breakdown.Flagged()) | {
        "call_beside_refusal": breakdown.Flagged((1, 2), (3, 5))
    }
    made = msgspec.structs.replace(report, models=(msgspec.structs.replace(first, flags=flags),))
    clean = first.summary.lines["clean"]
    shown = page.html(made)
    assert "<td>7<small>4 right</small></td>" in shown
    assert f"<td>{(clean.correct - 1) / (clean.n - 2):.3f}</td>" in shown
    assert "| 0 (0) | 0 (0) | 7 (4) | 0 (0) | 0 (0) |" in page.markdown(made)


def test_all_rows_and_the_verified_ones_stand_side_by_side(report: content.Report) -> None:
    first = report.models[0]
    verified = first.verified | {
        "perturbed": caveats.Beside(correct=3, n=5, accuracy=0.6, left_out=4, best=0.5556)
    }
    made = msgspec.structs.replace(report, models=(msgspec.structs.replace(first, verified=verified),))
    every = first.summary.lines["perturbed"].accuracy
    assert every is not None and first.verified["perturbed"].best == 1.0  # these runs have no flag
    assert f"| {every:.3f} | 0.600 | 0.556 |" in page.markdown(made)
    assert f"<td>{every:.3f}</td><td>0.600<small>n 5</small></td><td>0.556</td>" in page.html(made)


def test_markdown_cannot_be_broken_by_a_name(report: content.Report) -> None:
    text = page.markdown(report)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) > 7
    for table in tables:
        head, rule, *rows = [len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()]
        assert rows and {rule, *rows} == {head}, table
    assert "<script>" not in text and "gap" in text


def test_json_holds_the_whole_report(report: content.Report) -> None:
    found = json.loads(page.as_json(report))
    assert found["models"][0]["summary"]["values"]["clean"]["n"] == 199
    assert set(found["marts"]) == set(content.MARTS)


def test_the_same_runs_give_the_same_bytes(folders: list[str], shown: str) -> None:
    assert page.html(api.report(folders, baseline="base-1.5b")) == shown


def test_both_conventions_and_the_subset_reach_the_page(folders: list[str]) -> None:
    made = api.report(folders[:2], ci="paper", subset="paper", baseline=folders[0])
    assert made.models[0].summary.types["CD"].accuracy.n == 102
    assert "rows independent" in page.html(made)
    for text in (page.html(made), page.markdown(made), page.as_json(made)):
        assert "in only .69 to .79 of runs instead of .95" in text
    ours = page.markdown(api.report(folders[:2]))
    assert ours.count("of runs instead of .95") == 1  # of the paper's models, which stand below
    clustered = api.report(folders[:2], subset="paper")
    wide, narrow = (m.models[0].summary.values["perturbed"] for m in (clustered, made))
    assert wide is not None and narrow is not None and wide.half_width > narrow.half_width


def test_sizes_are_read_from_the_paper_and_from_names() -> None:
    assert content.params_of("Qwen/Qwen3.5-9B") == 9
    assert content.params_of("o4-mini") is None
    assert content.params_of("my-model-0.5b-chat") == 0.5
    assert content.params_of("tuned-70B") == 70
    assert content.params_of("gpt4boost") is None


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("http://me:secret@host:8000/v1?key=k", "http://host:8000/v1"),
        ("qwen@https://api.example/v1", "https://api.example/v1"),
        ("in this process", "in this process"),
    ],
)
def test_a_card_names_an_endpoint_without_its_secrets(endpoint: str, shown: str) -> None:
    assert content._host(endpoint) == shown


def test_equal_names_are_distinguished(tmp_path: Path) -> None:
    rows = pairs(clean_ids({"bfcl_v3": 4}))
    a, b = (str(write_run(tmp_path / name, coin(1), rows, model="same")) for name in "ab")
    assert [m.label for m in api.report([a, b]).models] == [f"same ({a})", f"same ({b})"]
    refuses("given twice", api.report, [a, a])
    refuses(r"fits 2 runs: name .*a or .*b", api.report, [a, b], baseline="same")


def test_a_small_partial_run_still_makes_a_page(tmp_path: Path) -> None:
    rows = [pair for pair in pairs(clean_ids({"rotbench": 3})) if pair[1] in ("CD", "TD")]
    made = api.report([str(write_run(tmp_path / "a", lambda c, t: True, rows))])
    assert made.models[0].summary.values["clean"] is None
    assert set(made.models[0].summary.types) == {"CD", "TD"}
    assert made.models[0].summary.types["CD"].delta is None
    assert "no rows of clean" in page.html(made)


def test_latex_tables_hold_the_values_and_no_name_breaks_them(report: content.Report) -> None:
    text = page.latex_tables(report)
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == 2
    assert r"\textless{}script\textgreater{}alert(1)" in text and "<script>" not in text
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    columns = [len(re.split(r"(?<!\\)&", line)) for line in rows]
    heads = [8] * (1 + len(report.models)) + [1 + len(report.models)] * (1 + len(taxonomy.codes()))
    assert columns == heads
    lost = report.models[1].summary.types["CD"]
    assert lost.delta_matched is not None and numbers.number(lost.delta_matched.value, sign=True) in text
    assert page.latex_text("a_b%$&#{}~^\\\n\x00") == (
        r"a\_b\%\$\&\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}"
    )


def test_the_page_and_the_markdown_lead_with_the_answer_of_every_model(
    report: content.Report, shown: str
) -> None:
    text = page.markdown(report)
    lead, _, rest = text.partition("| model |")
    first = html.unescape(shown.partition('<section id="losses">')[0])
    for model in report.models:
        assert model.answer is not None and model.answer.sentence in first
        assert templates.plain(model.answer.sentence) in lead and model.answer.sentence not in rest
        for name, one in model.answer.lines.items():
            drop, low, high = (
                numbers.typeset(numbers.number(100 * x, 1))
                for x in (one.drop.value, one.drop.low, one.drop.high)
            )
            assert f"<td>{drop}<small>{low} to {high}</small></td>" in first
            assert f"| {name} | {one.cases} |" in lead and f"| {drop} | {low} to {high} |" in lead
        for line in model.answer.warnings:
            assert line in first and templates.plain(line) in lead


def test_the_drops_of_the_paper_stand_as_printed_and_its_ranks_agree(report: content.Report) -> None:
    """Δ of the heat map is the paper's own; ρ as scipy.stats.spearmanr has it, worked out by hand here."""
    drawn = str(drawings.paper_drops(report.paper))
    for row in paper.table2():
        if row.metric.startswith("delta_"):
            tip = f"{row.model}, {row.metric.removeprefix('delta_')}: {row.value:+.3f} ["
            assert tip in drawn.replace("−", "-") or abs(row.value) < 0.0005, tip
    assert drawn.count("not tested") == 21 * (4 + len(taxonomy.codes()))
    chart = str(drawings.clean_against_perturbed(report.models, report.paper))
    assert chart.count('class="dot paper"') == 21 and chart.count('class="dot ours"') == 2  # one has a gap
    ranks = [
        [sorted(one).index(x) for x in one] for one in map(list, zip(*spread(report.paper), strict=True))
    ]
    apart = sum((a - b) ** 2 for a, b in zip(*ranks, strict=True))
    assert drawings.rank_agreement(report.paper) == pytest.approx(
        1 - 6 * apart / (21 * (21**2 - 1)), abs=0.01
    )
    assert drawings.rank_agreement(report.models[:1]) is None


def spread(models: tuple[content.Model, ...]) -> list[tuple[float, float]]:
    return [(clean, perturbed) for _, clean, perturbed in drawings.accuracies(models)]


def test_lines_join_the_sizes_of_a_family(report: content.Report) -> None:
    assert (
        drawings.family("Qwen/Qwen2.5-1.5B-Instruct") == drawings.family("Qwen/Qwen2.5-3B") == "Qwen/Qwen2.5"
    )
    assert drawings.family("o4-mini") == "o4-mini"
    drawn = str(drawings.scatter(report.models, report.paper, "retention"))
    assert drawn.count("<polyline") == 5  # MUA-RL, LoopTool, Qwen3, ToolRL-Qwen2.5, Qwen2.5


def test_without_the_wish_the_page_says_why_it_has_no_rows(folders: list[str], tmp_path: Path) -> None:
    api.report(folders, tmp_path / "out", browser=False)
    assert "(--no-browser)" in (tmp_path / "out" / "report.html").read_text("utf-8")


# --- the command ----------------------------------------------------------------------------------------


def test_four_files_are_written_and_gaps_are_said(rbtc: Rbtc, folders: list[str], tmp_path: Path) -> None:
    found = rbtc("report", *folders, "--out", tmp_path / "out")
    assert found.code == 0
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "rbtc.json",
        "report.csv",
        "report.html",
        "report.json",
        "report.md",
    ]
    assert "gap: holed-3b: TD: 1 of 148" in found.err
    shown = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "The dataset folder of these runs (robustbench-tc) is not on this machine" in shown
    size = (tmp_path / "out" / "report.html").stat().st_size
    assert f"report.html, {size / 1e6:.1f} MB (also .md, .csv, .json)" in " ".join(found.out.split())


def test_check_paper_agrees_and_needs_no_run(rbtc: Rbtc) -> None:
    found = rbtc("report", "--check-paper")
    assert found.code == 0
    for part in ("126 of 126", "503 of 630", "26.3%", "26.6%", "19.2%", "DeepSeek-R1-Distill-14B", "0.502"):
        assert part in found.out
    assert "differs" not in found.out


@pytest.mark.usefixtures("new_folder")
def test_check_paper_fails_when_a_count_is_off(rbtc: Rbtc, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = paper.counts

    def off_by_one(model: str) -> dict[str, tuple[int, int]]:
        counts = honest(model)
        return counts | ({"CD": (counts["CD"][0] + 9, counts["CD"][1])} if model == "o4-mini" else {})

    monkeypatch.setattr(paper, "counts", off_by_one)
    found = rbtc("report", "--check-paper")
    assert found.code == 1
    assert "o4-mini delta_reward: printed 0.326" in found.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "at least one scored run"),
        (["nowhere"], "nowhere is not a run folder"),
        (["A", "--dataset", "nowhere"], "has no clean"),
    ],
)
def test_bad_input_is_one_line(rbtc: Rbtc, folders: list[str], arguments: list[str], line: str) -> None:
    given = [folders[0] if word == "A" else word for word in arguments]
    assert line in rbtc("report", *given).refusal


def test_an_interval_is_named_by_its_half_width() -> None:
    assert intervals.Interval(0.5, 0.4, 0.62, 10).half_width == pytest.approx(0.11)
