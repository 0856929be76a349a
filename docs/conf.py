"""Sphinx: the pages of this folder as a site, API pages made from the docstrings (`make docs`)."""

from robustbench_tc import __version__

project = "RobustBench-TC"
author = "The RobustBench-TC authors"
copyright = f"2026, {author}"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
nb_execution_mode = "off"  # a notebook's outputs are in it (tests/test_docs.py)
myst_heading_anchors = 4
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"RobustBench-TC {__version__}"
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "show-inheritance": True}


def _outside(app: object, name: str, text: list[str]) -> None:
    """Links to files of the repository that the site does not hold: their path, if they exist."""
    import re
    from pathlib import Path

    here = Path(__file__).parent

    def said(link: "re.Match[str]") -> str:
        return f"`{link[2]}`" if (here.parent / link[2]).exists() else link[0]  # else Sphinx warns

    text[0] = re.sub(r"\[([^\]]+)\]\(\.\./([\w./-]+)\)", said, text[0])


def setup(app: object) -> None:
    """Sphinx calls it."""
    app.connect("source-read", _outside)  # type: ignore[attr-defined]
