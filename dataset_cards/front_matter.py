"""The YAML header of a card: what the Hub lists a repository by, and what `load_dataset` reads.

`datasets` keys its cache of a local folder by the header's configs and not by the files: without a checksum
in them, a second build of the same name would be answered with the first one's rows.
"""

from collections.abc import Iterable, Mapping, Sequence

from .facts import Release

FIRST = ["license", "language", "pretty_name", "base_model", "datasets"]
"""Keys that a card begins with."""


def dataset_header(
    title: str,
    rows: int,
    tags: Sequence[str],
    configs: Iterable[str],
    checksums: Mapping[str, str],
    release: Release | None,
    *,
    combined: Mapping[str, Sequence[str]] = {},
    splits: Iterable[str] = ("test",),
    licence: str = "apache-2.0",
    languages: Sequence[str] = ("en",),
) -> str:
    """The header of a dataset, the first of whose configs is the default.

    `checksums`: of configs whose files are known. `combined`: a further config → those whose rows it holds.
    Sizes and version are a release's; a build has `splits`.
    """
    from huggingface_hub import DatasetCardData  # here: many commands read a card's facts and write none

    sizes = release.sizes if release else {}
    version = {"version": release.plain_version} if release else {}
    data = DatasetCardData(
        license=licence,
        language=list(languages),
        pretty_name=title,
        size_categories=[size_category(rows)],
        task_categories=["text-generation"],
        tags=list(tags),
        configs=[
            {
                "config_name": name,
                **({} if place else {"default": True}),
                **version,
                **({"description": f"sha256:{checksums[name]}"} if name in checksums else {}),
                "data_files": [
                    {"split": split, "path": f"{name}/{split}-*.parquet"} for split in sizes.get(name, splits)
                ],
            }
            for place, name in enumerate(configs)
        ]
        + [
            {
                "config_name": name,
                **version,
                "description": " ".join(f"sha256:{checksums[part]}" for part in parts),
                "data_files": [{"split": "test", "path": [f"{part}/test-*.parquet" for part in parts]}],
            }
            for name, parts in combined.items()
        ],
        dataset_info=[
            {
                "config_name": name,
                "splits": [
                    {"name": split, "num_bytes": size.bytes, "num_examples": size.rows}
                    for split, size in its.items()
                ],
                "download_size": sum(size.download for size in its.values()),
                "dataset_size": sum(size.bytes for size in its.values()),
            }
            for name, its in sizes.items()
        ]
        or None,
    )
    return str(data.to_yaml(original_order=FIRST))


def size_category(rows: int) -> str:
    """The Hub's word for a number of rows: `1K<n<10K`."""
    borders = (("n<1K", 10**3), ("1K<n<10K", 10**4), ("10K<n<100K", 10**5), ("100K<n<1M", 10**6))
    return next((word for word, border in borders if rows < border), "1M<n<10M")
