"""What a release says about itself, read from its own files: nothing in a card comes from anywhere else."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from robustbench_tc import schema, taxonomy
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.builders import errata_files
from robustbench_tc.builders.errata_files import Erratum
from robustbench_tc.io import parquet
from robustbench_tc.schema import Change, Sample

from .croissant import configs
from .examples import Example, diff_lines, example_of


class Size(msgspec.Struct, frozen=True):
    """One split of a config."""

    rows: int
    bytes: int
    """In memory, as `datasets` counts."""
    download: int
    """Of the Parquet files."""


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """What the card of a release says beyond that of a build."""

    version: str
    bibtex: str
    """The entry of this version of the dataset."""
    repo: str | None = None
    """Where it is published on the Hub, `org/name`; None: nobody has said."""
    previous: str | None = None
    """The version that it followed."""
    step: str = ""
    """How far the data moved from it: none, patch, minor, major."""
    errata: tuple[Erratum, ...] = ()
    """Golden answers that it corrects."""
    sizes: dict[str, dict[str, Size]]
    """Config → split."""
    checksums: dict[str, str]
    """Config → sha256 over its files' hashes."""
    audit: AuditReport
    citations: dict[str, str] = {}
    """Upstream source → what to cite."""
    examples: dict[str, Example] = {}
    """Type code → one row of the release."""
    issues: dict[str, dict[str, int]] = {}
    """Source → reason → records left out."""
    tools: dict[str, float] = {}
    """Source → mean number of tools of its clean rows."""
    characters: int = 0
    """Of all messages and tools: what a model reads in one evaluation, before its prompt's own words."""

    @property
    def plain_version(self) -> str:
        """The version without a pre-release suffix, which `datasets` cannot read."""
        return self.version.split("-")[0]

    @property
    def constructed(self) -> list[str]:
        """Types without a supporting case."""
        return [found.type_code for found in self.audit.evidence if found.constructed]


def release_facts(
    folder: Path,
    *,
    version: str,
    sha256: Mapping[str, str],
    audit: AuditReport,
    citations: Mapping[str, str],
    bibtex: str,
    repo: str | None = None,
    previous: str | None = None,
    step: str = "",
) -> Release:
    """Reads a release folder; `sha256` maps the relative paths of its Parquet files to their hashes."""
    sizes: dict[str, dict[str, Size]] = {}
    checksums = {}
    for config in configs(sha256):
        sizes[config.name] = {split: _size(folder, paths) for split, paths in config.files.items()}
        hashes = [sha256[path] for paths in config.files.values() for path in paths]
        checksums[config.name] = (
            hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()
        )
    codes = [taxonomy.CLEAN, *(t.code for t in taxonomy.known_with(sizes))]
    examples, characters = {}, 0
    tools: dict[str, list[int]] = {}
    for code in codes:
        if code in sizes:
            rows = [schema.record(row, Sample) for row in parquet.read_rows(parquet.shards(folder / code))]
            characters += sum(len(message.content) for row in rows for message in row.messages)
            characters += sum(len(schema.dumps(row.tools)) for row in rows)
            examples[code] = example_of(rows)
            for row in rows:
                if code == taxonomy.CLEAN:
                    tools.setdefault(row.source, []).append(len(row.tools))
    if not examples:
        examples = _training_examples(folder, sha256)
    return Release(
        version=version,
        bibtex=bibtex,
        repo=repo,
        previous=previous,
        step=step,
        errata=errata_files.read(folder / errata_files.NAME),
        sizes=sizes,
        checksums=checksums,
        audit=audit,
        citations=dict(citations),
        examples=examples,
        issues=_issues(folder) if "known_issues" in sizes else {},
        tools={source: sum(found) / len(found) for source, found in tools.items()},
        characters=characters,
    )


def _size(folder: Path, paths: list[str]) -> Size:
    rows = total = download = 0
    for path in paths:
        with pq.ParquetFile(folder / path) as file:
            for batch in file.iter_batches():
                rows, total = rows + batch.num_rows, total + batch.nbytes
        download += (folder / path).stat().st_size
    return Size(rows, total, download)


def _training_examples(folder: Path, paths: Iterable[str]) -> dict[str, Example]:
    """Per type the training row with the shortest diff, of the first config that has perturbed rows."""
    best: dict[str, tuple[int, Example]] = {}
    for config in configs(paths):
        files = [folder / path for path in config.files.get("train", [])]
        for row in parquet.read_rows(files, ["extra_info"]):
            extra = schema.loads(row["extra_info"])
            code, text = extra.get("type_code", taxonomy.CLEAN), extra.get("changes", "[]")
            if code == taxonomy.CLEAN or text == "[]" or len(text) >= best.get(code, (10**9,))[0]:
                continue
            changes = msgspec.convert(schema.loads(text), tuple[Change, ...])
            lines = (f"row: {extra['clean_id']}::{code}", *diff_lines(changes))
            best[code] = len(text), Example(str(extra["clean_id"]), lines)
        if best:
            break
    return {code: best[code][1] for code in sorted(best)}


def _issues(folder: Path) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for row in parquet.read_rows(parquet.shards(folder / "known_issues")):
        if row.get("status", "left_out") != "left_out":
            continue  # its rows are there
        by_reason = counts.setdefault(row["source"], {})
        by_reason[row["reason"]] = by_reason.get(row["reason"], 0) + 1
    return counts
