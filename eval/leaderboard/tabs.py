"""The board's pages that stand in the header of every page."""

from typing import NamedTuple


class Tab(NamedTuple):
    """One page of the header."""

    here: str
    """What a page says it is, so that its own tab is marked."""
    path: str
    name: str


TABS = (
    Tab("board", "/", "Board"),
    Tab("plots", "/plots", "Plots"),
    Tab("heatmap", "/heatmap", "Heat map"),
    Tab("matrix", "/matrix", "Matrix"),
    Tab("types", "/types", "Types"),
    Tab("progress", "/progress", "Progress"),
    Tab("samples", "/samples", "Samples"),
    Tab("packs", "/packs", "Packs"),
    Tab("defences", "/defences", "Defences"),
    Tab("live", "/live", "Live"),
    Tab("about", "/about", "About"),
    Tab("submit", "/submit/", "Submit"),
)
"""In the order in which they are shown. A page that is added is one line here."""
