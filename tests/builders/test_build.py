"""`rbtc build` end to end: counts, invariants, bytes, kills, and every kind of bad input."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import msgspec
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.api.building import build_release
from robustbench_tc.builders.benchmark import RobustBenchTC
from robustbench_tc.builders.build import BuildSpec, select_types
from robustbench_tc.builders.configs import CONFIGS, TABLES
from robustbench_tc.builders.report import Tally
from robustbench_tc.io import parquet
from robustbench_tc.schema import Change, Sample, record

from ..conftest import Done, Rbtc
from ..refusals import refuses
from ..trees import tree
from .perturb import cases


def rows(release: Path, config: str) -> Iterator[Sample]:
    for row in parquet.read_rows(parquet.shards(release / config)):
        yield record(row, Sample)


def counts(release: Path) -> dict[str, int]:
    report = json.loads((release / "build_report.json").read_text())
    return {code: sum(by_source.values()) for code, by_source in report["rows"].items()}


# --- what is built ------------------------------------------------------------------------------------


def test_the_paper_profile_is_the_199_and_reaches_the_papers_counts(paper: Path, shared: Path) -> None:
    ids = json.loads((shared / "spec" / "clean_ids.json").read_text())
    assert {r.clean_id for r in rows(paper, "clean")} == {i for group in ids.values() for i in group}
    floor: dict[str, int] = json.loads((shared / "spec" / "paper" / "facts.json").read_text())["per_type_n"]
    found = counts(paper)
    floor |= {"paraphrase_tool_description": 197, "paraphrase_parameter_description": 196}
    assert {code: n for code, n in floor.items() if found[code] < n} == {}
    assert found == {"clean": 199} | {kind.code: kind.rows.paper for kind in taxonomy.types()}
    assert found["paraphrase_tool_description"] == 197
    assert found["paraphrase_parameter_description"] == 196
    assert found["CD_AB"] == found["TD_AB"] == 144
    assert {found[code] for code in ("CD", "TD", "CD_NT", "TD_NT")} == {148}
    assert sum(found.values()) == 3977


def test_the_subset_paper_of_the_reward_types_is_102(paper: Path) -> None:
    for code in ("CD", "TD", "CD_NT", "TD_NT"):
        kept = [r for r in rows(paper, code) if r.source != "bfcl_v3" and r.category != "level3"]
        assert len(kept) == 102


def test_the_history_flag_marks_the_eleven_transcripts(paper: Path) -> None:
    flagged = [r.source for r in rows(paper, "CD_AB") if "history_names_distractor" in r.flags]
    assert flagged == ["apibank"] * 11


def test_recorded_texts_are_labelled_recorded_and_bundled_ones_hand_written(
    paper: Path, bundled: Path
) -> None:
    assert {row.generator for row in rows(paper, "query_paraphrase")} == {"recorded"}
    assert {row.generator for row in rows(bundled, "query_paraphrase")} == {"hand-written"}
    assert {row.generator for row in rows(bundled, "CD")} == {"rule"}


def test_it_loads_by_name_offline(bundled: Path, tmp_path: Path) -> None:
    code = (
        "import datasets, json; datasets.disable_progress_bars(); "
        'd = datasets.load_dataset("robustbench-tc", "CD_AB", split="test"); '
        's = datasets.load_dataset("robustbench-tc", streaming=True, split="test"); '
        'print(json.dumps([len(d), d.column_names[:2], datasets.get_dataset_config_names("robustbench-tc"), '
        "next(iter(s))['type_code']]), flush=True); "
        # A stream that was left in the middle can abort the interpreter when it goes down: pyarrow's threads.
        "import os; os._exit(0)"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=bundled.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    number, first, configs, default = json.loads(done.stdout.splitlines()[-1])
    assert number == counts(bundled)["CD_AB"]
    assert first == ["id", "clean_id"]
    assert configs == [*CONFIGS, *TABLES, "perturbed", *taxonomy.COMPONENTS]
    assert default == "clean"


def test_the_datasets_builder_makes_the_same_rows(bundled: Path, tmp_path: Path) -> None:
    datasets.disable_progress_bars()
    for name in ("same_name_C", "known_issues", "taxonomy"):
        builder = RobustBenchTC(config_name=name, cache_dir=str(tmp_path))
        builder.download_and_prepare()
        made = builder.as_dataset(split="test")
        files = [str(path) for path in parquet.shards(bundled / name)]
        published = datasets.Dataset.from_parquet(files, cache_dir=str(tmp_path))
        assert made.features == published.features
        assert made.to_list() == published.to_list()


def test_another_build_of_the_same_name_is_not_answered_from_the_cache(bundled: Path, tmp_path: Path) -> None:
    """`datasets` keys its cache of a local folder by the card, so the card has to know the files."""
    out = tmp_path / "robustbench-tc"
    build_release(BuildSpec(profile="bundled", codes=("CD",), seed=5), out)
    for release in (bundled, out):
        loaded = datasets.load_dataset(str(release), "CD", split="test", cache_dir=str(tmp_path / "cache"))
        assert set(loaded["seed"]) == {5 if release == out else 0}


# --- bytes --------------------------------------------------------------------------------------------


def test_two_builds_in_two_processes_are_the_same_bytes(bundled: Path, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere" / "robustbench-tc"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", "from robustbench_tc.cli import main; main()", "build"]
    command += ["--profile", "bundled", "--num-proc", "2", "--out", str(out)]
    subprocess.run(command, env=environment, check=True)
    assert tree(out) == tree(bundled)


def test_another_seed_moves_positions_and_distractors_but_no_clean_row(bundled: Path, tmp_path: Path) -> None:
    out = tmp_path / "robustbench-tc"
    build_release(BuildSpec(profile="bundled", seed=1, codes=("CD", "same_name_C")), out)
    assert (
        tree(out)["clean/test-00000-of-00001.parquet"] == (tree(bundled)["clean/test-00000-of-00001.parquet"])
    )
    for code in ("CD", "same_name_C"):
        before = {row.id: [t.name for t in row.tools] for row in rows(bundled, code)}
        after = {row.id: [t.name for t in row.tools] for row in rows(out, code)}
        assert before.keys() == after.keys()
        assert before != after


def test_a_row_does_not_depend_on_the_other_types_of_its_build(bundled: Path, tmp_path: Path) -> None:
    out = tmp_path / "robustbench-tc"
    build_release(BuildSpec(profile="bundled", codes=("TD_AB",)), out)
    name = "TD_AB/test-00000-of-00001.parquet"
    assert tree(out)[name] == tree(bundled)[name]


@pytest.mark.parametrize(
    ("change", "measured"),
    [
        (Change("/messages/0/content", "four", "fo"), [0.5]),
        (Change("/messages/0/content", "", "an addition", 4), None),
        (Change("/messages/0", None, {"role": "user", "content": "Hello."}), None),
        (Change("/messages/0", {"role": "user", "content": "Hello."}, None), None),
        (Change("/tools", ["a", "b"], ["b", "a"]), None),
    ],
)
def test_lengths_are_those_of_rewritten_texts(change: Change, measured: list[float] | None) -> None:
    row = msgspec.structs.replace(
        cases.CLEAN["table"], type_code="query_paraphrase", component="observation", changes=(change,)
    )
    tally = Tally()
    tally.add(row)
    assert tally.ratios.get("query_paraphrase") == measured
    assert tally.rows == {"query_paraphrase": {"bfcl_v3": 1}}


def test_a_build_says_what_it_left_out_and_how_to_load_a_config(rbtc: Rbtc, tmp_path: Path) -> None:
    done = rbtc("build", "--profile", "bundled", "--types", "transient_timeout", "--out", tmp_path / "one")
    assert 'load_dataset("one", "transient_timeout", split="test")' in done.err
    assert "records left out: no_label 1 (each one in known_issues)" in done.out


# --- bad input ----------------------------------------------------------------------------------------


def refused(done: Done, *parts: str) -> None:
    """One line on standard error that holds every part, a code that is not 0, no traceback."""
    assert done.code != 0 and len(done.err.strip().splitlines()) == 1, done.err
    assert [part for part in parts if part not in done.err] == [], done.err


def test_unknown_names_are_answered_with_near_misses(rbtc: Rbtc, tmp_path: Path) -> None:
    out = tmp_path / "o"
    refused(rbtc("build", "--profile", "papr", "--out", out), "papr", "paper")
    refused(rbtc("build", "--profile", "bundled", "--types", "CD_AC", "--out", out), "CD_AC", "CD_AB")
    refused(rbtc("build", "--profile", "bundled", "--generator", "recordet", "--out", out), "recordet")
    refused(rbtc("build", "--profile", "bundled", "--generator", "CD=none", "--out", out), "rule")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_answer_names_its_key_and_the_count(rbtc: Rbtc, shared: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "generations.jsonl"
    lines = (shared / "recorded" / "generations.jsonl").read_text().splitlines()
    kept = [line for line in lines if '"kind": "query_paraphrase"' not in line]
    recorded.write_text("\n".join(kept[:-1]))
    shutil.copy(shared / "recorded" / "redundant_judgments.jsonl", tmp_path)  # it names the samples
    command = ["build", "--sources", shared / "sources", "--generator", f"recorded:{recorded}"]
    command += ["--types", "query_paraphrase,CD"]
    done = rbtc(*command, "--out", tmp_path / "o")
    refused(done, "query_paraphrase", "191", "first key", "--allow-missing")
    done = rbtc(*command, "--allow-missing", "--out", tmp_path / "o")
    assert done.code == 0
    report = json.loads((tmp_path / "o" / "build_report.json").read_text())
    assert report["rows"]["query_paraphrase"] == {}
    assert {s["reason"] for s in report["skipped"] if s["type_code"] == "query_paraphrase"} == {"no_answer"}


def test_an_output_that_cannot_be_written_is_one_line(rbtc: Rbtc, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(rbtc("build", "--profile", "bundled", "--out", tmp_path / "file"), "exists: ")
    refused(rbtc("build", "--profile", "bundled", "--out", tmp_path / "file" / "below"), "file")


def test_types_are_chosen_by_code_component_pack_and_level() -> None:
    assert select_types(["reward", "same_name_A"]) == (
        "same_name_A", "CD", "TD", "CD_NT", "TD_NT", "CD_AB", "TD_AB",
    )  # fmt: skip
    assert select_types([]) == taxonomy.codes()
    assert select_types(["CD_AB_pref"]) == ("CD_AB_pref",)
    refuses("unknown perturbation type 'transitions': did you mean transition", select_types, ["transitions"])
    kinds = taxonomy.types("all")
    assert select_types(["core"]) == select_types(["observation", "action", "reward", "transition"])
    assert select_types(["offers"]) == tuple(kind.code for kind in kinds if kind.pack == "offers")
    reasoning = tuple(
        kind.code for kind in kinds if kind.level == "reasoning" and kind.code != "prerequisite"
    )
    assert select_types(["reasoning"]) == reasoning
    assert {"CD_AB", "CD_AB_pref"} <= set(select_types(["reasoning"]))
    assert set(select_types(["reward"])) <= set(taxonomy.codes()), "a component is that of the core"
    assert select_types(["core", "offers"]) == tuple(k.code for k in kinds if k.pack in ("core", "offers"))


def test_types_of_few_rows_are_built_only_when_named(tmp_path: Path) -> None:
    packs = ["language", "registry", "abstention", "mixed"]
    few = {kind.code for kind in taxonomy.types("all") if 0 < kind.rows.paper < 30}
    assert {"prerequisite", "rot_union", "language_full_zh"} <= few
    assert few.isdisjoint(select_types([*packs, "perception", "reasoning"]))
    assert select_types(["registry", "prerequisite"]) == tuple(
        kind.code
        for kind in taxonomy.types("all")
        if kind.pack == "registry" and not kind.code.startswith("rot_")
    )
    assert {kind.code for kind in taxonomy.few(packs)} == few
    assert {kind.code for kind in taxonomy.few([*packs, *sorted(few)])} == set()
    said: list[str] = []
    api.build(tmp_path / "out", profile="bundled", types=("registry", "rot_heavy"), progress=said.append)
    left_out = [line for line in said if "left out" in line]
    assert (
        len(left_out) == 1 and left_out[0].startswith("4 types left out") and "prerequisite 9" in left_out[0]
    )
    assert not (tmp_path / "out" / "prerequisite").exists() and (tmp_path / "out" / "rot_heavy").is_dir()


# --- list and show ------------------------------------------------------------------------------------


def test_list_types_prints_all_of_them(rbtc: Rbtc) -> None:
    listed: list[dict[str, Any]] = json.loads(rbtc("list", "types", "--json").out)
    assert [t["code"] for t in listed][:22] == list(taxonomy.codes())
    assert "same_name_A" in rbtc("list", "types").out


def test_show_takes_an_id_a_clean_id_or_a_unique_prefix(rbtc: Rbtc, bundled: Path) -> None:
    row = next(rows(bundled, "CD_AB"))
    for wanted in (row.id, row.clean_id):
        done = rbtc("show", bundled, wanted)
        assert done.code == 0
        assert "CD_AB" in done.out and "Price per call" in done.out
    assert "CD_AB" not in rbtc("show", bundled, f"{row.clean_id}::TD").out
    refused(rbtc("show", bundled, "bfcl_v3__"), "fits", "say more")
    refused(rbtc("show", bundled, "bfcl_v4__nothing"), "did you mean")
    refused(rbtc("show", bundled.parent / "none", row.clean_id), "holds no release")
    refused(rbtc("show", bundled, f"{row.clean_id}::XX"), "XX")
