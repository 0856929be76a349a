"""Where a training config's files lie: in a folder, or on the Hub at a revision.

    python -m robustbench_tc.train_recipes.dataset toolrl-dr full
    python -m robustbench_tc.train_recipes.dataset org/toolrl-dr@v1.0.0 full

prints two lines for a shell: the train shards and the validation shards, as lists that hydra takes.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from robustbench_tc import parquet
from robustbench_tc.errors import UserError, unknown


class Shards(NamedTuple):
    """The files of one config."""

    train: list[Path]
    validation: list[Path]


def locate(dataset: str, config: str) -> Shards:
    """The shards of `config` in a folder, or of `org/name[@revision]` on the Hub (downloaded).

    A folder with a revision is taken only if the revision is its own version. Raises UserError.
    """
    name, _, revision = dataset.partition("@")
    folder = Path(name)
    if not folder.is_dir():
        folder = _download(name, revision or "main", config)
    elif revision:
        _check_version(folder, revision)
    known = sorted(path.parent.name for path in folder.glob("*/train-*.parquet"))
    if config not in known:
        raise unknown(f"config of {dataset}", config, set(known))
    return Shards(parquet.shards(folder / config, "train"), parquet.shards(folder / config, "validation"))


def _check_version(folder: Path, revision: str) -> None:
    try:
        version = json.loads((folder / "build_report.json").read_bytes())["dataset_version"]
    except (OSError, ValueError, KeyError):
        raise UserError(f"{folder} does not say its version: leave out @{revision}") from None
    if revision.removeprefix("v") != version:
        raise UserError(
            f"{folder} holds version {version}, not {revision}: name the right folder, or the Hub's"
        )


def _download(name: str, revision: str, config: str) -> Path:
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(
            huggingface_hub.snapshot_download(
                name,
                repo_type="dataset",
                revision=revision,
                allow_patterns=[f"{config}/*.parquet", "build_report.json"],
            )
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise UserError(
            f"no folder {name} and no dataset {name}@{revision} on the Hub: {str(error).splitlines()[0]}"
        ) from None


def hydra_list(paths: Sequence[Path]) -> str:
    """Paths as one hydra value."""
    return "[" + ",".join(f"'{path.absolute()}'" for path in paths) + "]"


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python -m robustbench_tc.train_recipes.dataset DATASET CONFIG")
    try:
        shards = locate(sys.argv[1], sys.argv[2])
    except UserError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{hydra_list(shards.train)}\n{hydra_list(shards.validation)}\n")


if __name__ == "__main__":
    main()
