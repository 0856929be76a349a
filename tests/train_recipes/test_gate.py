"""What each switch trains on passes the gate of training data, and a benchmark query in it does not."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc import schema
from robustbench_tc.api.building import build_live, build_training
from robustbench_tc.audits import contamination, gate
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.report import Check
from robustbench_tc.builders.training_rows import FineTuningRow
from robustbench_tc.io import marker, parquet
from robustbench_tc.schema import Message
from robustbench_tc.train_recipes import recipe as recipes
from robustbench_tc.train_recipes.rows import CONFIGS, Rows, choose

pytest.importorskip("great_expectations", reason="the gate needs the extra audit")

PERTURBED, CLEAN = True, False


@pytest.fixture(scope="module")
def sources(shared: Path) -> Path:
    return shared / "sources"


@pytest.fixture(scope="module")
def built(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ToolRL's 400 rows in all four configs."""
    out = tmp_path_factory.mktemp("built") / "toolrl-dr"
    build_training(rlla=sources, sources=sources, out=out)
    return out


def perturbed(row: Any) -> bool:
    return bool(row.extra_info["type_code"] != "clean")


def as_a_build(rows: Rows, recipe: recipes.Recipe, folder: Path) -> Folder:
    """Chosen rows in configs where their kind may stand, as `rbtc build toolrl-dr` leaves a folder."""
    single = {"clean": "mixed", "retry": "full"}.get(recipe.data, CONFIGS.get(recipe.data, ""))
    placed: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for split in ("train", "validation"):
        for row in getattr(rows, split):
            if not isinstance(row, FineTuningRow):
                placed["retry" if row.extra_info["rollout"] == "retry" else single, split].append(row)
            elif split == "train" or not perturbed(row):  # the others are looked at in `full` and `mixed`
                placed["paft", split].append(row)
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for (config, split), found in placed.items():
        table = schema.arrow_table(found, type(found[0]))
        parquet.write_shards([table], folder / config, split, table.schema)
        name = "perturbed" if split == "train" else "validation_perturbed"
        counts[config] |= {split: len(found), name: sum(map(perturbed, found))}
    for config in counts:
        counts[config] = {"train": 0, "perturbed": 0, "validation": 0} | counts[config]
    report = {"kind": "toolrl-dr", "report_version": marker.BUILD_VERSION, "rows": counts}
    (folder / marker.BUILD).write_bytes(msgspec.json.encode(report))
    return Folder(folder)


def judged(build: Folder, sources: Path) -> dict[str, Check]:
    """The gate's checks of training data but the origin's: nobody built this folder."""
    return {one.id: one for one in gate._training(build, None, sources, "", lambda line: None).checks}


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("grpo", ["data=clean"], {CLEAN}),
        ("grpo", ["data=dr-full"], {PERTURBED}),
        ("grpo", ["data=dr-mixed"], {CLEAN, PERTURBED}),
        ("grpo", ["data=retry"], {CLEAN}),
        ("grpo", ["data=retry", "alpha=0.25"], {CLEAN, PERTURBED}),
        ("grpo", ["data=dr-mixed", "alpha=0.2", "hold_out=reward"], {CLEAN, PERTURBED}),
        ("sft", ["data=paft"], {CLEAN, PERTURBED}),
        ("sft", ["data=clean"], {CLEAN}),
        ("sft", ["data=dr-full"], {PERTURBED}),
        ("sft", ["data=dr-mixed"], {CLEAN, PERTURBED}),
    ],
)
def test_rows_of_a_switch_pass_and_a_planted_query_does_not(
    name: recipes.Name, words: list[str], expected: set[bool], built: Path, sources: Path, tmp_path: Path
) -> None:
    recipe = recipes.read_recipe(name, words)[0]
    rows = choose(str(built), recipe)
    assert set(map(perturbed, rows.train)) == expected
    checks = judged(as_a_build(rows, recipe, tmp_path / "rows"), sources)
    idle = {one.id for one in checks.values() if not one.applied}  # no error, no perturbed row is there
    assert idle <= {"rows.retry_error_is_the_protocols", "rows.no_version_stands_twice"}
    assert [one for one in checks.values() if one.failed or (one.blocks and one.id not in idle)] == []
    assert ("rows.retry_error_is_the_protocols" in idle) is (recipe.data != "retry")
    assert checks["contamination.training"].applied and checks["rows.gold_earns_the_maximum"].applied

    _, asked = next(iter(contamination.conversations_of_sources(sources.resolve(), "paper")))
    query = Message("user", f"<user> {asked[-1].content} </user>")
    row = rows.train[-1]
    if isinstance(row, FineTuningRow):
        leak: Any = msgspec.structs.replace(row, messages=(row.messages[0], query, row.messages[-1]))
    else:
        leak = msgspec.structs.replace(row, prompt=(row.prompt[0], query))
    planted = as_a_build(rows._replace(train=[*rows.train[:-1], leak]), recipe, tmp_path / "planted")
    refused = judged(planted, sources)["contamination.training"]
    assert refused.blocks and len(refused.failures) == 1 and "/train[" in refused.failures[0].where


def test_live_rows_ask_nothing_of_the_benchmarks(sources: Path, tmp_path: Path) -> None:
    """Their own gate is that of a live build; here: no query of the static benchmark or of its pools."""
    build_live(out=tmp_path / "live", kinds=("timeout_after_effect", "stale_read"))
    chosen = choose(str(tmp_path / "live"), recipes.read_recipe("grpo", ["data=live"])[0])
    leaks, _ = contamination.leaks_of(sources)
    assert leaks is not None and {row.extra_info["source"] for row in chosen.train} == {"orders", "calendar"}
    for row in (*chosen.train, *chosen.validation):
        assert not leaks(row.extra_info["clean_id"], row.prompt)
    faults = {row.extra_info["type_code"] for row in chosen.train} - {"clean"}
    for held in ("orders", *faults):
        rest = choose(
            str(tmp_path / "live"), recipes.read_recipe("grpo", ["data=live", f"hold_out={held}"])[0]
        )
        assert 0 < len(rest.train) < len(chosen.train) and rest.validation == chosen.validation
        assert not any(held in (row.extra_info["source"], row.extra_info["type_code"]) for row in rest.train)
