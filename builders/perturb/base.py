"""What a perturbation is: one unit per type code, with everything about the type in one place.

A unit states the type's facts (class attributes; `facts.py` collects them), says which texts it needs
(`requests`, empty for rule types), whether it applies and what it changes (`perturb`, which raises
`NotApplicable` with a reason), what must hold between a clean row and its own (`check`), and shows itself:
golden cases to read, and a defect that the gate has to catch (`spoiled`). Randomness and rewritten texts come
in from outside, so a unit is a pure function.
"""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Literal, TypeAlias, TypeVar

import msgspec

from robustbench_tc.eval.validate import taken as taken_by_scorer
from robustbench_tc.schema import GOLD_NOT_STATED, Change, Component, Json, Sample, Tool
from robustbench_tc.taxonomy import Channel, Level, Method, NoCall, Pack, Part, Rows

from .. import answerable

NOT_TOOLS: frozenset[Part] = frozenset({"messages", "the number or roles of messages", "golden answers"})
"""The parts of a row that are not tools."""

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


Made = TypeVar("Made")

Taken: TypeAlias = Callable[[Sample, Mapping[str, str]], bool]
"""Whether the sample's scorer takes its golden call with other texts for the values that the map names."""


class Context:
    """What a unit may look at besides the sample: accepted texts by key, donor tools by source, and the clean
    samples of the build."""

    def __init__(
        self,
        texts: Mapping[str, Text | str] | None = None,
        donors: Mapping[str, Sequence[Tool]] | None = None,
        silent: frozenset[str] = frozenset(),
        loans: Mapping[str, tuple[Sample, ...]] | None = None,
        samples: Sequence[Sample] = (),
        taken: Taken = taken_by_scorer,
    ) -> None:
        """`silent`: the model-written types for which nobody writes anything. `loans`: samples that types
        borrow, by name (`Perturbation.borrows`). `taken`: the scorer's word."""
        self.taken = taken
        self._texts = texts or {}
        self.donors = donors or {}
        """Tools of each source's clean samples that may lend parameters, in a fixed order."""
        self._silent = silent
        self._loans = loans or {}
        self._lent: dict[tuple[str, str], list[Sample]] = defaultdict(list)
        for name, lent in self._loans.items():
            for sample in lent:
                self._lent[name, sample.clean_id].append(sample)
        self.samples = samples
        """The clean samples of the build, in order."""
        self._made: dict[type, object] = {}

    def once(self, kind: type[Made], make: Callable[[], Made]) -> Made:
        """What `make` gives: the same for all rows, and made when a row first asks for it."""
        found = self._made.get(kind)
        if not isinstance(found, kind):
            found = self._made[kind] = make()
        return found

    def text(self, request: TextRequest) -> Text:
        """The accepted answer. Raises NotApplicable with the reason when there is none."""
        if request.kind in self._silent:
            raise NotApplicable(NOT_GENERATED)
        found = self._texts.get(request.key, "no_answer")
        if isinstance(found, str):
            raise NotApplicable(found)
        return found

    def loan(self, name: str) -> tuple[Sample, ...]:
        """The samples of a loan (`builders/plan.py`); () where nobody lends them."""
        return self._loans.get(name, ())

    def lent(self, name: str, clean_id: str) -> Sequence[Sample]:
        """Those of the loan that are lent for one clean sample, in order."""
        return self._lent.get((name, clean_id), ())


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A golden case: a clean sample of ours, and how the type's row differs from it, to be read."""

    clean: str
    """A sample of `cases.CLEAN`."""
    reads: str
    """`cases.difference` of the two, line by line."""
    texts: dict[str, Json] = {}
    """What somebody wrote for the texts that the type asks for, by their input."""


