"""Texts from templates: one environment for pages, cards and reports.

An unknown name in a template is an error, never an empty place.
"""

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
import msgspec

from . import numbers


@cache
def environment(package: str, inside: str = "") -> jinja2.Environment:
    """The templates in a package's folder, or in one inside it, by file name, each compiled once a process.

    What goes into a `.html.j2` is escaped. The same object every time: a filter that is added stays.
    """
    folder = files(package).joinpath(inside)
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "number": _typeset(numbers.number),
        "signed": _typeset(numbers.signed),
        "interval": _typeset(numbers.interval),
        "points": _typeset(numbers.points),
        "percent": numbers.percent,
        "p_value": numbers.p_value,
        "size": numbers.size,
        "counts": numbers.counts,
        "cell": lambda value: " ".join(str(value).replace("|", "\\|").split()),
        "code": "`{}`".format,
        "plain": plain,
        "json": lambda value: msgspec.json.encode(value).decode(),
    }
    return made


def badge(label: str, text: str, colour: str, tip: str) -> str:
    """An SVG image of a label and a text. `tip`: the text for those who point at it, or hear it."""
    values = {"label": label, "text": text, "colour": colour, "tip": tip}
    return environment("robustbench_tc.io").get_template("badge.html.j2").render(values)


def plain(text: str) -> str:
    """Text that can neither break a Markdown table nor start markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", re.sub(r"[\r\n]", " ", text))


def _typeset(spell: Callable[..., str]) -> Callable[..., str]:
    def spelled(*values: Any, **options: Any) -> str:
        return numbers.typeset(spell(*values, **options))

    return spelled
