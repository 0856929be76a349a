"""The YAML header of a card: what the Hub lists a repository by, and what `load_dataset` reads.

`datasets` keys its cache of a local folder by the header's configs and not by the files: without a checksum
in them, a second build of the same name would be answered with the first one's rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .facts import Release

_FIRST = ["license", "language", "pretty_name", "base_model", "datasets"]
"""Keys that a card begins with."""


def dataset_header(
    name: str,
    rows: int,
    tags: list[str],
    configs: Iterable[dict[str, Any]],
    release: Release | None,
    licence: str = "apache-2.0",
    languages: Sequence[str] = ("en",),
) -> str:
    """The header of a dataset: `configs` as `configs_of` makes them; the sizes are those of a release."""
    from huggingface_hub import DatasetCardData  # here: many commands read a card's facts and write none

    data = DatasetCardData(
        license=licence,
        language=list(languages),
        pretty_name=name,
        size_categories=[size_category(rows)],
        task_categories=["text-generation"],
        tags=tags,
        configs=list(configs),
        dataset_info=[
            {
                "config_name": name,
                "splits": [
                    {"name": split, "num_bytes": size.bytes, "num_examples": size.rows}
                    for split, size in splits.items()
                ],
                "download_size": sum(size.download for size in splits.values()),
                "dataset_size": sum(size.bytes for size in splits.values()),
            }
            for name, splits in (release.sizes if release else {}).items()
        ]
        or None,
    )
    return str(data.to_yaml(original_order=_FIRST))


def model_header(licence: str, base_model: str, dataset_repo: str | None, tags: list[str]) -> str:
    """The header of a model."""
    from huggingface_hub import ModelCardData

    data = ModelCardData(
        license=licence,
        base_model=base_model,
        datasets=[dataset_repo] if dataset_repo else None,
        library_name="transformers",
        pipeline_tag="text-generation",
        language=["en"],
        tags=tags,
    )
    return str(data.to_yaml(original_order=_FIRST))


def configs_of(
    names: Iterable[str],
    default: str,
    checksums: Mapping[str, str],
    release: Release | None,
    splits: Iterable[str] = ("test",),
) -> list[dict[str, Any]]:
    """Each config with its files (of a build in `splits`); a release's version, and the checksum if known."""
    found = []
    for name in names:
        one = {"config_name": name, **({"default": True} if name == default else {})}
        if release is not None:
            one["version"] = release.plain_version
        if name in checksums:
            one["description"] = f"sha256:{checksums[name]}"
        there = splits if release is None else release.sizes[name]
        paths = [{"split": split, "path": f"{name}/{split}-*.parquet"} for split in there]
        found.append(one | {"data_files": paths})
    return found


def size_category(rows: int) -> str:
    """The Hub's word for a number of rows: `1K<n<10K`."""
    borders = (("n<1K", 10**3), ("1K<n<10K", 10**4), ("10K<n<100K", 10**5), ("100K<n<1M", 10**6))
    return next((word for word, border in borders if rows < border), "1M<n<10M")
