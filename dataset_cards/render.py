"""Dataset cards: YAML front matter that `datasets` reads, and prose with the release's own numbers.

The reports are taken as they are and the rest is counted in the release's files (`facts.py`), so that a card
can never say another number than its data hold. The card of a dataset of own tools says that it is not the
published benchmark.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from robustbench_tc import __version__, sources, taxonomy
from robustbench_tc.builders.configs import combined
from robustbench_tc.builders.report import BuildReport, LiveReport
from robustbench_tc.errors import UserError
from robustbench_tc.io import templates
from robustbench_tc.own.book import NAME as BOOK, Book, read_book
from robustbench_tc.schema import GOLD_NOT_STATED

from . import sentences
from .citation import paper_bibtex
from .facts import Release
from .sentences import FLAGS, HOW_MADE, PAPER_ROWS, PAPER_SOURCES


def card(
    name: str,
    report: Any,
    release: Release | None,
    *,
    title: str,
    rows: int,
    tags: Sequence[str],
    configs: Iterable[str],
    header: Mapping[str, Any] = {},
    checksums: Mapping[str, str] | None = None,
    **facts: Any,
) -> str:
    """The card of a dataset from the template `name`: of a build, or with `release` of a release, which says
    more. `header`: what `dataset_header` takes besides; `facts`: what this template asks for besides."""
    if checksums is None:
        checksums = report.checksums
    return template(name).render(
        header=dataset_header(title, rows, tags, configs, checksums, release, **header),
        report=report,
        release=release,
        how_made=HOW_MADE,
        flags=FLAGS,
        bibtex=paper_bibtex(),
        package_version=__version__,
        **facts,
    )


def benchmark_card(report: BuildReport, release: Release | None = None) -> str:
    """`README.md` of the benchmark: of a build, or with `release` of a release, which says more."""
    counts = ((code, sum(by_source.values())) for code, by_source in report.rows.items())
    count = {code: rows for code, rows in counts if rows}
    return card(
        "robustbench_tc.md.j2",
        report,
        release,
        title="RobustBench-TC",
        rows=report.total,
        tags=("tool-calling", "function-calling", "robustness", "agents", "benchmark"),
        configs=report.configs,
        header={"languages": sentences.language_codes(count), "combined": combined(report.configs)},
        types=[t for t in taxonomy.known_with(count) if t.code in count],
        count=count,
        sentences=sentences,
        further_requests=sentences.further_requests(count),
        skips=skips(report),
        answerable=_answerable(report),
        per_source=per_source(report),
        core=len(taxonomy.codes()) + 1,
        paper_sources=PAPER_SOURCES,
        paper_rows=PAPER_ROWS,
    )


def _answerable(report: BuildReport) -> dict[str, tuple[int, int]]:
    """(rows that somebody could answer, rows) of clean and of the core types."""
    unstated = report.flags.get(GOLD_NOT_STATED, {})

    def counted(codes: Iterable[str]) -> tuple[int, int]:
        known = [code for code in codes if code in report.rows]
        rows = sum(sum(report.rows[code].values()) for code in known)
        return rows - sum(unstated.get(code, 0) for code in known), rows

    return {"clean": counted([taxonomy.CLEAN]), "perturbed": counted(taxonomy.codes())}


def per_source(report: BuildReport) -> dict[str, tuple[int, int]]:
    """Source → its clean rows, and its rows in clean and the core types together."""
    core = [report.rows[code] for code in (taxonomy.CLEAN, *taxonomy.codes()) if code in report.rows]
    found = {source: sum(rows.get(source, 0) for rows in core) for source in sources.in_tables()}
    clean = report.rows.get(taxonomy.CLEAN, {})
    return {source: (clean.get(source, 0), rows) for source, rows in found.items() if rows}


def skips(report: BuildReport | LiveReport) -> dict[tuple[str, str], int]:
    """(type, reason) → pairs without a row."""
    return Counter((skip.type_code, skip.reason) for skip in report.skipped)


def template(name: str) -> jinja2.Template:
    """A template of this room."""
    return templates.environment("robustbench_tc.dataset_cards").get_template(name)


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


OWN_TITLE = "Own tools, built with RobustBench-TC"
"""What such a dataset is called where others stand beside it."""


def own_card(report: BuildReport, book: Book, release: Release | None = None) -> str:
    """`README.md` of a build from `rbtc build --cases`, or with `release` of a release of it."""
    count = {code: sum(by_source.values()) for code, by_source in report.rows.items()}
    return card(
        "robustbench_tc_own.md.j2",
        report,
        release,
        title=OWN_TITLE,
        rows=report.total,
        tags=("tool-calling", "function-calling", "robustness", "agents"),
        configs=report.configs,
        header={"licence": "other", "combined": combined(report.configs)},
        book=book,
        source=sources.OWN,
        types=[t for t in taxonomy.known_with(count) if count.get(t.code)],
        without_rows=[code for code in count if code != taxonomy.CLEAN and not count[code]],
        count=count,
        skips=skips(report),
    )


def book_of(folder: Path) -> Book:
    """The book of a dataset of own tools. Raises UserError where it has none."""
    if (found := read_book(folder)) is None:
        raise UserError(f"{BOOK} is missing: build the dataset again")
    return found
