"""A run as `evaluate` returns it: its summary, its scores, SQL over them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import UserError
from ..eval import reasons
from ..eval.evaluate import DryRun, Evaluation
from ..eval.stats.screen import Screen, screen
from ..shown import Line, Part, html, plain
from ..sql.query import Inputs, query


@dataclass(kw_only=True)
class Evaluated(Evaluation):
    """A run. Prints as its summary, and is a table in a notebook."""

    allow_missing: bool = False
    """Whether the summary is made although rows have no answer."""
    planned: DryRun | None = None
    """What it would ask, where that is all that was wanted."""

    @property
    def summary(self) -> Screen:
        """What `rbtc summary` prints, with every value in `overview`. Raises UserError where it is not scored
        or rows have no answer."""
        return screen(self.folder, allow_missing=self.allow_missing)

    @property
    def scores(self) -> pa.Table:
        """The verdicts, a row for each answer."""
        return pq.read_table(self.folder.scores_path)

    def sql(self, select: str) -> pa.Table:
        """What `rbtc sql` answers about this run: a mart's name, or a select over its views."""
        return query(select, Inputs(runs=(str(self.folder.path),), allow_missing=self.allow_missing))

    @property
    def notes(self) -> list[str]:
        """Lines for people: how the folder was found, and which rows cannot be evaluated."""
        left_out = self.folder.record.left_out.items()
        return [*self.folder.notes, *(f"left out: {count} × {reason}" for reason, count in left_out)]

    @property
    def exit_code(self) -> int:
        """1 where a verdict on a reference agent is not the known one."""
        return int(bool(self.unexpected))

    def score(self) -> None:
        """Raises UserError where the server refused nearly every row for one reason."""
        super().score()
        refused = reasons.of_predictions(self.folder.answers_path)
        if said := reasons.mostly_rejected(refused, self.folder.record.expected):
            raise UserError(said)

    def json(self) -> Any:
        """The summary's values; the run record where nothing is scored; of a dry run its bounds."""
        if self.planned is not None:
            return self.planned
        return self.summary.json() if self.folder.scores_path.is_file() else self.folder.record

    def shown(self) -> Iterator[Part]:
        """How far it got and what failed, beside; the summary; whether an agent's verdicts are known."""
        if self.planned is not None:
            yield from self.planned.shown()
            return
        record = self.folder.record
        yield from (Line(line, aside=True) for line in (self.how_far, *self._failures(), *self.why_failed()))
        if not self.folder.scores_path.is_file():
            return
        yield from self.summary.shown()
        if self.agent is not None and self.unexpected:
            wrong = f"{len(self.unexpected)} of {record.expected} verdicts on the agent {self.agent}"
            yield Line(f"{wrong} are not the known ones, the first: {self.unexpected[0]!r}", aside=True)
        elif self.agent is not None:
            yield f"all {record.expected} verdicts on the agent {self.agent} are the known ones"

    def _failures(self) -> Iterator[str]:
        """What of this session a user has to know."""
        if left_out := self.folder.record.sessions[-1].left_out:
            yield f"the endpoint does not take {', '.join(left_out)}: left out of the requests"
        if unknown := reasons.unknown_finishes(self.folder.record.totals.get("finish_reason", {})):
            yield f"unknown finish reasons: {unknown}"
        if failed := self.asked.request_errors:
            yield f"{failed} could not be had (request_error): the same command asks again"

    def __str__(self) -> str:
        return plain(part for part in self.shown() if not (isinstance(part, Line) and part.aside))

    def _repr_html_(self) -> str:
        return html(self.summary.shown())
