"""Names of one thing in two forms, which a reader knows unsaid: `tables.toml` lists them."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LISTED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))

STATES = {name.lower(): code.lower() for name, code in _LISTED.pop("states").items()}
"""Names of the states of the USA with their postal codes."""

COUNTS: dict[str, list[int | str]] = _LISTED.pop("counts")

COMMANDS = frozenset({"dir", "taskkill", "im", "f"})
"""Words of the Windows command line, of two commands that every user of it knows: list a folder, end a program."""

_FORMS: dict[str, dict[str, list[str]]] = {}
"""Table → name → its other forms, in small letters."""
for _table, _listed in _LISTED.items():
    _FORMS[_table] = {}
    for _names, _forms in _listed["names"]:
        for _name in _names:
            _FORMS[_table].setdefault(_name.lower(), []).extend(form.lower() for form in _forms)


def is_region(text: str) -> bool:
    """Whether a text is a state of the USA, or a country by a name or code of these tables."""
    wanted = text.strip().lower()
    if wanted in STATES or wanted in STATES.values():
        return True
    return any(wanted == name or wanted in forms for name, forms in _FORMS["countries"].items())


def known(value: str) -> Iterator[tuple[str, str, str]]:
    """(name that a dialogue would have, class, why) for each name that a value is another form of."""
    wanted = value.strip().lower()
    for table, listed in _LISTED.items():
        for name, forms in _FORMS[table].items():
            if wanted in forms:
                yield name, listed["kind"], listed["why"]
    for state, code in STATES.items():
        if wanted in (state, code):
            yield code if wanted == state else state, "convention", "state code"
