"""`croissant.json`: the release in the Croissant 1.1 vocabulary, file by file with its hash.

Addresses are relative to the folder, so the file is true of the release wherever it lies. There is no date in
it: the only time stamp of a release is in its manifest.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

LICENCE_URL = "https://www.apache.org/licenses/LICENSE-2.0"

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


class Config(NamedTuple):
    """One config of a release: its Parquet files by split, relative to the folder."""

    name: str
    files: dict[str, list[str]]


def croissant(
    folder: Path,
    *,
    name: str,
    version: str,
    description: str,
    sha256: Mapping[str, str],
    cite_as: str,
    keywords: Iterable[str] = (),
) -> bytes:
    """The metadata of the Parquet files under `folder`; `sha256` maps their relative paths to hashes."""
    distribution: list[dict[str, Any]] = []
    record_sets = []
    for config in configs(sha256):
        for split, paths in config.files.items():
            id_ = config.name if len(config.files) == 1 else f"{config.name}-{split}"
            distribution += [_file_object(folder, path, sha256[path]) for path in paths]
            source = {"fileObject": {"@id": paths[0]}}
            if len(paths) > 1:
                distribution.append(_file_set(id_, config.name, split, paths))
                source = {"fileSet": {"@id": f"{id_}-files"}}
            record_sets.append(_record_set(id_, pq.read_schema(folder / paths[0]), source))
    document = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": name,
        "description": description,
        "version": version,
        "license": LICENCE_URL,
        "citeAs": cite_as,
        "keywords": list(keywords),
        "inLanguage": "en",
        "isLiveDataset": False,
        "distribution": distribution,
        "recordSet": record_sets,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def configs(paths: Iterable[str]) -> list[Config]:
    """The configs among the relative paths `<config>/<split>-*.parquet`, `clean` first."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(paths):
        config, _, file = path.partition("/")
        if file.endswith(".parquet"):
            found.setdefault(config, {}).setdefault(file.split("-")[0], []).append(path)
    return [Config(name, found[name]) for name in sorted(found, key=lambda name: (name != "clean", name))]


def _file_object(folder: Path, path: str, sha256: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "contentSize": f"{(folder / path).stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": sha256,
    }


def _file_set(id_: str, config: str, split: str, paths: list[str]) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{id_}-files",
        "encodingFormat": "application/x-parquet",
        "includes": f"{config}/{split}-*.parquet",
    }


def _record_set(id_: str, schema: pa.Schema, source: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@type": "cr:RecordSet",
        "@id": id_,
        "name": id_,
        "field": [_field(f"{id_}/{column.name}", column.name, column.type, source) for column in schema],
    }
    if "id" in schema.names:
        found["key"] = {"@id": f"{id_}/id"}
    return found


def _field(
    id_: str, column: str, kind: pa.DataType, source: dict[str, Any], inner: str = ""
) -> dict[str, Any]:
    """The field of a column; a struct becomes sub-fields that pick their key out of it."""
    field: dict[str, Any] = {"@type": "cr:Field", "@id": id_, "name": inner or column}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        field["repeated"] = True
        kind = kind.value_type
    if pa.types.is_struct(kind):
        field["subField"] = [
            _field(f"{id_}/{part.name}", column, part.type, source, part.name) for part in kind
        ]
        return field
    field["dataType"] = _data_type(kind)
    field["source"] = {**source, "extract": {"column": column}}
    if inner:
        field["source"]["transform"] = {"jsonPath": inner}
    return field


def _data_type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind):
        return "sc:Float"
    return "sc:Text"
