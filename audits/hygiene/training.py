"""The texts of a training row against the rules, line by line: prompts are long and share most lines.

A row's lines are upstream's (then what is found in them was reviewed) or what the row's own changes made of
reviewed lines; nothing else may hold anything that a rule finds.
"""

from collections.abc import Iterator
from functools import lru_cache

from robustbench_tc.schema import Json, loads

from . import schemas
from .rows import DIALOGUE_TAGS, OF_A_ROW
from .texts import (
    CREDENTIAL,
    RULES,
    Find,
    Flagged,
    Leaf,
    Texts,
    finds,
    finds_by_rule,
    in_short,
    known,
    leaves,
)

PARAMETERS = "Parameters: "
"""Begins the line of a prompt that holds a tool's parameters as JSON."""

LINE = 20_000
"""Characters of a line; the longest so far has 3,500."""

TRAINING_HYGIENE = {
    **{name: rule.protects for name, rule in RULES.items()},
    "length": OF_A_ROW["length"],
    "tools_are_schemas": OF_A_ROW["tools_are_schemas"],
}
"""Every check `hygiene.NAME` of a training build."""


class TrainingTexts(Texts):
    """Looks at the texts of training rows."""

    def verdicts(self, turns: list[str], gold: str, changes: list[dict[str, Json]]) -> dict[str, str]:
        """The verdicts by column, `no_new_credential` among them."""
        found = finds_by_rule(self.to_review(turns, gold, changes))
        long = [
            f"a line of {len(line)} characters"
            for text in turns
            for line in text.splitlines()
            if len(line) > LINE
        ]
        return {
            "no_new_credential": in_short(found.get(CREDENTIAL, ())),
            **{name: in_short(found.get(name, ())) for name in RULES},
            "length": in_short(long),
            "tools_are_schemas": in_short(_invalid(changes)),
        }

    def to_review(
        self, turns: list[str], gold: str, changes: list[dict[str, Json]]
    ) -> Iterator[tuple[Flagged, Find]]:
        """What nobody looked at and no reviewed text of before explains."""
        sides = [(f"changes/{n}", one.get("before"), one.get("after")) for n, one in enumerate(changes)]
        before = [flagged for place, old, _ in sides for flagged in _flagged(place, _text(old))]
        after = [flagged for place, _, new in sides for flagged in _flagged(place, _text(new))]
        here = [one for n, text in enumerate((*turns, gold)) for one in _flagged(f"turn {n}", text)]
        yield from self.unreviewed(before)
        bad = {find for _, find in self.unreviewed(before)}
        explained = known((flagged for flagged in before if not bad & set(flagged.finds)), "")
        yield from self.brought_in((*here, *after), explained)


def _flagged(place: str, text: str) -> Iterator[Flagged]:
    for line in text.splitlines():
        yield from (Flagged(place, *found) for found in _in_line(line))


@lru_cache(maxsize=65_536)
def _in_line(line: str) -> tuple[tuple[str, tuple[Find, ...]], ...]:
    return tuple((leaf.text, found) for leaf in _leaves(line) if (found := finds(leaf)))


def _leaves(line: str) -> Iterator[Leaf]:
    """The texts of a line: what JSON it holds is looked into, so that an escape is not a damage."""
    plain = DIALOGUE_TAGS.sub("", line).strip()
    start = plain.removeprefix(PARAMETERS)
    if start[:1] in ("{", "["):
        try:
            yield from leaves(loads(start))
            return
        except (ValueError, RecursionError):  # not JSON after all: the line is looked at as it stands
            pass
    yield Leaf(plain)


def _text(value: Json) -> str:
    """A change's side as lines: a text as it stands, tools and parameters a text per line."""
    if value is None:
        return ""
    return value if isinstance(value, str) else "\n".join(leaf.text for leaf in leaves(value))


def _invalid(changes: list[dict[str, Json]]) -> Iterator[str]:
    for change in changes:
        new = change.get("after")
        if not isinstance(new, dict) or not isinstance(new.get("parameters"), dict):
            continue
        if problem := schemas.invalid(new["parameters"]):
            yield f"{change.get('path')}: {problem}"
