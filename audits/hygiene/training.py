"""The texts of a training row against the rules, line by line: prompts are long and share most lines.

A row's lines are upstream's (then what is found in them was reviewed) or what the row's own changes made of
reviewed lines; nothing else may hold anything that a rule finds.
"""

from collections.abc import Iterator

from robustbench_tc.schema import Json, loads

from . import schemas
from .leaves import Leaf, leaves
from .rows import DIALOGUE_TAGS, OF_A_ROW
from .texts import CREDENTIAL, RULES, Find, Flagged, Texts, digest, in_short, known, said

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

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[bytes, tuple[tuple[str, tuple[Find, ...]], ...]] = {}

    def verdicts(self, turns: list[str], gold: str, changes: list[dict[str, Json]]) -> dict[str, str]:
        """The verdicts by column, `no_new_credential` among them."""
        found = said(self.to_review(turns, gold, changes))
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
        before: list[Flagged] = []
        after: list[Flagged] = []
        for number, change in enumerate(changes):
            before += self._flagged(f"changes/{number}", _text(change.get("before")))
            after += self._flagged(f"changes/{number}", _text(change.get("after")))
        here = [
            flagged
            for number, text in enumerate((*turns, gold))
            for flagged in self._flagged(f"turn {number}", text)
        ]
        yield from self.unreviewed(before)
        bad = {find for _, find in self.unreviewed(before)}
        explained = known((flagged for flagged in before if not bad & set(flagged.finds)), "")
        yield from self.brought_in((*here, *after), explained)

    def _flagged(self, place: str, text: str) -> Iterator[Flagged]:
        for line in text.splitlines():
            key = digest(line)
            if key not in self._lines:
                looked = ((leaf.text, self.finds(leaf)) for leaf in _leaves(line))
                self._lines[key] = tuple((one, finds) for one, finds in looked if finds)
            yield from (Flagged(place, one, finds) for one, finds in self._lines[key])


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
