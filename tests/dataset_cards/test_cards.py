"""Cards say what the release holds: counts, examples, evidence and audit come from its own files."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, strategies as st

from robustbench_tc import schema, taxonomy
from robustbench_tc.audits import evidence
from robustbench_tc.audits.report import AuditReport, Check, RedundantScore, Shortcut, TypeScore
from robustbench_tc.builders import configs
from robustbench_tc.builders.report import BuildReport
from robustbench_tc.dataset_cards.checkpoint import NAME, Checkpoint, checkpoint_card
from robustbench_tc.dataset_cards.examples import Example
from robustbench_tc.dataset_cards.facts import Release
from robustbench_tc.dataset_cards.render import benchmark_card, size_category
from robustbench_tc.dataset_cards.sentences import FLAGS, HOW_MADE, PAPER_ROWS, PAPER_SOURCES
from robustbench_tc.io import manifest, parquet
from robustbench_tc.io.files import decoded
from robustbench_tc.io.manifest import Manifest
from robustbench_tc.schema import Sample

from ..refusals import refuses
from ..released import small_build

CASES = list(map(msgspec.structs.asdict, configs.table_rows("evidence")))

SECTIONS = (
    "Structure",
    "Sources and licences",
    "How each type is made",
    "Audit",
    "Evidence",
    "Known issues",
    "Intended use",
    "Misuse",
    "Limits",
    "Cost",
    "Deviations from the paper's release, and comparability",
    "Citation",
)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_build(
        tmp_path_factory.mktemp("cards") / "robustbench-tc", codes=taxonomy.codes(), profile="bundled"
    )


@pytest.fixture(scope="module")
def report(build: Path) -> BuildReport:
    return msgspec.json.decode((build / "build_report.json").read_bytes(), type=BuildReport)


def audit_report(**more: Any) -> AuditReport:
    return AuditReport(
        **{
            "package_version": "0",
            "kind": "benchmark",
            "name": "x",
            "build": "x",
            "passed": True,
            "checks": (Check(id="a.passed", protects="x", status="passed"),),
            "evidence": evidence.audit(CASES, taxonomy.codes())[1],
            **more,
        }
    )


def facts(build: Path, version: str = "1.2.3", **audit: Any) -> Release:
    files = {path: manifest.entry(build / path) for path in manifest.files_of(build)}
    said = Manifest(
        kind="robustbench-tc",
        version=version,
        created_at="2026-11-20T12:00:00Z",
        package_version="0",
        licence="apache-2.0",
        data_sha256="",
        files=files,
    )
    return Release(build, said, audit_report(**audit), "RobustBench-TC", ["bfcl"])


@pytest.fixture(scope="module")
def card(build: Path, report: BuildReport) -> str:
    return benchmark_card(report, facts(build))


def front_matter(card: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(card.split("---\n")[1])
    return found


def section(card: str, name: str) -> str:
    return card.split(f"\n## {name}\n")[1].split("\n## ")[0]


def test_the_front_matter_names_every_config_with_its_files_and_sizes(
    build: Path, report: BuildReport, card: str
) -> None:
    front = front_matter(card)
    assert front["license"] == "apache-2.0" and front["language"] == ["en"]
    assert front["size_categories"] == ["1K<n<10K"]
    names = [*report.configs, "perturbed", *taxonomy.COMPONENTS]
    assert [config["config_name"] for config in front["configs"]] == names
    assert {str(config["version"]) for config in front["configs"]} == {"1.2.3"}
    for config in front["configs"]:
        (files,) = config["data_files"]
        paths = files["path"] if isinstance(files["path"], list) else [files["path"]]
        found = {path.parent.name for one in paths for path in build.glob(one)}
        name = config["config_name"]
        assert found == {*configs.combined(report.configs).get(name, [name])}
    hashes = [config["description"] for config in front["configs"]]
    assert len(set(hashes)) == len(hashes) and all(one.startswith("sha256:") for one in hashes)
    sizes = {info["config_name"]: info["splits"][0]["num_examples"] for info in front["dataset_info"]}
    for config, number in sizes.items():
        assert number == sum(pq.read_metadata(path).num_rows for path in (build / config).glob("*.parquet"))
    assert set(sizes) == set(report.configs)
    assert [config["config_name"] for config in front["configs"] if config.get("default")] == ["clean"]
    for info in front["dataset_info"]:
        assert info["download_size"] == sum(
            path.stat().st_size for path in (build / info["config_name"]).glob("*.parquet")
        )


def test_a_pre_release_loads_under_its_plain_version(build: Path, report: BuildReport) -> None:
    card = benchmark_card(report, facts(build, "2.0.0-rc.1"))
    assert {config["version"] for config in front_matter(card)["configs"]} == {"2.0.0"}
    assert "# RobustBench-TC 2.0.0-rc.1" in card


def test_every_section_is_there_and_nothing_is_left_empty(card: str) -> None:
    for name in SECTIONS:
        assert section(card, name).strip(), name
    assert "None" not in re.sub(r"```.*?```", "", card, flags=re.DOTALL).replace("None.", "")


def test_counts_are_those_of_the_files(build: Path, card: str) -> None:
    for code in ("clean", *taxonomy.codes()):
        rows = sum(pq.read_metadata(path).num_rows for path in (build / code).glob("*.parquet"))
        line = next(
            line for line in section(card, "Structure").splitlines() if line.startswith(f"| {code} |")
        )
        assert line.split("|")[4].strip() == str(rows)


def test_every_type_shows_a_row_of_this_release(build: Path, card: str) -> None:
    for code in ("clean", *taxonomy.codes()):
        shown = card.split(f"\n### {code}\n")[1].split("\n#")[0]
        assert HOW_MADE[code] in shown
        rows = [schema.record(row, Sample) for row in parquet.read_rows(parquet.shards(build / code))]
        (row,) = [row for row in rows if f"row: {row.id}\n" in shown]
        if row.injected_error:
            assert row.injected_error in shown
        elif code != "clean":
            after = row.changes[-1].after
            text = " ".join((after if isinstance(after, str) else schema.dumps(after)).split())
            assert text[:200] in shown


def test_types_without_a_supporting_case_are_called_constructed(build: Path, report: BuildReport) -> None:
    found = facts(build)
    constructed = ["realistic_typos", "paraphrase_parameter_description", "TD_AB"]
    assert found.constructed == constructed
    text = section(benchmark_card(report, found), "Evidence")
    assert "3 types have no supporting case and are constructed" in text
    lines = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.startswith("| ")}
    for code in taxonomy.codes():
        assert lines[code].endswith("| constructed |") is (code in constructed)


def test_a_type_whose_cases_support_it_no_more_is_called_constructed(build: Path) -> None:
    cases = [case | ({"verdict": "partly"} if case["type_code"] == "CD" else {}) for case in CASES]
    _, found = evidence.audit(cases, taxonomy.codes())
    assert "CD" in facts(build, evidence=found).constructed


def test_the_audit_is_shown_as_it_was(build: Path, report: BuildReport) -> None:
    paper = {"n": 50, "mean": 4.94, "median": 5.0, "std": 0.31, "frac_le_2": 0.0}
    score = TypeScore(
        type_code="realistic_typos",
        judge="hand-written",
        scope="all",
        population=73,
        n=73,
        mean=4.875,
        median=5.0,
        std=0.25,
        share_low=0.0137,
        upper=0.0736,
        paper=paper,
    )
    checks = (
        Check(id="a.passed", protects="x", status="passed"),
        Check(id="b.waived", protects="x", status="waived", reason="upstream has it", expires="2027-01-31"),
        Check(id="c.left", protects="x", status="not_run", reason="no network", may_be_left_out="issue 4"),
    )
    redundant = RedundantScore(judge=None, population=9)
    found = facts(build, checks=checks, paraphrase=(score,), redundant=redundant)
    text = section(benchmark_card(report, found), "Audit")
    assert "1 checks passed, 1 waived, 0 failed, 1 did not run" in text
    assert "Waived until 2027-01-31: `b.waived`. upstream has it" in text
    assert "Did not run: `c.left`. no network" in text
    numbers = "73 (all) | 4.88 | 5.0 | 0.25 | 1.4 % | 7.4 % | 50, 4.94, 5.0, 0.31, 0.0 % |"
    assert f"| realistic_typos | hand-written | {numbers}" in text
    assert "not an\nindependent measurement" in text
    assert "nobody was asked whether a new tool could answer" in text
    asked = facts(build, redundant=RedundantScore(judge="judge-7", population=9, asked=9, could_answer=2))
    assert "2 of 9 times yes (judge-7)" in benchmark_card(report, asked)


def test_a_build_claims_no_audit_and_no_version_to_cite(build: Path, report: BuildReport) -> None:
    card = benchmark_card(report)
    assert (build / "README.md").read_text() == card
    assert "This folder is a build" in card and "Not audited yet" in card
    assert "revision=" not in card.split("```")[1]
    assert "dataset_info" not in front_matter(card)


def test_cards_speak_of_the_paper_only_where_its_samples_are(report: BuildReport) -> None:
    assert "rows in the paper" not in benchmark_card(report)
    assert "does not hold the paper's samples (profile `bundled`)" in benchmark_card(report)
    beside = benchmark_card(msgspec.structs.replace(report, profile="paper"))
    assert "| CD | MisDesc | reward | " in beside and "rows in the paper" in beside


def test_rows_by_source_are_those_of_the_files(build: Path, report: BuildReport, card: str) -> None:
    rows = [
        row
        for code in ("clean", *taxonomy.codes())
        for row in parquet.read_rows(parquet.shards(build / code))
    ]
    lines = {line.split(" |")[0]: line for line in section(card, "Structure").splitlines()}
    for source in {row["source"] for row in rows}:
        mine = [row for row in rows if row["source"] == source]
        clean = [len(json.loads(row["tools"])) for row in mine if row["type_code"] == "clean"]
        means = f"{len(mine) / 23:.1f} | {sum(clean) / len(clean):.1f}"
        assert lines[f"| {source}"] == f"| {source} | {len(clean)} | {len(mine)} | {means} |"
    beside = section(benchmark_card(msgspec.structs.replace(report, profile="paper")), "Structure")
    assert "| 1646 | 71.6 | 3.1 |" in beside  # 1646 / 23, as Table 3 prints its average


def test_the_papers_counts_are_its_own() -> None:
    assert sum(rows for rows, _ in PAPER_SOURCES.values()) == 3721
    assert sum(PAPER_ROWS.values()) == 3721 and PAPER_ROWS["clean"] == 199
    assert list(PAPER_ROWS) == ["clean", *taxonomy.codes()]


def test_every_type_and_every_flag_has_its_words(report: BuildReport) -> None:
    assert set(HOW_MADE) == {"clean", *(t.code for t in taxonomy.types("known"))}
    assert set(report.flags) <= set(FLAGS)


@given(st.lists(st.text(alphabet="`~-#\na ", max_size=30), max_size=4))
def test_no_text_of_a_row_gets_out_of_its_block(lines: list[str]) -> None:
    block = Example("id", tuple(lines)).block
    fence = block.split("text\n")[0]
    assert set(fence) == {"`"}
    inside = block.removeprefix(f"{fence}text\n").removesuffix(f"\n{fence}")
    assert inside == "\n".join(lines) and fence not in inside


@pytest.mark.parametrize(
    ("rows", "word"),
    [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (10**6, "1M<n<10M")],
)
def test_size_categories(rows: int, word: str) -> None:
    assert size_category(rows) == word


# --- checkpoints --------------------------------------------------------------------------------------

MODEL = {
    "name": "tiny",
    "base_model": "acme/tiny",
    "licence": "apache-2.0",
    "dataset": "toolrl-dr",
    "dataset_version": "1.0.0",
    "dataset_config": "full",
    "recipe_name": "grpo",
}


def checkpoint(**said: Any) -> str:
    """The card of a model whose file says this."""
    return checkpoint_card(decoded(msgspec.json.encode(said), Checkpoint, NAME), "1.0.0")


def test_a_checkpoint_without_numbers_claims_none() -> None:
    card = checkpoint(**MODEL)
    assert "This checkpoint was not evaluated." in card
    assert front_matter(card)["base_model"] == "acme/tiny"


def test_what_a_checkpoint_says_stays_in_its_place() -> None:
    hostile = "x\ntags: [evil]\n--- | `y`"
    card = checkpoint(**{**MODEL, "base_model": hostile, "results": [{"a|b": "1|2\n| 3 |"}]})
    front = front_matter(card)
    assert front["base_model"] == hostile and "evil" not in front["tags"]
    lines = [line.strip() for line in card.splitlines()]
    assert lines[lines.index("| a\\|b |") + 2] == "| 1\\|2 \\| 3 \\| |"


def test_a_ragged_or_incomplete_checkpoint_is_refused() -> None:
    refuses(r"checkpoint\.json .*base_model", checkpoint, name="tiny")
    refuses("different keys", checkpoint, **MODEL, results=[{"a": 1}, {"b": 1}])


def test_what_needs_no_reading_stands_beside_the_audit(build: Path, report: BuildReport, card: str) -> None:
    assert "Request-blind baselines" not in card  # an audit from before it was measured
    counted: dict[str, Any] = {"chance": 0.5, "right": {"picks-best-offer": 148, "picks-by-position": 77}}
    shortcuts = tuple(
        Shortcut(type_code=code, rows=148, classifier=100, reason="Always the cheaper one.", **counted)
        for code in ("CD", "TD")
    )
    made = section(benchmark_card(report, facts(build, shortcuts=shortcuts)), "Audit")
    assert "| type | rows | picks-best-offer | picks-by-position | classifier | chance |" in made
    assert "| CD | 148 | 1.000 | 0.520 | 0.676 | 0.500 |" in made
    assert "- Solved without reading the request, CD, TD: Always the cheaper one." in made
