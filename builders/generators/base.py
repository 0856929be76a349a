"""What a generator is, and what it can tell about its work."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import Json, dumps

from ..perturb.base import NOT_GENERATED, Text, TextRequest
from .tools import refuse_tools

Refuse: TypeAlias = Callable[[TextRequest, Json], str | None]
"""The acceptance check: why an answer is refused, or None."""

SILENT = "none"
"""The label of who writes nothing."""

NO_ANSWER = "no_answer"
"""Nobody has written this text: ends a build unless it allows missing texts."""


def kinds() -> tuple[str, ...]:
    """Codes of the model-written types, in the taxonomy's order."""
    return tuple(t.code for t in taxonomy.types("all") if t.method == "llm" and t.channel != "mixed")


def is_written(code: str) -> bool:
    """Whether a model writes the texts of the type; also of one that no module states (`language_de`)."""
    return taxonomy.known(code) and not taxonomy.parts(code) and taxonomy.get(code).method == "llm"


class Refusal(NamedTuple):
    """An answer that was not taken."""

    key: str
    """The request's."""
    answer: Json
    reason: str


def writes_tools(kind: str) -> bool:
    """Whether the type asks for new tools instead of a text."""
    return taxonomy.get(kind).channel == "siblings"


def writes_translations(kind: str) -> bool:
    """Whether the type asks for a text with a map of its translated values."""
    return taxonomy.get(kind).traits.get("values") == "translated"


class Statistics(msgspec.Struct):
    """What a generator did for one type."""

    generator: str
    """The label that its texts carry; several, joined by `+`, where texts come from several files."""
    asked: int = 0
    """Texts that were asked for."""
    answered: int = 0
    """Texts that were accepted."""
    missing: Counter[str] = msgspec.field(default_factory=Counter)
    """Texts that there are not, by reason."""
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    """Answers that failed the acceptance check, by reason; a text can have several."""
    retried: int = 0
    """Times that a model was asked again because its answer was refused."""
    replayed: int = 0
    """Answers that came from the store instead of the endpoint."""
    requests: int = 0
    """Requests sent to the endpoint, its retries included."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    refusals: list[Refusal] = []
    """Every refused answer, in order: for `generations.jsonl`, not for the report."""

    def refuse(self, request: TextRequest, answer: Json, reason: str) -> None:
        """Counts and keeps an answer that is not taken."""
        self.refused[category(reason)] += 1
        self.refusals.append(Refusal(request.key, _storable(answer), reason))

    def settle(self, answers: Mapping[str, Text | str]) -> None:
        """Counts what became of the texts."""
        self.asked += len(answers)
        labels = set()
        for answer in answers.values():
            if isinstance(answer, str):
                self.missing[category(answer)] += 1
            else:
                self.answered += 1
                labels.add(answer.generator)
        self.generator = "+".join(sorted(labels)) or self.generator

    def report(self) -> dict[str, Any]:
        """For the build report: plain values, what did not happen left out."""
        plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self, refusals=[]))
        return {name: value for name, value in plain.items() if value or name in ("asked", "answered")}


def category(reason: str) -> str:
    """A reason without the value it names, so that it can be counted: `refused: lost value 'Oslo'`."""
    return re.sub(r"\s*(?:['\"].*|\d.*)$", "", reason, flags=re.DOTALL)


class Generator(Protocol):
    """Writes the texts of one model-written type."""

    label: str
    """Where its texts come from: `recorded`, `hand-written`, `model@prompt-version`, `none`."""

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        """By request key the accepted text, or the reason why there is none.

        Raises UserError when the work as a whole cannot go on: no endpoint, a limit reached.
        """
        ...

    def statistics(self) -> dict[str, Any]:
        """What was asked, answered, refused and retried so far, as plain values."""
        ...


class Counting:
    """What the generators here share: they count what they do, and keep the answers they do not take."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._statistics = Statistics(generator=label)

    def statistics(self) -> dict[str, Any]:
        """As `Generator.statistics`."""
        return self._statistics.report()

    def refusals(self) -> Sequence[Refusal]:
        """Every answer that was refused so far, in the order of each text's tries."""
        return self._statistics.refusals


class Answering(Counting):
    """A generator that answers each request by itself."""

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """The accepted text, or the reason why there is none."""
        raise NotImplementedError

    async def generate(self, requests: Sequence[TextRequest], refuse: Refuse) -> dict[str, Text | str]:
        """As `Generator.generate`."""
        answers = {request.key: self.answer(request, refuse) for request in requests}
        self._statistics.settle(answers)
        return answers


def check(request: TextRequest, answer: Json, refuse: Refuse) -> str | None:
    """Why the answer is refused: new tools have a check of their own, texts the caller's."""
    try:
        dumps(answer)
    except ValueError:  # NaN, a lone surrogate: no row can hold it
        return "it cannot be written as JSON"
    return refuse_tools(request, answer) if writes_tools(request.kind) else refuse(request, answer)


class Silent(Answering):
    """`none`: writes nothing, and that is not an error."""

    def __init__(self) -> None:
        super().__init__(SILENT)

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """`not_generated`."""
        return NOT_GENERATED


def _storable(answer: Json) -> Json:
    """The answer, or as text what JSON cannot hold."""
    try:
        dumps(answer)
    except ValueError:
        return json.dumps(answer)
    return answer
