"""Scores of a live run in one table: how often the world ended as it should, fault by fault."""

from collections.abc import Iterator, Sequence

from robustbench_tc.shown import Line as Text, Part, Table

from ..live.score import LiveScore
from .intervals import Interval
from .live import Line, clean_success, lines

COLUMNS = ("right / n", "success", "Δ to clean", "met", "recovered", "honest failures", "silent failures",
           "false success", "false failures", "false claims", "unclear", "omission / repetition",
           "calls beyond clean", "tokens beyond clean")  # fmt: skip
SHORT = tuple(name for name in COLUMNS if name != "honest failures")[:-3]
"""The columns that a terminal is shown; a report has all."""


class LiveScores(list[LiveScore]):
    """The scores of a run, which show themselves as a table."""

    def json(self) -> dict[str, object]:
        """Figures of each kind of fault, and of the clean rows."""
        return {
            "clean": clean_success(self),
            "faults": lines(self),
            "episodes": len(self),
            "unanswered": self._unanswered(),
        }

    def shown(self) -> Iterator[Part]:
        """A line for each kind of fault."""
        table = costs(lines(self), clean_success(self), SHORT)
        yield Table(("", *SHORT), table, "how often an episode was right, of those that met their fault")
        if unanswered := self._unanswered():
            yield Text(
                f"{unanswered} episodes had no answer (request_error) and are in no figure", aside=True
            )

    def _unanswered(self) -> int:
        return sum(one.ended == "request_error" for one in self)


def costs(found: Sequence[Line], clean: Interval | None, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The rows of the table: the clean ones, then each line with what its fault costs."""
    rows = [(line.name, _cells(line)) for line in found]
    if clean is not None:
        rows.insert(0, ("clean", {"right / n": right_of(clean), "success": spelled(clean)}))
    return [(name, *(cells.get(column, "") for column in columns)) for name, cells in rows]


def _cells(line: Line) -> dict[str, str]:
    return {
        "right / n": right_of(line.success) + ceiling(line),
        "success": spelled(line.success),
        "Δ to clean": spelled(line.delta),
        "met": f"{line.met} / {line.met + line.unmet}",
        "recovered": "" if line.recovery is None else spelled(line.recovery),
        "honest failures": str(line.honest),
        "silent failures": str(line.silent),
        "false success": false_success(line),
        "false failures": str(line.false_failures),
        "false claims": str(line.false_claims),
        "unclear": str(line.unclear),
        "omission / repetition": f"{line.omission} / {line.repetition}",
        "calls beyond clean": mean(line.extra_steps),
        "tokens beyond clean": mean(line.extra_tokens),
    }


def right_of(found: Interval) -> str:
    """`30 / 40`"""
    return f"{round(found.value * found.n)} / {found.n}"


def ceiling(line: Line) -> str:
    """` (at most 33)` where not every row can be right."""
    return "" if line.ceiling == line.n else f" (at most {line.ceiling})"


def spelled(found: Interval) -> str:
    """`0.75 [0.59, 0.87]`"""
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def false_success(line: Line) -> str:
    """`3`, or `3 to 5` where some texts are unclear."""
    low, high = line.false_success
    return str(low) if low == high else f"{low} to {high}"


def mean(found: float | None) -> str:
    """`+1.4`; nothing where it is not known."""
    return "" if found is None else f"{found:+.1f}".replace("-", "−")
