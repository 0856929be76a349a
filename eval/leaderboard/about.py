"""The page about the board: what is measured, what the words mean, and what to cite."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from robustbench_tc import __version__, taxonomy
from robustbench_tc.io import citation

from .board import PAPER, Board
from .render import label, render

_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


class Sources(NamedTuple):
    """Where the board has its rows from, as the server was started."""

    dataset: str | None = None
    """A Hub id, or a path; None where no submission is taken."""
    results: str | None = None
    """The Hub's dataset of the raw answers."""

    def address(self, name: str) -> str | None:
        """The page of `dataset` or `results` on the Hub; None for a path, which is nobody else's business."""
        found = getattr(self, name)
        return citation.hub_address(found) if found and _HUB_ID.fullmatch(found) else None


def about_page(boards: Sequence[Board], default: str, sources: Sources) -> str:
    """The page; `boards`: the newest first."""
    return render(
        "about.html.j2",
        title="About",
        here="about",
        query=None,
        default=default,
        boards=[(board, label(board)) for board in boards if board.version != PAPER],
        counts={
            name: sum(one.component == name for one in taxonomy.types()) for name in taxonomy.COMPONENTS
        },
        bibtex=citation.paper_bibtex(),
        paper_address=citation.ADDRESS,
        dataset=sources.address("dataset"),
        results=sources.address("results"),
        package_version=__version__,
    )
