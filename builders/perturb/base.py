"""What a perturbation is: one unit per type code, with everything about the type in one place.

A unit states the type's facts (its fields; `facts.py` collects them), says which texts it needs (`requests`,
empty for rule types), whether it applies and what it changes (`perturb`, which raises `NotApplicable` with a
reason), and what must hold between a clean row and its own (`check`). Randomness and rewritten texts come in
from outside, so a unit is a pure function. How it reads, and which defects the gate has to catch, stands in
tests/builders/perturb/golden.yaml.
"""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from robustbench_tc.eval.validate import taken as taken_by_scorer
from robustbench_tc.schema import GOLD_NOT_STATED, Change, Json, Sample, Tool
from robustbench_tc.taxonomy import Part, PerturbationType

from .. import answerable

NOT_TOOLS: frozenset[Part] = frozenset({"messages", "the number or roles of messages", "golden answers"})
"""The parts of a row that are not tools."""

MOVES_TOOLS: frozenset[Part] = frozenset({"the set of tools", "the order of tools", "tool names"})
"""The parts without which the names of the tools stand as they were."""

NOT_GENERATED = "not_generated"
"""The generator `none`: the type is left out on purpose."""


class NotApplicable(Exception):
    """The type does not apply to this sample. `reason` is a short code counted in the build report."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TextRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One text that somebody has to write: a rewriting of `input`, or up to two new tools (`redundant`)."""

    kind: str
    """The model-written type's code."""
    input: str
    """The text to rewrite; for `redundant` the description of the tool to imitate."""
    tool: str | None = None
    parameter: str | None = None
    sample: str | None = None
    """The clean id, where the text is written for one sample and may serve no other (`redundant`)."""
    keep: tuple[str, ...] = ()
    """Gold values that occur in `input` and must still occur in the answer."""
    context: dict[str, Json] = {}
    """For the prompt only, no part of the key: schema, types, names already taken, the sample's query."""

    @property
    def key(self) -> str:
        """32 hex digits over kind, tool, parameter, sample and the normalised input: an answer's address."""
        return _key(self.kind, self.tool, self.parameter, self.input, self.sample)


class Text(msgspec.Struct, frozen=True):
    """An accepted answer to a `TextRequest`: a text, or a list of tools for `redundant`."""

    value: Json
    generator: str
    """`recorded`, `hand-written`, or `model@prompt-version`."""


def normalise_text(text: str) -> str:
    """Runs of white space as one space, ends trimmed, one trailing full stop dropped."""
    return re.sub(r"\s+", " ", text).strip().removesuffix(".").rstrip()


_ENCODE = msgspec.json.Encoder().encode


@lru_cache(100_000)  # a text is asked for, looked up and recorded, for every sample that holds it
def _key(kind: str, tool: str | None, parameter: str | None, text: str, sample: str | None) -> str:
    parts = (kind, tool, parameter, normalise_text(text), *(() if sample is None else (sample,)))
    return hashlib.sha256(_ENCODE(parts)).hexdigest()[:32]  # texts only: `dumps` has nothing to look for


Taken: TypeAlias = Callable[[Sample, Mapping[str, str]], bool]
"""Whether the sample's scorer takes its golden call with other texts for the values that the map names."""


class Context(msgspec.Struct, frozen=True, dict=True, eq=False):
    """What a unit may look at besides the sample: accepted texts, donor tools, and the clean samples of the
    build."""

    texts: Mapping[str, Text | str] = {}
    """By key of their request; or the reason why there is none."""
    donors: Mapping[str, Sequence[Tool]] = {}
    """Tools of each source's clean samples that may lend parameters, in a fixed order."""
    silent: frozenset[str] = frozenset()
    """The model-written types for which nobody writes anything."""
    loans: Mapping[str, tuple[Sample, ...]] = {}
    """Samples that types borrow, by name (`Perturbation.borrows`, `builders/plan.py`)."""
    samples: Sequence[Sample] = ()
    """The clean samples of the build, in order."""
    taken: Taken = taken_by_scorer
    """The scorer's word."""

    def text(self, request: TextRequest) -> Text:
        """The accepted answer. Raises NotApplicable with the reason when there is none."""
        if request.kind in self.silent:
            raise NotApplicable(NOT_GENERATED)
        found = self.texts.get(request.key, "no_answer")
        if isinstance(found, str):
            raise NotApplicable(found)
        return found

    @cached_property
    def _lent(self) -> Mapping[tuple[str, str], Sequence[Sample]]:
        found: dict[tuple[str, str], list[Sample]] = defaultdict(list)
        for name, lent in self.loans.items():
            for sample in lent:
                found[name, sample.clean_id].append(sample)
        return found

    def lent(self, name: str, clean_id: str) -> Sequence[Sample]:
        """Those of the loan that are lent for one clean sample, in order."""
        return self._lent.get((name, clean_id), ())


Facts: TypeAlias = dict[str, Any]
"""What the types of a family state alike: fields of `Perturbation`."""


