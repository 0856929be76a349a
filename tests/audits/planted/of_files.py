"""Edits of tables, footers and files."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.io import marker

from .build import EDITS, Edit, Forged, Row, edit

# --- tables -------------------------------------------------------------------------------------------

TABLES = "tables"


def table(name: str, what: str, change: Callable[[list[Row]], Any]) -> Edit:
    return Edit(TABLES, f"{what} ({name})", lambda build: build.change(name, change), True)


for name, column, value in (
    ("evidence", "verdict", "supports"),
    ("evidence", "claim", "It was proven."),
    ("evidence", "url", "https://example.org/"),
    ("evidence", "number", 1),
    ("taxonomy", "display_name", "Another name"),
    ("taxonomy", "ground_truth_changes", None),
    ("taxonomy", "order", 99),
    ("known_issues", "reason", "duplicate_id"),
    ("known_issues", "detail", ""),
    ("known_issues", "clean_id", ""),
):

    def put(rows: list[Row], column: str = column, value: Any = value) -> None:
        rows[-1][column] = value

    EDITS += [
        table(name, f"another `{column}`", put),
    ]
for name in ("evidence", "taxonomy", "known_issues"):
    EDITS += [
        table(name, "a row dropped", lambda rows: rows.pop()),
        table(name, "a row twice", lambda rows: rows.append(dict(rows[0]))),
        table(name, "rows in another order", lambda rows: rows.reverse()),
    ]


# --- columns and footers ------------------------------------------------------------------------------

FOOTER = "footers"


def footer(
    name: str, config: str, change: Callable[[pa.Table], pa.Table] = lambda t: t, **options: Any
) -> Edit:
    """An edit of a file that leaves its cells alone."""
    of_clean = config in ("clean", "known_issues", "taxonomy")
    return Edit(
        FOOTER, f"{name} ({config})", lambda build: build.rewrite(config, change, **options), of_clean
    )


def metadata(**more: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.replace_schema_metadata(
        {**(table.schema.metadata or {}), **{k.encode(): v.encode() for k, v in more.items()}}
    )


def cast(column: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(column)
        return table.set_column(at, pa.field(column, kind), table.column(at).cast(kind))

    return change


def required(table: pa.Table) -> pa.Table:
    fields = [f.with_nullable(f.name != "id") for f in table.schema]
    return table.cast(pa.schema(fields).with_metadata(table.schema.metadata))


def noted(table: pa.Table) -> pa.Table:
    fields = [f.with_metadata({"note": "seen"}) if f.name == "id" else f for f in table.schema]
    return table.cast(pa.schema(fields).with_metadata(table.schema.metadata))


def noted_first(table: pa.Table) -> pa.Table:
    fields = [f.with_metadata({"note": "seen"}) for f in table.schema]
    return table.cast(pa.schema(fields).with_metadata(table.schema.metadata))


for config in ("clean", "TD_AB"):
    EDITS += [
        footer("a key more in the footer", config, metadata(author="nobody")),
        footer("another `huggingface` entry", config, metadata(huggingface='{"info": {"features": {}}}')),
        footer("no metadata at all", config, lambda t: t.replace_schema_metadata(None)),
        footer("a column more", config, lambda t: t.append_column("query", pa.array(["x"] * t.num_rows))),
        footer("a column less", config, lambda t: t.drop_columns(["flags"])),
        footer(
            "a column renamed",
            config,
            lambda t: t.rename_columns([f"{n}_" if n == "seed" else n for n in t.column_names]),
        ),
        footer(
            "columns in another order", config, lambda t: t.select([*t.column_names[1:], t.column_names[0]])
        ),
        footer("a wider integer", config, cast("gold_tool_index", pa.int64())),
    ]
EDITS += [
    footer("large strings", "CD", cast("category", pa.large_string())),
    footer("a dictionary column", "TD", cast("source", pa.dictionary(pa.int32(), pa.string()))),
    footer("a column that may not be null", "clean", required),
    footer("metadata of a column", "clean", noted),
    footer("another compression", "clean", compression="snappy"),
    footer(
        "no dictionary encoding", "clean", compression="zstd", use_dictionary=False, write_page_index=True
    ),
    footer(
        "another encoding",
        "clean",
        compression="zstd",
        use_dictionary=False,
        column_encoding={"id": "DELTA_BYTE_ARRAY"},
    ),
    footer("small row groups", "clean", row_group_size=50),
    footer("pages without an index", "known_issues", compression="zstd", use_content_defined_chunking=True),
    footer("no statistics", "clean", compression="zstd", write_statistics=False),
    footer("another page version", "clean", compression="zstd", data_page_version="2.0"),
    footer("a description in a field's metadata", "taxonomy", noted_first),
    footer("another format version", "CD_NT", compression="zstd", write_page_index=True, version="1.0"),
]


@edit(FOOTER, "bytes between the rows and the footer")
def _(build: Forged) -> None:
    path = build.shard("clean")
    data = path.read_bytes()
    cut = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:cut] + b"a note that no reader sees" + data[cut:])


@edit(FOOTER, "a file cut short")
def _(build: Forged) -> None:
    path = build.shard("clean")
    path.write_bytes(path.read_bytes()[:-100])


@edit(FOOTER, "a file of zeros (CD)", clean=False)
def _(build: Forged) -> None:
    path = build.shard("CD")
    path.write_bytes(bytes(path.stat().st_size))


# --- files --------------------------------------------------------------------------------------------

FILES = "files"


def more(name: str, what: str) -> Edit:
    """A copy of clean's file under another name."""

    def plant(build: Forged) -> None:
        path = build.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build.shard("clean"), path)

    return Edit(FILES, what, plant, True)


