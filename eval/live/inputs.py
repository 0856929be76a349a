"""The rows of a live dataset, and the worlds that they name."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from robustbench_tc import live_types, schema, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import LiveRow, row_hash
from robustbench_tc.worlds.find import BFCL, BUNDLED, find
from robustbench_tc.worlds.handle import WorldType

from ..data import Data, Origin


class LiveData(Data[LiveRow], frozen=True, kw_only=True, dict=True):
    """Rows that are played in worlds: the tasks, then those of each kind of fault and of each registry type,
    which are selected with the clean rows of their tasks."""

    digest_of = staticmethod(row_hash)
    by: ClassVar[Origin] = "world"
    anchored: ClassVar[bool] = True

    def clean(self) -> dict[str, LiveRow]:
        """The clean row of each task."""
        return {row.clean_id: row for row in self.rows if row.clean}


def codes(words: Iterable[str]) -> tuple[str, ...]:
    """Type codes for what a user named: `clean`, a code, a kind of fault, or a registry type."""
    known = {*schema.KINDS, *live_types.registry_types()}
    named = map(taxonomy.code_of, words)
    return tuple(dict.fromkeys(f"live_{one}" if one in known else one for one in named))


def world_types(
    rows: Iterable[LiveRow], files: Sequence[str] = (), python: str | None = None
) -> dict[str, WorldType]:
    """The world of each name that rows have. `files`: worlds that this package does not bring.

    A dataset never brings code along: whoever runs it names the file. Raises UserError.
    """
    own = {found.name: found for found in map(find, files)}
    names = dict.fromkeys(row.world for row in rows)
    for name in names:
        if name not in own and name not in (*BUNDLED, BFCL):
            raise UserError(f"world {name!r} is not bundled: name its Python file with --worlds")
    return {name: own.get(name) or find(name, python=python) for name in names}
