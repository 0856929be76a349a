"""Where a training config's files lie: in a folder, or on the Hub at a revision.

    python -m robustbench_tc.train_recipes.dataset toolrl-dr full
    python -m robustbench_tc.train_recipes.dataset org/toolrl-dr@v1.0.0 full

prints two lines for a shell: the train shards and the validation shards, as lists that hydra takes.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.io import parquet
from robustbench_tc.io.resolve import resolve_dataset
from robustbench_tc.schema import loads

VALIDATES_WITH = {"retry": "full"}
"""Config → another one whose validation rows are answered too, where it is there: what an error costs is
measured against the clean row of the same clean id."""

MADE_BY = {
    "mixture": "python -m robustbench_tc.train_recipes.mixture.rows",
    "retry_live": "python -m robustbench_tc.train_recipes.retry_live.rows",
}
"""Configs that no build has, and what makes them of one."""


def maker(config: str) -> str:
    """The command that makes the rows of a config."""
    return MADE_BY.get(config, "rbtc build toolrl-dr")


class Shards(NamedTuple):
    """The files of one config."""

    train: list[Path]
    validation: list[Path]


def locate(dataset: str, config: str) -> Shards:
    """The shards of `config` in a folder, or of `org/name[@revision]` on the Hub (downloaded).

    A folder with a revision is taken only if that is the version of its manifest. Raises UserError.
    """
    name, _, revision = dataset.partition("@")
    other = VALIDATES_WITH.get(config)
    patterns = [f"{config}/*.parquet", "manifest.json"]
    if other is not None:
        patterns.append(f"{other}/validation-*.parquet")
    folder = resolve_dataset(name, revision or None, patterns=patterns)
    known = sorted(path.parent.name for path in folder.glob("*/train-*.parquet"))
    if config in MADE_BY and config not in known:
        raise UserError(f"{dataset} has no config {config}: `{maker(config)} DATASET --out DIR` makes it")
    if config not in known:
        raise unknown(f"config of {dataset}", config, set(known))
    validation = parquet.shards(folder / config, "validation")
    if other is not None and (folder / other).is_dir():
        validation = [*validation, *parquet.shards(folder / other, "validation")]
    found = Shards(parquet.shards(folder / config, "train"), validation)
    for path in (*found.train, *found.validation):
        try:
            pq.read_metadata(path)
        except (OSError, ValueError):
            raise UserError(
                f"{path} is not a whole Parquet file: make it again with `{maker(path.parent.name)}`, "
                "or fetch it again"
            ) from None
    return found


def read_rows(paths: Sequence[Path], columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Rows as plain values. `extra_info` is JSON text where the reader does not know the column's type."""
    for row in (row for path in paths for row in pq.read_table(path, columns=columns).to_pylist()):
        info = row["extra_info"]
        yield row | {"extra_info": loads(info) if isinstance(info, str) else info}


def hydra_list(paths: Sequence[Path]) -> str:
    """Paths as one hydra value."""
    return "[" + ",".join(quoted(path.absolute()) for path in paths) + "]"


def quoted(path: Path) -> str:
    """A path as hydra's grammar takes any text."""
    text = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"


def written(
    write: Callable[..., Mapping[str, int]], options: argparse.ArgumentParser, given: Sequence[str] | None
) -> int:
    """A command that writes rows: prints the counts, or in one line what is wrong; its exit code."""
    try:
        counts = write(**vars(options.parse_args(given)))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write("".join(f"{name}: {count}\n" for name, count in counts.items()))
    return 0


def main() -> None:
    """The command line: two lines, train and validation shards as Hydra lists."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m robustbench_tc.train_recipes.dataset DATASET CONFIG")
    try:
        shards = locate(sys.argv[1], sys.argv[2])
    except UserError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{hydra_list(shards.train)}\n{hydra_list(shards.validation)}\n")


if __name__ == "__main__":
    main()
