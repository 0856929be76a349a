"""The rows of a live dataset, a folder or one of the Hub, and which of them a run asks."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from robustbench_tc import live_types, schema, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import LiveRow, row_hash
from robustbench_tc.worlds.find import BFCL, BUNDLED, find
from robustbench_tc.worlds.handle import WorldType

from .. import draw

if TYPE_CHECKING:
    from ..inputs import Selection


class LiveData(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A loaded live dataset: the tasks, then the rows of each kind of fault and of each registry type."""

    name: str
    """The folder as an absolute path, or the Hub id."""
    revision: str | None = None
    version: str | None = None
    rows: tuple[LiveRow, ...]

    @cached_property
    def by_id(self) -> dict[str, LiveRow]:
        """The rows by their ids."""
        return {row.id: row for row in self.rows}

    def clean(self) -> dict[str, LiveRow]:
        """The clean row of each task."""
        return {row.clean_id: row for row in self.rows if row.clean}

    @cached_property
    def _hashes(self) -> dict[str, str]:
        return {row.id: row_hash(row) for row in self.rows}

    def hashes(self) -> dict[str, str]:
        """`row_hash` by row id."""
        return self._hashes

    def fingerprint(self) -> str:
        """32 hex digits over the sorted (id, row hash) pairs."""
        return schema.fingerprint(sorted(self.hashes().items()))

    def select(self, selection: "Selection") -> tuple[LiveRow, ...]:
        """The selected rows, in the dataset's order; kinds of faults bring the clean rows of their tasks
        along. Raises UserError."""
        return draw.select(self.rows, selection, self.name, "world", anchored=True)


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