class Perturbation(PerturbationType, frozen=True, kw_only=True, eq=False):
    """A type: its facts, as fields, and what it does. See docs/extending.md.

    A family is a class with what its types do, a dict of what they state alike, and a table of its types:
    calls of the class. A field of a family is a parameter by which its types differ.
    """

    applies_to: Literal["every source", "one gold tool"] | tuple[str, ...]
    """Every source, those whose samples have one gold tool, or sources by name."""
    prompt: str = ""
    """Model-written types: the name of the prompt, where several types share one; else it is the code's."""
    prompt_words: Mapping[str, str] = {}
    """What such a prompt says of this type: its placeholders, beside those of every request."""
    draws_as: str = ""
    """The type whose draws it repeats, sample for sample; "" for draws of its own."""
    borrows: tuple[str, ...] = ()
    """Loans that it needs beside the clean rows of the build (`builders/plan.py`)."""

    TRAITS: ClassVar[tuple[str, ...]] = ()
    """The parameters that are published: they tell the types of one channel apart."""

    def requests(self, sample: Sample) -> Sequence[TextRequest]:
        """The texts this type needs for the sample; none for rule and runtime types."""
        return ()

    def refuse(self, request: TextRequest, answer: Json) -> str | None:
        """Why an answer to one of `requests` is not taken, or None."""
        return refuse_text(request, answer)

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The perturbed row. Raises NotApplicable with a reason."""
        raise NotImplementedError

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """What is wrong with `row` as this type's row of `clean`: one sentence each, [] when all is well.

        May raise NotApplicable, which is wrong too (`problems`).
        """
        raise NotImplementedError

    def problems(self, clean: Sample, row: Sample) -> list[str]:
        """As `check`, for any row: that the type does not apply to its clean row is wrong too."""
        try:
            return self.check(clean, row)
        except NotApplicable as skip:
            return [f"no row is due: {skip.reason}"]

    def beyond(self, clean: Sample, row: Sample) -> list[str]:
        """Messages, tools or gold that differ though `may_change` lacks them: a `check` begins here."""
        same_roles = [m.role for m in row.messages] == [m.role for m in clean.messages]
        part = "messages" if same_roles else "the number or roles of messages"
        other_gold = row.golden_answers != clean.golden_answers
        return broken(
            {
                f"messages changed, and may_change does not hold {part!r}": part not in self.may_change
                and row.messages != clean.messages,
                "the tools changed": row.tools != clean.tools and set(self.may_change) <= NOT_TOOLS,
                "tools came, went, moved or are named otherwise, and may_change does not hold it": (
                    not set(self.may_change) <= NOT_TOOLS
                    and not MOVES_TOOLS & set(self.may_change)
                    and [t.name for t in row.tools] != [t.name for t in clean.tools]
                ),
                "the gold changed": other_gold and "golden answers" not in self.may_change,
            }
        )

    def row(
        self,
        clean: Sample,
        changes: Sequence[Change],
        *,
        generator: str = "rule",
        flags: Sequence[str] = (),
        **fields: object,
    ) -> Sample:
        """A new row of this type anchored to `clean`, with `fields` replaced (a list stands as a tuple).

        The flag `gold_not_stated` of the clean row stays where the row's own gold cannot be reached either.
        """
        row = msgspec.structs.replace(
            clean,
            id=f"{clean.clean_id}::{self.code}",
            type_code=self.code,
            component=self.component,
            changes=tuple(changes),
            generator=generator,
            flags=(*clean.flags, *flags),
            **{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()},
        )
        if GOLD_NOT_STATED not in clean.flags or answerable.missing_in(row, clean) is not None:
            return row
        return answerable.flagged(row, False)


DERIVED: list[Callable[[str], Perturbation | None]] = []
"""Functions that make the unit of a code that no module states (`language_de`), or give None."""


class Units(dict[str, Perturbation]):
    """Units by code. A derived one is found by its code and stands in no list."""

    def __missing__(self, code: str) -> Perturbation:
        for derive in DERIVED:
            if (unit := derive(code)) is not None:
                return unit
        raise KeyError(code)


REGISTRY = Units()
"""Every stated unit by its code, in the taxonomy's order (`perturb/__init__.py` finds the modules)."""


def register(*units: Perturbation) -> None:
    """Puts types into the registry under their codes."""
    for unit in units:
        if not unit.code.isidentifier():
            raise ValueError(f"{unit.code!r}: the code of a type is a plain word")
        if unit.code in REGISTRY:
            raise ValueError(f"two types of the code {unit.code}")
        REGISTRY[unit.code] = unit


def broken(rules: Mapping[str, bool]) -> list[str]:
    """What is wrong: of the rules of a check (what it says → whether it is so) those that are broken."""
    return [words for words, is_so in rules.items() if is_so]


def lost_values(text: str, keep: Sequence[str], *, fold_case: bool = False) -> list[str]:
    """The values of `keep` that are not plain substrings of `text` (with `fold_case`: in any case)."""
    if fold_case:
        text = text.casefold()
        return [value for value in keep if value.casefold() not in text]
    return [value for value in keep if value not in text]


def lost_digits(before: str, after: str) -> list[str]:
    """Digit sequences that occur in `before` more often than in `after`."""
    left = re.findall(r"\d+", after)
    lost = []
    for digits in re.findall(r"\d+", before):
        if digits in left:
            left.remove(digits)
        else:
            lost.append(digits)
    return lost


def refuse_answer(request: TextRequest, answer: Json) -> str | None:
    """Why the type of the request does not take the answer, or None."""
    return REGISTRY[request.kind].refuse(request, answer)


def refuse_text(request: TextRequest, answer: Json) -> str | None:
    """The acceptance check of every rewritten text: why `answer` is refused, or None.

    Gold values that stood in the text still stand there, no digit sequence is lost, the text did change.
    A description may move a value to the head of a sentence, so its case is free there; a query is copied
    from, so it is not. (`redundant` answers have a check of their own.)
    """
    if not isinstance(answer, str) or not answer.strip():
        return "empty"
    if answer.strip() == request.input.strip():
        return "unchanged"
    if lost := lost_values(answer, request.keep, fold_case=request.tool is not None):
        return f"lost value {lost[0]!r}"
    if digits := lost_digits(request.input, answer):
        return f"lost digits {digits[0]}"
    return None
