"""Where a board has its rows from, as its server was started."""

import re
from typing import NamedTuple

from robustbench_tc.io import citation

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")


class Origin(NamedTuple):
    """What the about page links."""

    dataset: str | None = None
    """A Hub id or a path of the dataset; None where no submission is taken."""
    results: str | None = None
    """The Hub's dataset of the raw answers."""

    @property
    def dataset_address(self) -> str | None:
        """Its page on the Hub; None for a path, which is nobody else's business."""
        return _address(self.dataset)

    @property
    def results_address(self) -> str | None:
        """The page of the raw answers on the Hub."""
        return _address(self.results)


def _address(name: str | None) -> str | None:
    return citation.hub_address(name) if name and _HUB_ID.fullmatch(name) else None
