"""Data docs as static pages: what Great Expectations renders, without what its pages load from elsewhere.

They fetch styles, scripts, fonts and a picture from several hosts, and some tables are made by scripts.
Here their content is kept, everything else is left out, and one style sheet of ours lies beside them.
"""

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from copy import deepcopy
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

from .gx import Validated, quiet

_TAGS = frozenset(
    "html head title body nav div span p h1 h2 h3 h4 h5 h6 ul ol li a strong em b i small code pre br "
    "table thead tbody tr th td".split()
)
_GONE = frozenset(
    "script style footer hr button form input label select svg img link meta template noscript iframe "
    "object".split()
)
"""Left out with everything inside."""

_SCRIPTED = frozenset(("modal", "navbar-expand-md", "breadcrumb"))
"""Classes of what works with a script only, or leads to pages that are not there."""

_VOID = frozenset("br hr img input link meta".split())
_ATTRIBUTES = ("class", "id", "href", "colspan", "rowspan", "hidden", "data-toggle")
_ICONS = {"fa-check-circle": "✓", "fa-times": "✗", "fa-exclamation-triangle": "!"}
_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")

_INSIDE = re.compile(r"(?:\.\./)*((?:expectations|validations)/[\w\-]+\.html)")
"""A link to another page of the docs, from however deep it was meant to be followed."""

STYLES = "static/data_docs.css"


def pages(validated: Sequence[Validated], title: str) -> dict[str, bytes]:
    """Name → bytes: an index, a page of results and one of expectations per suite, the style sheet."""
    from great_expectations.core import ExpectationSuite
    from great_expectations.render.renderer import ExpectationSuitePageRenderer, ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView

    view = DefaultJinjaPageView()
    made = {
        "index.html": _index(validated, title),
        STYLES: files("robustbench_tc.audits.expectations").joinpath("data_docs.css").read_bytes(),
    }
    for suite, _, expectations, result in validated:
        shown = deepcopy(result)
        for one in shown.results:
            one.result = _escaped(one.result)  # values of rows are put into the page as they are
        shown.meta = {  # without times and places
            "run_id": {"run_name": html.escape(title)},
            "batch_spec": {"data_asset_name": suite},
            "great_expectations_version": quiet().__version__,
        }
        of_results = view.render(ValidationResultsPageRenderer().render(shown))
        plain = ExpectationSuite(suite, expectations=[expectation.make() for expectation in expectations])
        of_suite = view.render(ExpectationSuitePageRenderer().render(plain))
        made[f"validations/{suite}.html"] = _page(of_results, f"{suite}: results, {title}")
        made[f"expectations/{suite}.html"] = _page(of_suite, f"{suite}: expectations, {title}")
    return made


def _escaped(value: Any) -> Any:
    """A result with every text in it escaped."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, dict):
        return {key: _escaped(inner) for key, inner in value.items()}
    return [_escaped(inner) for inner in value] if isinstance(value, list) else value


def _index(validated: Sequence[Validated], title: str) -> bytes:
    rows = []
    for suite, table, expectations, result in validated:
        passed = sum(bool(one.success) for one in result.results)
        status = "success" if result.success else "danger"
        word = "✓ succeeded" if result.success else "✗ failed"
        rows.append(
            f'<tr><td class="text-{status}">{word}</td>'
            f'<td><a href="validations/{suite}.html">{suite}</a></td>'
            f'<td class="number">{passed} of {len(expectations)}</td><td class="number">{len(table)}</td>'
            f'<td><a href="expectations/{suite}.html">expectations</a></td></tr>'
        )
    body = (
        '<div class="container"><h1>Data docs</h1>'
        f"<p>{html.escape(title)}. Every suite that the gate ran; what failed is listed on its page.</p>"
        "<table><thead><tr><th>Status</th><th>Results</th><th>Expectations met</th><th>Rows</th>"
        f"<th>Suite</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    return _document(title, body, STYLES)


def _page(rendered: str, title: str) -> bytes:
    """A rendered page, cleaned, with a way back to the index."""
    reader = _Reader()
    reader.feed(rendered)
    reader.close()
    body = reader.root.find(".//body")
    if body is None:
        raise ValueError("Great Expectations rendered a page without a body")
    _prune(body)
    inner = "".join(ET.tostring(child, encoding="unicode", method="html") for child in body)
    home = '<p class="home"><a href="../index.html">All suites</a></p>'
    return _document(title, home + re.sub(r"\n\s*\n+", "\n", inner), f"../{STYLES}")


def _document(title: str, body: str, styles: str) -> bytes:
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(title)}</title><link rel="stylesheet" href="{styles}">'
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'.encode()
    )


class _Reader(HTMLParser):
    """The allowed elements and attributes of a page as a tree."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = ET.Element("root")
        self._open = [self.root]
        self._gone: list[str] = []
        """Elements that are open and left out."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._gone or tag in _GONE:
            if tag not in _VOID:
                self._gone.append(tag)
            return
        if tag not in _TAGS:
            return
        kept = {name: value or "" for name, value in attrs if name in _ATTRIBUTES}
        if "href" in kept and not kept["href"].startswith("#"):
            inside = _INSIDE.fullmatch(kept.pop("href"))
            kept |= {"href": f"../{inside.group(1)}"} if inside else {}
        if _RANDOM.search(kept.get("id", "")):
            del kept["id"]
        element = ET.SubElement(self._open[-1], tag, kept)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if self._gone:
            if tag in self._gone:
                while self._gone.pop() != tag:
                    pass
            return
        if any(element.tag == tag for element in self._open[1:]):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._gone:
            return
        here = self._open[-1]
        if len(here):
            here[-1].tail = (here[-1].tail or "") + data
        else:
            here.text = (here.text or "") + data


def _prune(body: ET.Element) -> None:
    """Leaves out what needs a script, and says in letters what icons say."""
    for parent in list(body.iter()):
        for child in list(parent):
            classes = child.get("class", "").split()
            header = child.find("div/strong")
            actions = "card" in classes and header is not None and (header.text or "").strip() == "Actions"
            of_a_time = child.tag == "tr" and "".join(child.itertext()).strip().startswith("Run Time")
            toggle = child.get("data-toggle") == "collapse"
            if (
                toggle
                or actions
                or of_a_time
                or _SCRIPTED & set(classes)
                or (child.tag in ("li", "nav", "ol") and not "".join(child.itertext()).strip())
            ):
                _remove(parent, child)
        for name, sign in _ICONS.items():
            if name in parent.get("class", ""):
                parent.text = sign
    for element in body.iter():
        element.attrib.pop("data-toggle", None)


def _remove(parent: ET.Element, child: ET.Element) -> None:
    """Takes an element out and leaves the text behind it."""
    at = list(parent).index(child)
    if child.tail and at:
        parent[at - 1].tail = (parent[at - 1].tail or "") + child.tail
    elif child.tail:
        parent.text = (parent.text or "") + child.tail
    parent.remove(child)
