"""What `rbtc sql` gives back: the rows of a query, or the list of what may be queried."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from robustbench_tc.io import files
from robustbench_tc.io.numbers import number
from robustbench_tc.shown import Line, Part, Table

from .query import EXAMPLES, Mart

if TYPE_CHECKING:
    import pyarrow as pa

NO_BASELINE = (
    "no other run is of the baseline's dataset, or there is no baseline of that name: name one with "
    "--param baseline=MODEL or the run's folder"
)


class Rows(NamedTuple):
    """The rows of a query."""

    table: "pa.Table"
    out: Path | None = None
    """The file that holds them too."""
    hint: str = ""

    def shown(self) -> Iterator[Part]:
        """A row a line; a single one downwards, since twenty columns fit no terminal."""
        rows = self.table.to_pylist()
        if self.hint:
            yield Line(self.hint, aside=True)
        if self.out is not None:
            yield f"{len(rows):,} rows in {self.out}"
        elif len(rows) == 1:
            yield Table(
                ("column", "value"),
                [(name, _cell(value)) for name, value in rows[0].items()],
                folded=("value",),
            )
        else:
            texts = [
                n for n in self.table.column_names if not any(isinstance(row[n], int | float) for row in rows)
            ]
            yield Table(
                self.table.column_names,
                [[_cell(value) for value in row.values()] for row in rows],
                folded=texts,
            )
            yield f"{len(rows):,} rows"

    def json(self) -> list[dict[str, Any]]:
        """The rows as objects."""
        return self.table.to_pylist()

    def write(self, out: Path) -> None:
        """Writes a file: JSON or Parquet where its name ends so, else CSV. Raises UserError for one that is
        there."""
        with files.atomic_file(out) as beside:
            if out.suffix == ".parquet":
                import pyarrow.parquet as pq

                pq.write_table(self.table, beside)
            elif out.suffix == ".json":
                beside.write_bytes(msgspec.json.format(msgspec.json.encode(self.json()), indent=1) + b"\n")
            else:
                text = io.StringIO()
                writer = csv.writer(text, lineterminator="\n")
                writer.writerow(self.table.column_names)
                writer.writerows(row.values() for row in self.json())
                beside.write_text(text.getvalue(), encoding="utf-8")


class Catalogue(msgspec.Struct, frozen=True):
    """What may be queried."""

    marts: dict[str, Mart]
    views: dict[str, dict[str, str]]
    """For SQL of one's own: name and type of every column, by view."""

    def shown(self) -> Iterator[Part]:
        """Three examples, the marts by group, the views."""
        yield from EXAMPLES
        needs = {"runs": "needs --run", "live": "needs a live run", "cells": ""}
        for group in dict.fromkeys(mart.group for mart in self.marts.values()):
            rows = []
            for name, mart in self.marts.items():
                notes = [
                    needs[mart.needs],
                    *(f"--param {key}=…: {one}" for key, one in mart.parameters.items()),
                ]
                if mart.group == group:
                    rows.append((name, mart.description, "; ".join(filter(None, notes))))
            yield Table(("mart", "answers", ""), rows, title=group, folded=("answers", ""))
        columns = [
            (name, ", ".join(f"{one} {kind}" for one, kind in found.items()))
            for name, found in self.views.items()
        ]
        yield Table(("view", "columns"), columns, title="views for SQL of your own", folded=("columns",))


def _cell(value: object) -> str:
    return number(value) if value is None or isinstance(value, float) else str(value)
