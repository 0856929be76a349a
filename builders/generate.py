"""`--generator`: who writes which model-written type.

recorded                     what ships with the package (default)
recorded:PATH                a folder or file in the form of generations.jsonl
openai:MODEL[@BASE_URL]      any OpenAI-compatible endpoint, or several: @BASE_URL,BASE_URL
rule                         typing errors by rule, for realistic_typos alone
none                         nobody: the types are reported as not generated
KIND=SPEC                    one of these for one type
"""

import re
from collections.abc import Sequence
from pathlib import Path

from robustbench_tc import seeding, taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.llm import parse_endpoints

from .generators.base import Answering, Generator, Refuse, Silent, is_written, kinds
from .generators.endpoint import Model, Settings, Spent
from .generators.recorded import Recorded, from_path, shipped
from .perturb.base import NotApplicable, Text, TextRequest
from .perturb.severity_typos import free_words, mistype

__all__ = ["Generator", "Settings", "kinds", "make_generator", "parse_generators"]

RULE = "rule"

KIND = "realistic_typos"
"""The one type that it writes for."""

SLIPS = (2, 3, 4)
"""How many a text has, as many as there is room for."""


class Rule(Answering):
    """Keyboard slips, as of `perturb/severity_typos.py`; a text depends on nothing but the request."""

    def __init__(self) -> None:
        super().__init__(RULE)

    def answer(self, request: TextRequest, refuse: Refuse) -> Text | str:
        """A text, or `too_few_words` where the request has no two words that may be mistyped."""
        rng = seeding.rng(0, self.label, request.key)
        fixed = request.context.get("protected", ())
        free = free_words(request.input, request.keep, request.keep)
        words = [word for word in free if request.input[word.start : word.end].lower() not in fixed]
        for slips in range(rng.choice(SLIPS), SLIPS[0] - 1, -1):
            try:
                written = mistype(request.input, words, slips, rng)
            except NotApplicable:
                continue
            return refuse(request, written) or Text(written, self.label)
        return "too_few_words"


_PER_KIND = re.compile(r"([^:=]+)=(.*)", re.DOTALL)


def make_generator(
    kind: str,
    spec: str,
    *,
    bundled: bool = False,
    settings: Settings | None = None,
    spent: Spent | None = None,
) -> Generator:
    """The generator that `spec` names, for one model-written type. Raises UserError.

    `bundled`: the starter samples are being built, so their hand-written texts come first. `spent` is shared
    by the generators of a build whose `settings` limit requests or cost.
    """
    name, colon, rest = spec.strip().partition(":")
    if name == "recorded":
        return Recorded(*(from_path(Path(rest)) if colon else shipped(bundled=bundled)))
    if name == "openai":
        endpoint, *also = parse_endpoints(rest)
        for one in (endpoint, *also):
            one.resolved()  # a missing key or a wrong address is said before any work
        return Model(kind, endpoint, settings, spent, also)
    if name == "none" and not colon:
        return Silent()
    if name == RULE and not colon:
        if kind != KIND:
            raise UserError(f"--generator {spec}: rules write only {KIND}: {KIND}={spec}")
        return Rule()
    raise unknown("generator", spec, ("recorded", "recorded:PATH", "openai:MODEL[@BASE_URL]", "rule", "none"))


def parse_generators(
    specs: Sequence[str],
    *,
    bundled: bool = False,
    settings: Settings | None = None,
    also: Sequence[str] = (),
) -> dict[str, Generator]:
    """A generator for every model-written type: `recorded` unless `specs` say otherwise, the last one wins.

    `also`: types beside the stated ones; those that `specs` name have one too (`language_de=…`).

    Raises UserError for an unknown generator or type, with near misses.
    """
    chosen = dict.fromkeys((*kinds(), *also), "recorded")
    for spec in specs:
        match = _PER_KIND.fullmatch(spec.strip())
        if match is None:
            chosen = dict.fromkeys(chosen, spec)
            continue
        kind = taxonomy.code_of(match[1])
        if not is_written(kind):
            if taxonomy.known(kind):
                raise UserError(f"--generator {spec}: {kind} is made by rule and takes no generator")
            raise unknown("model-written type", kind, kinds())
        chosen[kind] = match[2]
    spent = Spent()
    return {
        kind: make_generator(kind, spec, bundled=bundled, settings=settings, spent=spent)
        for kind, spec in chosen.items()
    }