EDITS += [
    more("extra.parquet", "a Parquet file more, at the root"),
    more("taxonomy/test-00001-of-00002.parquet", "a Parquet file more, in a table's folder"),
    more("CD/test-00001-of-00002.parquet", "a Parquet file more, in a config's folder"),
    more("CD/train-00000-of-00001.parquet", "a split more"),
    more("hard/test-00000-of-00001.parquet", "a config more"),
    more("CD_AB_pref/test-00000-of-00001.parquet", "an extension type that was not built"),
    more("CD/deep/test-00000-of-00001.parquet", "a Parquet file deeper down"),
    more("audit/test-00000-of-00001.parquet", "a Parquet file under `audit/`"),
    more(".hidden.parquet", "a hidden Parquet file"),
    more("CD/.test-00000-of-00001.parquet", "a hidden Parquet file in a config's folder"),
    more("clean/TEST-00000-of-00001.PARQUET", "a Parquet file in capital letters"),
    more("CD\u200b/test-00000-of-00001.parquet", "a folder with an invisible letter"),
    more("СD/test-00000-of-00001.parquet", "a folder with a homoglyph"),
    more("README.md ", "a file whose name ends with a blank"),
    more("a\nb.txt", "a file with a line break in its name"),
    more("notes.txt", "a text file"),
    more("audit/notes.txt", "a file under `audit/` that no audit names"),
    more(".git/config", "a repository"),
    more("data_files.py", "a script"),
    more("readme.md", "a card whose name has other letters"),
    more("cd/test-00000-of-00001.parquet", "a config whose name has other letters"),
    more("CD /test-00000-of-00001.parquet", "a config whose name ends with a blank"),
    more("CD/test-00000-of-00001.parquet.bak", "a file beside a shard"),
    more("CD/data.arrow", "an Arrow file"),
    more("clean.jsonl", "rows as JSON lines"),
    more("robustbench-tc.py", "a loading script"),
    more(".gitattributes", "a `.gitattributes`"),
    more(".DS_Store", "a hidden file"),
    more(".cache/huggingface/download/x.lock", "a file of the Hub's client"),
    more("errata.jsonl", "errata that are none"),
    more("croissant.json", "a croissant.json"),
    more("yanked.json", "a list of withdrawn versions"),
    more("manifest.json", "a manifest that is none"),
    more("audit_report.json", "an audit report that is none"),
    more("audit_report.html", "an audit's page without a report"),
    more("audit/judgments.jsonl/x", "a folder for the judgments"),
    more("dataset_infos.json", "a `dataset_infos.json`"),
]


@edit(FILES, "a hard link to a file outside")
def _(build: Forged) -> None:
    outside = build.path.parent / "outside.txt"
    outside.write_text("x")
    os.link(outside, build.path / "LICENSE")


edit(FILES, "the folder's name of a config in other letters", clean=False)(
    lambda build: (build.path / "CD").rename(build.path / "cd")
)


@edit(FILES, "a file of 64 MiB")
def _(build: Forged) -> None:
    with (build.path / "big.bin").open("wb") as file:
        file.truncate(2**26)


def content(name: str, what: str, change: Callable[[bytes], bytes]) -> Edit:
    """Another content of a file that is named."""

    def plant(build: Forged) -> None:
        path = build.path / name
        before = path.read_bytes()
        after = change(before)
        assert after != before
        path.write_bytes(after)

    return Edit(FILES, f"{name}: {what}", plant, True)


def late(what: str, change: Callable[[str], str]) -> Edit:
    """Another text of the build report, which resealing would write over."""
    change_it = (marker.BUILD, change)
    return Edit(FILES, f"{marker.BUILD}: {what}", lambda build: build.late.append(change_it), True)


for name in ("README.md", "build_report.md", "generations.jsonl"):
    EDITS += [
        content(name, "lines that end with CR LF", lambda data: data.replace(b"\n", b"\r\n")),
        content(name, "a byte order mark", lambda data: b"\xef\xbb\xbf" + data),
        content(name, "empty", lambda data: b""),
        content(name, "a line more at the end", lambda data: data + b"\n"),
        content(name, "UTF-16", lambda data: data.decode().encode("utf-16")),
    ]
