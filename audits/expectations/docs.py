"""Data docs as static pages: every suite that was run, what each expectation protects, and what failed.

Great Expectations' own pages fetch styles, scripts and fonts from several hosts. These need neither network
nor script; whoever wants the others makes them from the project beside these with `build_data_docs()`.
"""

from collections.abc import Sequence
from importlib.resources import files

from robustbench_tc.io import templates

from .gx import Validated

STYLES = "static/data_docs.css"


def pages(validated: Sequence[Validated], title: str) -> dict[str, bytes]:
    """Name → bytes: an index, a page of results and one of expectations per suite, the style sheet."""
    package = "robustbench_tc.audits.expectations"
    template = templates.environment(package).get_template("data_docs.html.j2")
    made = {STYLES: files(package).joinpath("data_docs.css").read_bytes()}
    made["index.html"] = template.render(title=title, page="index", up="", validated=validated).encode()
    for one in validated:
        for page in ("validations", "expectations"):
            shown = template.render(title=f"{one.suite}: {page}, {title}", page=page, up="../", one=one)
            made[f"{page}/{one.suite}.html"] = shown.encode()
    return made
