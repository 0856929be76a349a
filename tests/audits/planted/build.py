"""A copy of a build to edit as its forger would: with the builder's own writer, and resealed afterwards."""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import taxonomy
from robustbench_tc.builders.benchmark import features
from robustbench_tc.builders.rebuild import rebuild
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.eval.validate import self_check
from robustbench_tc.io import marker, parquet
from robustbench_tc.schema import dumps, loads

Row = dict[str, Any]

JSON_COLUMNS = ("tools", "golden_answers", "changes")


class Edit(NamedTuple):
    """One planted edit."""

    area: str
    name: str
    plant: Callable[["Forged"], Any]
    clean: bool
    """It changes clean rows, a table or a file of its own: caught without sources too, whoever reseals it."""


EDITS: list[Edit] = []


def edit(area: str, name: str, *, clean: bool = True) -> Callable[[Callable[["Forged"], Any]], Any]:
    """Decorator: registers an edit."""

    def add(plant: Callable[["Forged"], Any]) -> Callable[["Forged"], Any]:
        EDITS.append(Edit(area, name, plant, clean))
        return plant

    return add


class Forged:
    """A copy of a build, its rows with their JSON columns decoded."""

    def __init__(self, original: Path, path: Path, late: Sequence[Callable[[str], str]] = ()) -> None:
        self.path = path
        self.late = list(late)
        """Changes of the build report's text that resealing must not undo."""
        shutil.copytree(original, path, symlinks=True, copy_function=_copied)

    # --- rows ---------------------------------------------------------------------------------------

    def configs(self) -> list[str]:
        """The sample configs, `clean` first."""
        known = {t.code for t in taxonomy.types("all")}
        return [taxonomy.CLEAN, *sorted(p.name for p in self.path.iterdir() if p.name in known)]

    def shard(self, config: str) -> Path:
        (found,) = (self.path / config).glob("*.parquet")
        return found

    def rows(self, config: str, sample: str | None = None) -> list[Row]:
        """The rows; only those of `sample` are decoded, if one is named."""
        found = pq.read_table(self.shard(config)).to_pylist()
        return [
            {n: loads(v) if n in JSON_COLUMNS else v for n, v in row.items()}
            if sample in (None, row.get("clean_id"))
            else row
            for row in found
        ]

    def write(self, config: str, rows: Iterable[Row]) -> None:
        """Writes rows as the builder does; a JSON column that holds text is taken as it is."""
        schema = features(config).arrow_schema
        plain = [
            {n: dumps(v) if n in JSON_COLUMNS and not isinstance(v, str) else v for n, v in row.items()}
            for row in rows
        ]
        table = pa.table([pa.array([row[f.name] for row in plain], f.type) for f in schema], schema=schema)
        shutil.rmtree(self.path / config)
        parquet.write_shards([table], self.path / config, "test", schema)

    def change(self, config: str, change: Callable[[list[Row]], Any], sample: str | None = None) -> None:
        rows = self.rows(config, sample)
        change(rows)
        self.write(config, rows)

    def one(
        self, config: str, change: Callable[[Row], Any], fits: Callable[[Row], Any] = lambda r: True
    ) -> None:
        """Changes the first row that fits."""
        self.change(config, lambda rows: change(next(row for row in rows if fits(row))))

    def everywhere(self, change: Callable[[Row], Any], fits: Callable[[Row], Any] = lambda r: True) -> None:
        """Changes a clean row that fits and every row of that sample, in all types."""
        chosen = next(row["clean_id"] for row in self.rows(taxonomy.CLEAN) if fits(row))
        for config in self.configs():

            def change_it(rows: list[Row]) -> None:
                for row in rows:
                    if row["clean_id"] == chosen:
                        change(row)

            self.change(config, change_it, chosen)

    def rewrite(self, config: str, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
        """Writes the file of a config with pyarrow's own settings, or others."""
        path = self.shard(config)
        pq.write_table(change(pq.read_table(path)), path, **options)

    # --- reports ------------------------------------------------------------------------------------

    def build_again(self) -> None:
        """Builds the folder again from its own clean rows and the answers that lie in it now."""
        again = self.path.with_name("again")
        rebuild(self.path, again, sources=None, card=benchmark_card, accept=self_check)
        shutil.rmtree(self.path)
        again.rename(self.path)

    def report(self, change: Callable[[dict[str, Any]], Any]) -> None:
        path = self.path / marker.BUILD
        found = json.loads(path.read_text())
        change(found)
        path.write_bytes(json.dumps(found, indent=1, ensure_ascii=False).encode() + b"\n")

    def text(self, name: str, change: Callable[[str], str]) -> None:
        path = self.path / name
        before = path.read_text()
        after = change(before)
        assert after != before, f"{name} was not changed"
        path.write_text(after)

    def answers(self, change: Callable[[list[dict[str, Any]]], Any]) -> None:
        """Changes the lines of generations.jsonl."""
        path = self.path / "generations.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        change(lines)
        path.write_text("".join(dumps(line) + "\n" for line in lines))

    def counts(self, config: str, source: str, by: int) -> None:
        """Counts `by` rows more of a source in a config."""
        self.report(lambda r: r["rows"][config].update({source: r["rows"][config][source] + by}))

    def reseal(self) -> None:
        """Everything that vouches for the files says what they are now: the build report, and the card."""
        path = self.path / marker.BUILD
        if path.is_symlink() or not path.is_file():
            return
        try:
            report = json.loads(path.read_text())
        except ValueError:
            return
        card = self.path / "README.md"
        for config, before in dict(report.get("checksums") or {}).items():
            shards = sorted((self.path / config).glob("test-*.parquet"))
            after = hashlib.sha256(b"".join(s.read_bytes() for s in shards if s.is_file())).hexdigest()
            report["checksums"][config] = after
            if card.is_file() and not card.is_symlink():
                card.write_text(card.read_text().replace(before, after))
        there = (p for p in sorted(self.path.rglob("*")) if p.is_file())
        beside = (marker.BUILD, "audit_report.json", "audit_report.html", "manifest.json")
        named = {p.relative_to(self.path).as_posix(): p for p in there}
        report["files"] = {
            name: marker.sha256(p)
            for name, p in sorted(named.items())
            if name not in beside and not name.startswith("audit/") and "\udcff" not in name
        }
        report["own_sha256"] = ""
        path.write_bytes(marker.sealed(report))

    def finish(self, *, reseal: bool) -> None:
        """Applies what is late; with `reseal`, everything vouches for what is there now."""
        if reseal:
            self.reseal()
        for change in self.late:
            self.text(marker.BUILD, change)
        if reseal and self.late:
            path = self.path / marker.BUILD
            plain = re.sub(r'("own_sha256": )"\w*"', r'\1""', path.read_text())
            own = hashlib.sha256(plain.encode()).hexdigest()
            path.write_text(plain.replace('"own_sha256": ""', f'"own_sha256": "{own}"'))


def _copied(source: str, to: str) -> None:
    """Copies a file; of a pipe or a socket, which copying would wait for, makes another."""
    mode = os.lstat(source).st_mode
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        shutil.copyfile(source, to, follow_symlinks=False)
    else:
        os.mknod(to, mode)
