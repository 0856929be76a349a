"""`croissant.json`: the release in the Croissant 1.1 vocabulary with its responsible-AI part, file by file.

Written with mlcroissant, which refuses what does not validate. Addresses of files are relative to the folder,
so they are true wherever the release lies. The day of the release is in it, and no other time.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import schema
from robustbench_tc.errors import need_extra

LICENCE_URL = "https://www.apache.org/licenses/LICENSE-2.0"

CONFORMS_TO = ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]

TERMS: dict[str, Any] = {
    "arrayShape": "cr:arrayShape",
    "containedIn": "cr:containedIn",
    "description": {"@container": "@language"},
    "isArray": "cr:isArray",
    "name": {"@container": "@language"},
}
"""What Croissant 1.1 has in its `@context` beyond 1.0; mlcroissant writes that of 1.0 by itself."""


class Config(NamedTuple):
    """One config of a release: its Parquet files by split, relative to the folder."""

    name: str
    files: dict[str, list[str]]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What the metadata say of a dataset besides its files."""

    name: str
    version: str
    description: str
    creator: str
    url: str
    published: datetime.date
    cite_as: str
    keywords: tuple[str, ...] = ()
    languages: Sequence[str] = ("en",)
    doi: str | None = None
    responsible_ai: Mapping[str, str | list[str]] = {}
    """Properties of the RAI vocabulary, under the names of mlcroissant's arguments."""


def croissant(folder: Path, about: About, sha256: Mapping[str, str]) -> bytes:
    """The metadata of the Parquet files under `folder`; `sha256` maps their relative paths to hashes.

    UserError where mlcroissant is not installed. Its ValidationError would be a defect of this package.
    """
    if find_spec("mlcroissant") is None:
        raise need_extra("mlcroissant", "audit")
    import mlcroissant as mlc

    # The version must be known before the nodes are made: it decides which terms they may use.
    context = mlc.Context(conforms_to=CONFORMS_TO[0], is_live_dataset=False)
    context.rdf = mlc.Rdf(context={**context.rdf.context, **TERMS})
    distribution: list[Any] = []
    record_sets = []
    for config in configs(sha256):
        for split, paths in config.files.items():
            id_ = config.name if len(config.files) == 1 else f"{config.name}-{split}"
            distribution += [
                mlc.FileObject(
                    ctx=context,
                    id=path,
                    name=path,
                    content_url=path,
                    content_size=f"{(folder / path).stat().st_size} B",
                    encoding_formats=["application/x-parquet"],
                    sha256=sha256[path],
                )
                for path in paths
            ]
            source = {"file_object": paths[0]}
            if len(paths) > 1:
                pattern = f"{config.name}/{split}-*.parquet"
                distribution.append(
                    mlc.FileSet(
                        ctx=context,
                        id=f"{id_}-files",
                        name=f"{id_}-files",
                        encoding_formats=["application/x-parquet"],
                        includes=[pattern],
                    )
                )
                source = {"file_set": f"{id_}-files"}
            schema = pq.read_schema(folder / paths[0])
            record_sets.append(
                mlc.RecordSet(
                    ctx=context,
                    id=id_,
                    name=id_,
                    key=[f"{id_}/id"] if "id" in schema.names else None,
                    fields=[
                        _field(mlc, context, f"{id_}/{column.name}", column.name, column.type, source)
                        for column in schema
                    ],
                )
            )
    metadata = mlc.Metadata(
        ctx=context,
        conforms_to=CONFORMS_TO,
        name=about.name,
        description=about.description,
        version=about.version,
        license=[LICENCE_URL],
        creators=[mlc.Organization(ctx=context, name=about.creator, url=about.url)],
        url=about.url,
        date_published=datetime.datetime.combine(about.published, datetime.time()),
        cite_as=about.cite_as,
        keywords=list(about.keywords),
        in_language=list(about.languages),
        same_as=[f"https://doi.org/{about.doi}"] if about.doi else None,
        distribution=distribution,
        record_sets=record_sets,
        **about.responsible_ai,
    )
    return msgspec.json.format(msgspec.json.encode(metadata.to_json()), indent=1) + b"\n"


def configs(paths: Iterable[str]) -> list[Config]:
    """The configs among the relative paths `<config>/<split>-*.parquet`, the clean rows first."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(paths):
        config, _, file = path.partition("/")
        if file.endswith(".parquet"):
            found.setdefault(config, {}).setdefault(file.split("-")[0], []).append(path)
    clean = ("clean", schema.TASKS)
    return [Config(name, found[name]) for name in sorted(found, key=lambda name: (name not in clean, name))]


def _field(
    mlc: Any,
    context: Any,
    id_: str,
    column: str,
    kind: pa.DataType,
    source: Mapping[str, str],
    inner: str = "",
) -> Any:
    """The field of a column; a struct becomes sub-fields that pick their key out of it."""
    field: dict[str, Any] = {"ctx": context, "id": id_, "name": inner or column}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        field["repeated"] = True
        kind = kind.value_type
    if pa.types.is_struct(kind):
        parts = [
            _field(mlc, context, f"{id_}/{part.name}", column, part.type, source, part.name) for part in kind
        ]
        return mlc.Field(**field, sub_fields=parts)
    picked = mlc.Transform(ctx=context, json_path=inner) if inner else None
    return mlc.Field(
        **field,
        data_types=[_data_type(mlc, kind)],
        source=mlc.Source(
            ctx=context,
            **source,
            extract=mlc.Extract(ctx=context, column=column),
            transforms=[picked] if picked else [],
        ),
    )


def _data_type(mlc: Any, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return mlc.DataType.BOOL
    if pa.types.is_integer(kind):
        return mlc.DataType.INTEGER
    if pa.types.is_floating(kind):
        return mlc.DataType.FLOAT
    return mlc.DataType.TEXT
