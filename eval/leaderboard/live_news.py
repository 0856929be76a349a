"""News of live runs for the feed, named as live."""

from collections.abc import Iterator
from heapq import nlargest

from robustbench_tc.eval.live import report
from robustbench_tc.io import numbers

from .feed import LATEST, News
from .live_scoring import ALL
from .site import Boards


def live_news(boards: Boards) -> Iterator[News]:
    """What was listed and what was reproduced."""
    rows = [row for board in boards.live().values() for row in (*board.rows, *board.past)]
    for row in nlargest(LATEST, rows, key=lambda one: (one.submission.submitted_at, one.id)):
        one = row.submission
        success = row.success(ALL)
        yield News(
            at=one.submitted_at,
            what="listed",
            about=row.id,
            title=f"Live: {row.model} by {one.user}",
            text=f"Success with faults {report.spelled(success) if success else numbers.NONE}, clean "
            f"{report.spelled(row.entry.clean)}; {row.tier}.",
            page=one.page,
        )
    for row in rows:
        if (made := boards.verification(row.id)) is not None:
            yield News(
                at=made.verified_at,
                what="reproduced",
                about=row.id,
                title=f"Live: {row.model} by {row.submission.user}: reproduced",
                text=f"{made.by} repeated the run: success with faults {numbers.number(made.repeated)}, "
                f"submitted {numbers.number(made.submitted)}.",
                page=row.submission.page,
            )
