"""What a perturbation is: one unit per type code, with everything about the type in one place.

A unit says which texts it needs (`requests`, empty for rule types), whether it applies and what it changes
(`perturb`, which raises `NotApplicable` with a reason), and what must hold between a clean row and its own
(`check`). Randomness and rewritten texts come in from outside, so a unit is a pure function.
"""

import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Change, Json, Sample, Tool, dumps


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
    keep: tuple[str, ...] = ()
    """Gold values that occur in `input` and must still occur in the answer."""
    context: dict[str, Json] = {}
    """For the prompt only, no part of the key: schema, types, names already taken, the sample's query."""

    @property
    def key(self) -> str:
        """32 hex digits over kind, tool, parameter and the normalised input: an answer's address."""
        parts = (self.kind, self.tool, self.parameter, normalise_text(self.input))
        return hashlib.sha256(dumps(parts).encode()).hexdigest()[:32]


class Text(msgspec.Struct, frozen=True):
    """An accepted answer to a `TextRequest`: a text, or a list of tools for `redundant`."""

    value: Json
    generator: str
    """`recorded`, `hand-written`, or `model@prompt-version`."""


def normalise_text(text: str) -> str:
    """Runs of white space as one space, ends trimmed, one trailing full stop dropped."""
    return re.sub(r"\s+", " ", text).strip().removesuffix(".").rstrip()


class Context:
    """What a unit may look at besides the sample: accepted texts by key, and donor tools by source."""

    def __init__(
        self,
        texts: Mapping[str, Text | str] | None = None,
        donors: Mapping[str, Sequence[Tool]] | None = None,
    ) -> None:
        self._texts = texts or {}
        self._donors = donors or {}

    def text(self, request: TextRequest) -> Text:
        """The accepted answer. Raises NotApplicable with the reason when there is none."""
        found = self._texts.get(request.key, "no_answer")
        if isinstance(found, str):
            raise NotApplicable(found)
        return found

    def donors(self, source: str) -> Sequence[Tool]:
        """Tools of the source's clean samples that may lend parameters, in a fixed order."""
        return self._donors.get(source, ())


class Perturbation:
    """Base of the units. Subclasses set `code` and implement `perturb`; the registry instantiates them."""

    code: ClassVar[str]

    @property
    def type(self) -> taxonomy.PerturbationType:
        return taxonomy.get(self.code)

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """The texts this type needs for the sample; none for rule and runtime types."""
        return ()

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """The perturbed row. Raises NotApplicable with a reason."""
        raise NotImplementedError

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """What is wrong with `row` as this type's row of `clean`: one sentence each, [] when all is well."""
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
        """A new row of this type anchored to `clean`, with `fields` replaced."""
        return msgspec.structs.replace(
            clean,
            id=f"{clean.clean_id}::{self.code}",
            type_code=self.code,
            component=self.type.component,
            changes=tuple(changes),
            generator=generator,
            flags=(*clean.flags, *flags),
            **fields,
        )


REGISTRY: dict[str, Perturbation] = {}
"""Every unit by its code, in the order the modules register them."""


def register(code: str) -> Callable[[type[Perturbation]], type[Perturbation]]:
    """Class decorator: puts one instance of the unit into the registry under `code`."""

    def add(unit: type[Perturbation]) -> type[Perturbation]:
        taxonomy.get(code)  # a unit without a taxonomy row is refused here
        if code in REGISTRY:
            raise ValueError(f"two units for {code}")
        made = type(
            unit.__name__, (unit,), {"code": code, "__doc__": unit.__doc__, "__module__": unit.__module__}
        )
        REGISTRY[code] = made()
        return unit

    return add


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