class Perturbation:
    """Base of the units: the facts that a type states, and what it does. See docs/extending.md.

    A fact stands in the class itself or, where a whole family shares it, in a base class that is not a type.
    """

    code: ClassVar[str]
    order: ClassVar[int]
    display_name: ClassVar[str]
    label: ClassVar[str]
    component: ClassVar[Component]
    level: ClassVar[Level]
    pack: ClassVar[Pack]
    channel: ClassVar[Channel]
    what_is_modified: ClassVar[str]
    how_made: ClassVar[str]
    method: ClassVar[Method]
    may_change: ClassVar[tuple[Part, ...]]
    ground_truth_changes: ClassVar[bool]
    train_augmentable: ClassVar[bool]
    applies_to: ClassVar[Literal["every source", "one gold tool"] | tuple[str, ...]]
    """Every source, those whose samples have one gold tool, or sources by name."""
    rows: ClassVar[Rows]
    golden: ClassVar[tuple[Case, ...]]
    caught_by: ClassVar[str]
    """The check of the gate that catches what `spoiled` makes of a row."""

    paper_rows: ClassVar[int | None] = None
    paper_unchanged: ClassVar[int] = 0
    judged_as: ClassVar[str | None] = None
    injected_error: ClassVar[str | None] = None
    flags: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Flags that its rows may carry, with words for the card."""
    traits: ClassVar[tuple[str, ...]] = ()
    """Names of further class attributes, which tell the types of one channel apart."""
    prompt: ClassVar[str] = ""
    """Model-written types: the name of the prompt, where several types share one; else it is the code's."""
    prompt_words: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What such a prompt says of this type: its placeholders, beside those of every request."""
    solved_without_reading: ClassVar[str] = ""
    """Why the type stays although the registry alone gives the gold tool away (`audits/shortcuts.py`)."""
    series: ClassVar[str] = ""
    """The series of doses that the type is one of, and its dose, in the series' own unit."""
    dose: ClassVar[float | None] = None
    prior_art: ClassVar[str] = ""
    """Beyond the core: the paper or benchmark that asks the same, in a line; "none known" where there is
    none."""
    draws_as: ClassVar[str] = ""
    """The type whose draws it repeats, sample for sample; "" for draws of its own."""
    may_decline: ClassVar[bool] = False
    """Whether its rows are asked in words that leave it open to call nothing."""
    borrows: ClassVar[tuple[str, ...]] = ()
    """Loans that it needs beside the clean rows of the build (`builders/plan.py`)."""
    no_call: ClassVar[NoCall] = "wrong"
    """What a reply without a call is worth in its rows."""
    control: ClassVar[str] = ""
    """Where that is right or accepted: the type whose rows of the same samples, asked in the same words, make
    a call due."""
    otherwise_caught_by: ClassVar[str] = ""
    """Beyond the core: the check of the gate that catches what `spoiled_otherwise` makes of a row."""

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
                "the gold changed": other_gold and "golden answers" not in self.may_change,
            }
        )

    def spoiled(self, clean: Sample, row: Sample) -> Sample:
        """`row` with a defect that this type could plausibly have: the check `caught_by` has to see it."""
        raise NotImplementedError

    def spoiled_otherwise(self, clean: Sample, row: Sample) -> Sample:
        """`row` with another such defect, which `otherwise_caught_by` has to see; every type beyond the core
        has one."""
        raise NotImplementedError

    def row(
        self,
        clean: Sample,
        changes: Sequence[Change],
        *,
        generator: str = "rule",
        flags: Sequence[str] = (),
        **fields: object,
    ) -> Sample:
        """A new row of this type anchored to `clean`, with `fields` replaced.

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
            **fields,
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


def register(unit: type[Perturbation]) -> type[Perturbation]:
    """Class decorator: puts one instance of the unit into the registry under its code."""
    code = vars(unit).get("code")
    if not isinstance(code, str) or not code.isidentifier():
        raise ValueError(f"{unit.__module__}.{unit.__qualname__}: a type states its own `code`, a plain word")
    if code in REGISTRY:
        raise ValueError(f"two units for {code}: {type(REGISTRY[code]).__qualname__} and {unit.__qualname__}")
    REGISTRY[code] = unit()
    return unit


def states(**facts: object) -> Callable[[type[Perturbation]], type[Perturbation]]:
    """Class decorator under `register`: the facts of a type that has steps of its own, as a row of a table.

    `facts`: the class attributes of `Perturbation` that it states.
    """

    def stated(unit: type[Perturbation]) -> type[Perturbation]:
        for name, value in facts.items():
            setattr(unit, name, value)
        return unit

    return stated


def variant(base: type[Perturbation], what: str, **facts: object) -> None:
    """Registers a type that differs from its family in facts alone: a row of the family's table.

    `what`: the docstring of its class; `facts`: the class attributes of `Perturbation` that it states.
    """
    register(type(str(facts["code"]), (base,), {"__doc__": what, "__module__": base.__module__, **facts}))


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
