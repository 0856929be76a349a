"""What the gate computes from the same rows, tables, registries or settings, computed once in a process.

Audits of one build, and of copies of it, differ in a few rows or in none: the verdicts on rows of an equal
config, what Great Expectations says of an equal table, the classifier's figure for equal registries and the
rebuild from equal inputs are asked for over and over. Tests of that very work do not use this.
"""

import pickle
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from robustbench_tc import taxonomy
from robustbench_tc.api import rebuilding
from robustbench_tc.io import marker

if TYPE_CHECKING:
    import pandas as pd

    from robustbench_tc.audits.expectations.gx import Expectation, Validated

_found: dict[Hashable, Any] = {}


def _kept(key: Hashable, make: Callable[[], Any]) -> Any:
    if key not in _found:
        _found[key] = make()
    return _found[key]


def _name(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__module__, function.__qualname__


@contextmanager
def shared_work() -> Iterator[None]:
    """Verdicts, suites, projects, the classifier and rebuilds are looked up before they are computed."""
    from robustbench_tc.audits import classifier, rows, shortcuts
    from robustbench_tc.audits.expectations import gx, project
    from robustbench_tc.audits.report import Shortcut
    from robustbench_tc.dataset_cards import croissant

    if getattr(rebuilding.rebuild_of, "shared", False):  # by a wider fixture
        yield
        return
    validate, files, right, rebuild_of = gx._validated, project.files, classifier.right, rebuilding.rebuild_of
    metadata, check, figures = croissant.croissant, rows.RowChecks.check, shortcuts._Reader.figures

    def checked(checks: rows.RowChecks, config: str, first: int, raws: list[dict[str, Any]]) -> rows.Found:
        if config == taxonomy.CLEAN:  # it keeps them: the others are held against them
            return check(checks, config, first, raws)
        handed_in = checks._self_check, checks._unit_checks, checks._golds
        told = [_name(one) for one in handed_in], sorted(checks._texts._allowed), checks._packed
        key = "rows", config, first, marker.sha256_of(pickle.dumps((told, raws)))
        found: rows.Found = _kept(key, lambda: check(checks, config, first, raws))
        return found

    def figured(reader: shortcuts._Reader, config: str) -> Shortcut | None:
        if config == taxonomy.CLEAN:  # the reader keeps its groups: the other configs are folded by them
            return figures(reader, config)
        build = reader._build
        files = [path.read_bytes() for one in (taxonomy.CLEAN, config) for path in build.shards(one, "test")]
        key = "figures", config, _name(reader._try), marker.sha256_of(pickle.dumps(files))
        before = reader.unread, len(build.unreadable)
        if key not in _found:
            made = figures(reader, config)
            if (reader.unread, len(build.unreadable)) != before:  # a broken file is noted in every audit
                return made
            _found[key] = made
        kept: Shortcut | None = _found[key]
        return kept

    def validated(suite: str, table: "pd.DataFrame", wanted: Sequence["Expectation"], index: str) -> Any:
        asked = [(one.id, one.protects, one.kind, one.arguments) for one in wanted]
        said = [list(map(str, table.dtypes)), list(table.columns), table.to_numpy(dtype=object).tolist()]
        key = "suite", suite, index, vars(gx)["SHOWN"], marker.sha256_of(repr((asked, said)).encode())
        return _kept(key, lambda: validate(suite, table, wanted, index))

    def files_of(validated: Sequence["Validated"], title: str) -> dict[str, bytes]:
        key = "project", title, tuple(id(one.result) for one in validated)  # results are kept above
        return dict(_kept(key, lambda: files(validated, title)))

    def classified(examples: Sequence[Any]) -> int:
        key = "classifier", marker.sha256_of(pickle.dumps(list(examples)))
        return int(_kept(key, lambda: right(examples)))

    def described(folder: Path, about: Any, sha256: Mapping[str, str]) -> bytes:
        schemas = [str(pq.read_schema(folder / path)) for path in sha256 if path.endswith(".parquet")]
        key = "croissant", repr((about, sha256, schemas))
        return bytes(_kept(key, lambda: metadata(folder, about, sha256)))

    def rebuilt(folder: Path, sources: Path | None = None, rlla: Path | None = None) -> Any:
        from .audits.builds import made_once

        found = rebuild_of(folder, sources, rlla)
        if found.make is None or found.origin.startswith("ToolRL"):
            return found
        return found._replace(make=made_once(found.make, _rebuilds(), own_rows=not found.origin))

    rebuilt.shared = True  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows.RowChecks, "check", checked)
        patch.setattr(shortcuts._Reader, "figures", figured)
        patch.setattr(gx, "_validated", validated)
        patch.setattr(project, "files", files_of)
        patch.setattr(classifier, "right", classified)
        patch.setattr(croissant, "croissant", described)
        patch.setattr(rebuilding, "rebuild_of", rebuilt)
        yield


@cache
def _temporary() -> "tempfile.TemporaryDirectory[str]":
    """Removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="rbtc-rebuilds-")


def _rebuilds() -> Path:
    return Path(_temporary().name)