EDITS += [
    content("README.md", "20 MB more", lambda data: data + b" " * 20_000_000),
    late("lines that end with CR LF", lambda text: text.replace("\n", "\r\n")),
    late("a byte order mark", lambda text: "\ufeff" + text),
    late("empty", lambda text: ""),
    late("a line more at the end", lambda text: text + "\n"),
    late("a list", lambda text: "[]"),
    late("NaN", lambda text: text.replace('"seed": 0', '"seed": NaN')),
    late("great depth", lambda text: "[" * 100_000),
    late("cut short", lambda text: text[:-100]),
    content("generations.jsonl", "cut short", lambda data: data[:-100]),
    content("generations.jsonl", "NaN", lambda data: data.replace(b'"asked":191', b'"asked":NaN', 1)),
    content(
        "generations.jsonl",
        "a number as a float",
        lambda data: data.replace(b'"asked":191', b'"asked":191.0', 1),
    ),
    content(
        "generations.jsonl", "a key twice", lambda data: data.replace(b'{"kind":', b'{"kind":"x","kind":', 1)
    ),
    content("generations.jsonl", "an escaped letter", lambda data: data.replace(b"e", b"\\u0065", 1)),
    Edit(
        FILES,
        "a name that is not UTF-8",
        lambda build: Path(os.fsdecode(os.fsencode(build.path) + b"/\xff\xfe.parquet")).write_bytes(b"x"),
        True,
    ),
    Edit(FILES, "an empty folder", lambda build: (build.path / "spare").mkdir(), True),
    Edit(
        FILES,
        "an empty folder in a config's folder",
        lambda build: (build.path / "CD" / "spare" / "more").mkdir(parents=True),
        True,
    ),
]


@edit(FILES, "a shard that is a link")
def _(build: Forged) -> None:
    path = build.shard("clean")
    outside = build.path.parent / "outside.parquet"
    path.rename(outside)
    path.symlink_to(outside)


@edit(FILES, "a config that is a link")
def _(build: Forged) -> None:
    (build.path / "CD").rename(build.path.parent / "outside")
    (build.path / "CD").symlink_to(build.path.parent / "outside")


EDITS += [
    Edit(
        FILES,
        "a link beside the files",
        lambda build: (build.path / "LICENSE").symlink_to("/etc/hostname"),
        True,
    ),
    Edit(
        FILES,
        "a link that leads nowhere",
        lambda build: (build.path / "CD" / "test-00001-of-00001.parquet").symlink_to("nowhere"),
        True,
    ),
    Edit(
        FILES, "a pipe", lambda build: os.mkfifo(build.path / "clean" / "test-00001-of-00002.parquet"), True
    ),
]


@edit(FILES, "a pipe for a shard")
def _(build: Forged) -> None:
    path = build.shard("known_issues")
    path.unlink()
    os.mkfifo(path)


@edit(FILES, "a socket")
def _(build: Forged) -> None:
    here = Path.cwd()
    os.chdir(build.path)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("s.parquet")
    finally:
        os.chdir(here)


EDITS += [
    Edit(
        FILES,
        "a shard in another config's folder",
        lambda build: build.shard("CD").rename(build.path / "TD" / "test-00001-of-00002.parquet"),
        False,
    ),
    Edit(
        FILES,
        "a shard at the root",
        lambda build: build.shard("TD_NT").rename(build.path / "test-00000-of-00001.parquet"),
        False,
    ),
]


@edit(FILES, "a shard renamed", clean=False)
def _(build: Forged) -> None:
    path = build.shard("CD")
    path.rename(path.with_name("test-00000-of-00002.parquet"))


@edit(FILES, "a shard cut in two", clean=False)
def _(build: Forged) -> None:
    path = build.shard("TD")
    whole = pq.read_table(path)
    path.unlink()
    for part, rows in enumerate((whole.slice(0, 50), whole.slice(50))):
        pq.write_table(rows, path.with_name(f"test-{part:05d}-of-00002.parquet"), compression="zstd")


@edit(FILES, "two folders swapped", clean=False)
def _(build: Forged) -> None:
    (build.path / "CD").rename(build.path / "spare")
    (build.path / "TD").rename(build.path / "CD")
    (build.path / "spare").rename(build.path / "TD")


for gone in ("README.md", "build_report.md", "generations.jsonl", "clean", "evidence", "same_name_A"):

    def remove(build: Forged, gone: str = gone) -> None:
        path = build.path / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    EDITS.append(Edit(FILES, f"{gone} removed", remove, True))


@edit(FILES, "a type dropped, with all that the report says about it", clean=False)
def _(build: Forged) -> None:
    shutil.rmtree(build.path / "CD_AB")

    def forget(report: dict[str, Any]) -> None:
        report["types"].remove("CD_AB")
        report["configs"].remove("CD_AB")
        del report["checksums"]["CD_AB"], report["rows"]["CD_AB"]
        report["skipped"] = [skip for skip in report["skipped"] if skip["type_code"] != "CD_AB"]
        for flag in report["flags"].values():
            flag.pop("CD_AB", None)

    build.report(forget)
