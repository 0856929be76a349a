"""The page about the board: what is measured, what the words mean, and what to cite."""

from collections.abc import Sequence

from robustbench_tc import __version__, taxonomy
from robustbench_tc.eval.stats import ranks
from robustbench_tc.io import citation

from . import flags, tiers
from .board import PAPER, Board
from .origin import Origin
from .pages import label, render


def about_page(boards: Sequence[Board], default: str, origin: Origin) -> str:
    """The page; `boards`: the newest first."""
    return render(
        "about.html.j2",
        title="About",
        here="about",
        query=None,
        default=default,
        boards=[(board, label(board)) for board in boards if board.version != PAPER],
        counts={name: sum(one.component == name for one in taxonomy.types()) for name in taxonomy.COMPONENTS},
        bibtex=citation.paper_bibtex(),
        paper_address=citation.ADDRESS,
        dataset=origin.dataset_address,
        results=origin.results_address,
        exact=ranks.EXACT,
        flags=flags.MEANING,
        tier_means=tiers.MEANING,
        package_version=__version__,
    )
