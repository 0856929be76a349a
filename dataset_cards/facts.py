"""What a release says about itself, read from its own files: nothing in a card comes from anywhere else."""

import datetime
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from robustbench_tc import schema, taxonomy
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.builders import errata_files
from robustbench_tc.builders.sources.upstream import pins
from robustbench_tc.io import parquet
from robustbench_tc.io.manifest import Manifest, data_files
from robustbench_tc.schema import Sample

from . import citation
from .examples import Example, example_of, live_example, training_examples


class Size(msgspec.Struct, frozen=True):
    """One split of a config."""

    rows: int
    bytes: int
    """In memory, as `datasets` counts."""
    download: int
    """Of the Parquet files."""


class Release:
    """What the card of a release says beyond that of a build: all is counted in the files of its folder."""

    def __init__(
        self, folder: Path, manifest: Manifest, audit: AuditReport, title: str, upstream: Iterable[str]
    ) -> None:
        """`manifest` names the data files at least; `title`: of its BibTeX; `upstream`: whom to cite."""
        self.folder = folder
        self.manifest = manifest
        self.audit = audit
        self.version = manifest.version
        self.plain_version = manifest.version.split("-")[0]
        """Without a pre-release suffix, which `datasets` cannot read."""
        self.published = datetime.date.fromisoformat(manifest.created_at[:10])
        self.address = citation.hub_address(manifest.repo) if manifest.repo else citation.ADDRESS
        """Where it is found: on the Hub, or the paper."""
        year, doi = self.published.year, manifest.doi
        self.bibtex = citation.dataset_bibtex(title, manifest.version, year, self.address, doi)
        origins = pins().sources
        self.citations = {name: origins[name].citation for name in origins if name in set(upstream)}
        self.errata = errata_files.read_errata(folder / errata_files.NAME)
        """Golden answers that it corrects."""
        found = data_files(manifest.files, manifest.kind)
        self.sha256 = {path: entry.sha256 for path, entry in found.items()}
        self.configs = configs(self.sha256)
        self.sizes = {
            name: {split: _size(folder, paths) for split, paths in splits.items()}
            for name, splits in self.configs.items()
        }
        self.checksums = {
            name: _together([self.sha256[path] for paths in splits.values() for path in paths])
            for name, splits in self.configs.items()
        }
        self.constructed = [one.type_code for one in audit.evidence if one.constructed]
        """Types without a supporting case."""
        self.examples: Mapping[str, Example] = {}
        """Config or type → one row of the release."""
        self.tools: dict[str, float] = {}
        """Source → mean number of tools of its clean rows."""
        self.characters = 0
        """Of all messages and tools: what a model reads in one evaluation, before its prompt's own words."""
        if manifest.kind == "robustbench-tc":
            self._count_rows()
        elif manifest.kind == "toolrl-dr":
            self.examples = training_examples(folder, self.configs)
        else:
            self.examples = {name: live_example(folder / name) for name in self.configs}

    def _count_rows(self) -> None:
        examples = {}
        for code in (taxonomy.CLEAN, *(t.code for t in taxonomy.known_with(self.sizes))):
            if code not in self.sizes:
                continue
            files = parquet.shards(self.folder / code)
            rows = [schema.record(row, Sample) for row in parquet.read_rows(files)]
            self.characters += sum(len(message.content) for row in rows for message in row.messages)
            self.characters += sum(len(schema.dumps(row.tools)) for row in rows)
            examples[code] = example_of(rows)
            if code == taxonomy.CLEAN:
                number = Counter(row.source for row in rows)
                offered = Counter(row.source for row in rows for _ in row.tools)
                self.tools = {source: offered[source] / number[source] for source in number}
        self.examples = examples


def configs(paths: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Config → split → its files among the paths `<config>/<split>-*.parquet`, the clean rows first."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(paths):
        config, _, file = path.partition("/")
        if file.endswith(".parquet"):
            found.setdefault(config, {}).setdefault(file.split("-")[0], []).append(path)
    clean = (taxonomy.CLEAN, schema.TASKS)
    return {name: found[name] for name in sorted(found, key=lambda name: (name not in clean, name))}


def _together(hashes: list[str]) -> str:
    """The hash of one file, or one over the hashes of several."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def _size(folder: Path, paths: list[str]) -> Size:
    rows = total = download = 0
    for path in paths:
        with pq.ParquetFile(folder / path) as file:
            for batch in file.iter_batches():
                rows, total = rows + batch.num_rows, total + batch.nbytes
        download += (folder / path).stat().st_size
    return Size(rows, total, download)
