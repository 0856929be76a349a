"""A copy of a build to edit as its forger would: with the builder's own writer, and resealed afterwards."""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import taxonomy
from robustbench_tc.audits.folder import Folder
from robustbench_tc.builders.configs import row_type
from robustbench_tc.builders.rebuild import rebuild
from robustbench_tc.dataset_cards.render import benchmark_card
from robustbench_tc.io import manifest, marker, parquet
from robustbench_tc.schema import arrow_schema, dumps, loads

Row = dict[str, Any]

Base = Literal["build", "audited", "release"]
"""What an edit is planted in: a build, one with an audit's report beside it, a signed release."""

Late = tuple[str, Callable[[str], str]]
"""A file's name and a change of its text that resealing must not undo."""

JSON_COLUMNS = ("tools", "golden_answers", "changes")


class Edit(NamedTuple):
    """One planted edit."""

    area: str
    name: str
    plant: Callable[["Forged"], Any]
    clean: bool
    """It changes clean rows, a table or a file of its own: caught without sources too, whoever reseals it."""
    base: Base = "build"


EDITS: list[Edit] = []


def edit(
    area: str, name: str, *, clean: bool = True, base: Base = "build"
) -> Callable[[Callable[["Forged"], Any]], Any]:
    """Decorator: registers an edit."""

    def add(plant: Callable[["Forged"], Any]) -> Callable[["Forged"], Any]:
        EDITS.append(Edit(area, name, plant, clean, base))
        return plant

    return add


class Forged:
    """A copy of a build, its rows with their JSON columns decoded."""

    def __init__(self, original: Path, path: Path, late: Sequence[Late] = (), digest: str = "") -> None:
        self.path = path
        self.late = list(late)
        shutil.copytree(original, path, symlinks=True, copy_function=_copied)
        self._digest = digest or Folder(original).digest()
        """Of the data before the edit."""

    def copy(self, path: Path) -> "Forged":
        """The same edit in a folder of its own."""
        return Forged(self.path, path, self.late, self._digest)

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
        schema = arrow_schema(row_type(config))
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
        rebuild(self.path, again, sources=None, card=benchmark_card)
        shutil.rmtree(self.path)
        again.rename(self.path)

    def report(self, change: Callable[[dict[str, Any]], Any]) -> None:
        path = self.path / marker.BUILD
        found = json.loads(path.read_text())
        change(found)
        path.write_bytes(json.dumps(found, indent=1, ensure_ascii=False).encode() + b"\n")

    def text(self, name: str, change: Callable[[str], str]) -> None:
        path = self.path / name
        before = path.read_bytes().decode()
        after = change(before)
        assert after != before, f"{name} was not changed"
        path.write_bytes(after.encode())

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
        """Everything that vouches for the files says what they are now: reports, card, manifest."""
        for name, change in (
            (marker.BUILD, self._resealed_build),
            (marker.AUDIT, self._resealed_audit),
            (manifest.NAME, self._resealed_manifest),
        ):
            path = self.path / name
            if path.is_file() and not path.is_symlink():
                try:
                    found = json.loads(path.read_bytes())
                except (ValueError, RecursionError):
                    continue
                if isinstance(found, dict):
                    change(path, found)

    def _resealed_build(self, path: Path, report: dict[str, Any]) -> None:
        card = self.path / "README.md"
        for config, before in dict(report.get("checksums") or {}).items():
            shards = sorted((self.path / config).glob("test-*.parquet"))
            after = hashlib.sha256(b"".join(s.read_bytes() for s in shards if s.is_file())).hexdigest()
            report["checksums"][config] = after
            if after != before and card.is_file() and not card.is_symlink():
                card.write_bytes(card.read_bytes().replace(before.encode(), after.encode()))
        named = {p.relative_to(self.path).as_posix(): p for p in sorted(self.path.rglob("*")) if p.is_file()}
        beside = {marker.BUILD, marker.AUDIT, marker.PAGE, manifest.NAME, *manifest.BESIDE}
        if manifest.NAME in named:
            beside |= {"LICENSE", "croissant.json", "eval.yaml"}
        report["files"] = {
            name: marker.sha256(p)
            for name, p in sorted(named.items())
            if name not in beside and not name.startswith("audit/") and "\udcff" not in name
        }
        report["own_sha256"] = ""
        path.write_bytes(marker.sealed(report))

    def _resealed_audit(self, path: Path, report: dict[str, Any]) -> None:
        digest = Folder(self.path).digest()
        if digest != self._digest:
            report["build"] = digest
        for name in (n for n in report.get("files") or () if (self.path / n).is_file()):
            report["files"][name] = marker.sha256(self.path / name)
        report.pop("own_sha256", None)
        path.write_bytes(marker.sealed(report))
        page = self.path / marker.PAGE
        if page.is_file():
            page.write_text(marker.sealed_page(page.read_text().rpartition("<!-- as written by rbtc")[0]))

    def _resealed_manifest(self, path: Path, found: dict[str, Any]) -> None:
        files = {name: manifest.entry(self.path / name) for name in manifest.files_of(self.path)}
        found["files"] = files
        found["data_sha256"] = manifest.digest(manifest.data_files(files, "robustbench-tc"))
        path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")

    def finish(self, *, reseal: bool) -> None:
        """Applies what is late; with `reseal`, everything vouches for what is there now."""
        if reseal:
            self.reseal()
        for name, change in self.late:
            self.text(name, change)
        if reseal and any(name == marker.BUILD for name, _ in self.late):
            path = self.path / marker.BUILD
            plain = re.sub(rb'("own_sha256": )"\w*"', rb'\1""', path.read_bytes())
            own = marker.sha256_of(plain).encode()
            path.write_bytes(plain.replace(b'"own_sha256": ""', b'"own_sha256": "' + own + b'"'))


def _copied(source: str, to: str) -> None:
    """Copies a file; of a pipe or a socket, which copying would wait for, makes another."""
    mode = os.lstat(source).st_mode
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        shutil.copyfile(source, to, follow_symlinks=False)
    else:
        os.mknod(to, mode)
