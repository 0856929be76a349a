"""What needs no reading: how often the gold tool is found without a word of the request.

Two means: the blind policies (reference agents that choose by a rule) and a classifier
that is trained here (`classifier.py`). A type that either solves measures no reading of the request. It may
stay, but its module has to say why (`solved_without_reading`), and the figures stand under every table.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.eval.agents.blind import Tried, try_blind
from robustbench_tc.io import numbers
from robustbench_tc.schema import GoldenAnswer, Sample, Tool

from . import classifier
from .classifier import Example, Floats
from .folder import TABLES, Folder
from .report import Check, Failure, Shortcut, check

SOLVED = Fraction(9, 10)
"""Above this share a type counts as solved."""

SOLVED_AMONG_SIBLINGS = Fraction(1, 2)
"""So does one with new tools beside each original: chance is a sixth, half is far above it."""

COLUMNS = ["clean_id", "tools", "golden_answers", "gold_tool_index"]
"""What is read of a row: no message is among it."""

_NAMED = (
    "shortcuts.named",
    "A type that a program solves without the request says in its module why it stays: else a table would "
    "show it as reading.",
)


def audit(build: Folder) -> tuple[tuple[Shortcut, ...], Check]:
    """The figures of every config of samples, and whether each solved type is named."""
    reader = _Reader(build)
    there = [config for config in build.configs() if config not in TABLES]
    order = [taxonomy.CLEAN, *(kind.code for kind in taxonomy.known_with(there))]
    known = [code for code in order if code in there]
    codes = (*known, *(config for config in there if config not in known))  # what is not known comes last
    found = [figures for code in codes if (figures := reader.figures(code)) is not None]
    return tuple(found), _named(found, reader.unread)


def _named(found: Sequence[Shortcut], unread: int) -> Check:
    types = [one for one in found if taxonomy.known(one.type_code)]
    solved = {one.type_code: words for one in types if (words := solved_by(one))}
    unnamed = [
        Failure(one.type_code, f"{solved[one.type_code]}, and its module states no solved_without_reading")
        for one in types
        if one.type_code in solved and not one.reason
    ]
    idle = [one.type_code for one in types if one.reason and one.type_code not in solved]
    said = [f"{len(solved)} of {len(types)} types are solved without reading"]
    said += [f"{', '.join(idle)} give a reason and need none any more"] if idle else []
    said += [f"{unread} rows could not be looked at"] if unread else []
    return check(*_NAMED, len(types), unnamed, reason="; ".join(said) if types else "")


def solved_by(one: Shortcut) -> str:
    """By what a type is solved, in words; "" for one that is not."""
    scores = {**one.right, "the classifier": one.classifier}
    limit = SOLVED
    if taxonomy.known(one.type_code) and taxonomy.get(one.type_code).channel == "siblings":
        limit = SOLVED_AMONG_SIBLINGS
    name = max(scores, key=lambda name: scores[name])
    if not one.rows or Fraction(scores[name], one.rows) <= limit:
        return ""
    share = numbers.percent(scores[name] / one.rows)
    return f"{name} is right in {scores[name]} of {one.rows} rows ({share})"


# --- reading ------------------------------------------------------------------------------------------------

_TOOLS = msgspec.json.Decoder(tuple[Tool, ...])
_ANSWERS = msgspec.json.Decoder(tuple[GoldenAnswer, ...])


class _Reader:
    """Reads configs; clean registries, which stand in the rows of many types, are looked at once."""

    def __init__(self, build: Folder) -> None:
        self.unread = 0
        """Rows that could not be looked at; the checks of rows name them."""
        self._build = build
        self._registries: dict[str, tuple[Tool, ...]] = {}
        self._features: dict[str, Floats] = {}
        self._groups: dict[str, Hashable] = {}
        self._classified: dict[Hashable, int] = {}

    def figures(self, code: str) -> Shortcut | None:
        """The figures of a config; None where no row of it could be looked at."""
        right: dict[str, int] = defaultdict(int)
        chance, examples, texts = Fraction(0), list[Example](), list[Hashable]()
        for chunk in self._build.chunks(code):
            for raw in self._build.read_chunk(chunk, COLUMNS):
                try:
                    example, tried = self._look(code, raw)
                except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
                    self.unread += 1
                    continue
                examples.append(example)
                texts.append((raw["tools"], example.gold, example.group))
                chance += tried.chance
                for name, is_right in tried.right.items():
                    right[name] += is_right
        if not examples:
            return None
        # Types with the same registries and golds have the same figure: they are classified once.
        if (key := tuple(texts)) not in self._classified:
            self._classified[key] = classifier.right(examples)
        return Shortcut(
            type_code=code,
            rows=len(examples),
            chance=round(float(chance / len(examples)), 4),
            right=dict(right),
            classifier=self._classified[key],
            reason=taxonomy.get(code).solved_without_reading if taxonomy.known(code) else "",
        )

    def _look(self, code: str, raw: dict[str, Any]) -> tuple[Example, Tried]:
        text, clean_id = raw["tools"], str(raw["clean_id"])
        tools = self._registries.get(text) or _TOOLS.decode(text)
        row = Sample(
            id="",
            clean_id=clean_id,
            type_code=code,
            source="",
            category="",
            messages=(),
            tools=tools,
            golden_answers=_ANSWERS.decode(raw["golden_answers"]),
            output_format="",
            gold_tool_index=raw["gold_tool_index"],
        )
        tried = try_blind(row)
        features = self._features.get(text)
        if features is None:
            features = classifier.features(tools, tried.groups)
        if code == taxonomy.CLEAN:
            self._registries[text], self._features[text] = tools, features
            self._groups.setdefault(clean_id, tuple(sorted(tool.name for tool in tools)))
        return Example(features, tried.gold, self._groups.get(clean_id, clean_id)), tried
