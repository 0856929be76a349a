"""Rows of `full` and of `retry` together, each with the recipe that it is of.

    python -m robustbench_tc.train_recipes.mixture.rows toolrl-dr --share 0.5 --out mixture-training

writes mixture-training/mixture/{train,validation}-….parquet. Of the train rows the stated share is of
`retry`: as many rows as the configs allow, or `--rows` of them, drawn by the seed; what is left out is
counted. Validation has every row of `full` and those of `retry` that meet an error. verl reads `agent_name`
and rolls each row out as its own recipe does; `extra_info.recipe` says to the reward which one that is.
`mixture.json` keeps share, seed, the sha256 of what was mixed, and the counts.
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from robustbench_tc import schema, seeding
from robustbench_tc.builders.training_rows import TrainingRow
from robustbench_tc.errors import UserError
from robustbench_tc.io import folders, marker, parquet
from robustbench_tc.train_recipes.dataset import locate, written

from .reward import RETRY, SINGLE

CONFIG = "mixture"

NUMBERS = "mixture.json"
"""Beside the config's folder: what was mixed, and how many rows."""

CONFIGS = {SINGLE: "full", RETRY: "retry"}
"""Recipe → the config that its rows are from."""

AGENTS = {SINGLE: "full_agent", RETRY: "retry_agent"}
"""Recipe → verl's name of its agent loop."""


def sizes(single: int, retry: int, share: float, rows: int | None = None) -> tuple[int, int]:
    """How many rows of each are taken: the most, or `rows`, with `share` of `retry` (the nearest row).

    Raises UserError for what is no share, for one that leaves no row of one of them, and for more rows than
    there are at this share.
    """
    if not 0 < share < 1:
        raise UserError(f"--share {share:g}: give the share of retry rows, above 0 and below 1")

    def part(rows: int) -> int:
        return math.floor(rows * share + 0.5)

    fitting = (n for n in range(single + retry, -1, -1) if part(n) <= retry and n - part(n) <= single)
    most = next(fitting)
    if rows is not None and rows > most:
        raise UserError(
            f"--rows {rows}: {single} rows of full and {retry} of retry give at most {most} at a share of "
            f"{share:g}"
        )
    total = most if rows is None else rows
    if not 0 < part(total) < total:
        raise UserError(
            f"--share {share:g} of {total} rows leaves none of one of full and retry: choose another share"
        )
    return total - part(total), part(total)


def write(dataset: str, out: Path, share: float, seed: int = 0, *, rows: int | None = None) -> dict[str, int]:
    """Writes both splits to `out`; rows by split and recipe, and those that are left out, by reason.

    Raises UserError for a dataset without the two configs, and where there is something at `out`.
    """
    shards = {recipe: locate(dataset, config) for recipe, config in CONFIGS.items()}
    train = {recipe: _read(found.train) for recipe, found in shards.items()}
    validation = {
        recipe: _read([path for path in found.validation if path.parent.name == CONFIGS[recipe]])
        for recipe, found in shards.items()
    }
    counts: Counter[str] = Counter()
    kept = sizes(len(train[SINGLE]), len(train[RETRY]), share, rows)
    for (recipe, found), number in zip(train.items(), kept, strict=True):
        train[recipe] = seeding.rng(seed, "mixture", recipe).sample(found, number)
        counts[f"left out: {CONFIGS[recipe]}, beyond the share"] = len(found) - number
    met = [row for row in validation[RETRY] if row.extra_info.get("retry")]
    counts["left out: validation of retry, no error to meet"] = len(validation[RETRY]) - len(met)
    validation[RETRY] = met
    with folders.atomic_dir(out, kind="training-rows", hint="take another --out") as folder:
        for split, by_recipe in (("train", train), ("validation", validation)):
            pairs = [(row, recipe) for recipe, taken in by_recipe.items() for row in taken]
            if split == "train":  # so that no batch is of one recipe, whoever reads the file
                seeding.rng(seed, "mixture", "order").shuffle(pairs)
            named = [_named(*pair, index) for index, pair in enumerate(pairs)]
            table = schema.arrow_table(named, MixtureRow)
            parquet.write_shards([table], folder / CONFIG, split, table.schema)
            counts.update(f"{split}: {CONFIGS[recipe]}" for _, recipe in pairs)
        read = {
            f"{path.parent.name}/{path.name}": marker.sha256(path)
            for found in shards.values()
            for path in (*found.train, *found.validation)
        }
        about = {"share": share, "seed": seed, "rows": dict(counts), "sha256": read}
        (folder / NUMBERS).write_text(json.dumps(about, indent=1) + "\n")
    return dict(counts)


def _read(paths: Sequence[Path]) -> list[TrainingRow]:
    try:
        return [schema.record(row, TrainingRow) for row in parquet.read_rows(paths)]
    except (ValueError, RecursionError) as error:  # msgspec's, and of the JSON inside
        raise UserError(f"{paths[0].parent}: not rows of `rbtc build toolrl-dr`: {error}") from None


class MixtureRow(TrainingRow, frozen=True, kw_only=True):
    """A row and who rolls it out."""

    agent_name: str


def _named(row: TrainingRow, recipe: str, index: int) -> MixtureRow:
    """The row with its recipe; verl knows it by its place, which is another in each config."""
    told = {**row.extra_info, "recipe": recipe, "index": index}
    return MixtureRow(**{**msgspec.structs.asdict(row), "extra_info": told}, agent_name=AGENTS[recipe])


def main(given: Sequence[str] | None = None) -> int:
    """The command line: prints the counts."""
    options = argparse.ArgumentParser(
        prog="python -m robustbench_tc.train_recipes.mixture.rows",
        description="Rows of full and of retry together, each rolled out and rewarded as its recipe does.",
    )
    options.add_argument("dataset", help="what `rbtc build toolrl-dr` wrote, or ORG/NAME@REVISION on the Hub")
    options.add_argument("--share", type=float, default=0.5, help="of the train rows, those of retry (0.5)")
    options.add_argument("--rows", type=int, help="train rows; default: the most that the share allows")
    options.add_argument("--seed", type=int, default=0, help="draws and orders the rows (0)")
    options.add_argument("--out", type=Path, default=Path("mixture-training"))
    return written(write, options, given)


if __name__ == "__main__":
    sys.exit(main())
