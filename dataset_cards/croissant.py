"""`croissant.json`: the release in the Croissant 1.1 vocabulary with its responsible-AI part, file by file.

Written with mlcroissant, which refuses what does not validate. Addresses of files are relative to the folder,
so they are true wherever the release lies. The day of the release is in it, and no other time.
"""

import datetime
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.errors import need_extra

from . import citation
from .facts import Release

LICENCE_URL = "https://www.apache.org/licenses/LICENSE-2.0"

CONFORMS_TO = ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"]

PARQUET = ["application/x-parquet"]

TERMS: dict[str, Any] = {
    "arrayShape": "cr:arrayShape",
    "containedIn": "cr:containedIn",
    "description": {"@container": "@language"},
    "isArray": "cr:isArray",
    "name": {"@container": "@language"},
}
"""What Croissant 1.1 has in its `@context` beyond 1.0; mlcroissant writes that of 1.0 by itself."""


def croissant(
    release: Release,
    *,
    description: str,
    responsible_ai: Mapping[str, str | list[str]],
    keywords: Sequence[str] = ("tool calling", "robustness"),
    languages: Sequence[str] = ("en",),
) -> bytes:
    """The metadata of a release's Parquet files. `responsible_ai`: by mlcroissant's names.

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
    for config, splits in release.configs.items():
        for split, paths in splits.items():
            id_ = config if len(splits) == 1 else f"{config}-{split}"
            distribution += [
                mlc.FileObject(
                    ctx=context,
                    id=path,
                    name=path,
                    content_url=path,
                    content_size=f"{release.manifest.files[path].bytes} B",
                    encoding_formats=PARQUET,
                    sha256=release.sha256[path],
                )
                for path in paths
            ]
            source = {"file_object": paths[0]}
            if len(paths) > 1:
                files = f"{id_}-files"
                pattern = [f"{config}/{split}-*.parquet"]
                distribution.append(
                    mlc.FileSet(ctx=context, id=files, name=files, encoding_formats=PARQUET, includes=pattern)
                )
                source = {"file_set": files}
            schema = pq.read_schema(release.folder / paths[0])
            fields = [_field(mlc, context, f"{id_}/{one.name}", one.name, one.type, source) for one in schema]
            key = [f"{id_}/id"] if "id" in schema.names else None
            record_sets.append(mlc.RecordSet(ctx=context, id=id_, name=id_, key=key, fields=fields))
    doi = release.manifest.doi
    metadata = mlc.Metadata(
        ctx=context,
        conforms_to=CONFORMS_TO,
        name=release.manifest.kind,
        description=description,
        version=release.version,
        license=[LICENCE_URL],
        creators=[mlc.Organization(ctx=context, name=citation.CREATOR, url=release.address)],
        url=release.address,
        date_published=datetime.datetime.combine(release.published, datetime.time()),
        cite_as=release.bibtex,
        keywords=list(keywords),
        in_language=list(languages),
        same_as=[f"https://doi.org/{doi}"] if doi else None,
        distribution=distribution,
        record_sets=record_sets,
        **responsible_ai,
    )
    return msgspec.json.format(msgspec.json.encode(metadata.to_json()), indent=1) + b"\n"


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
    said = ((pa.types.is_boolean, "BOOL"), (pa.types.is_integer, "INTEGER"), (pa.types.is_floating, "FLOAT"))
    name = next((name for holds, name in said if holds(kind)), "TEXT")
    extract = mlc.Extract(ctx=context, column=column)
    transforms = [mlc.Transform(ctx=context, json_path=inner)] if inner else []
    origin = mlc.Source(ctx=context, **source, extract=extract, transforms=transforms)
    return mlc.Field(**field, data_types=[getattr(mlc.DataType, name)], source=origin)
