"""Observation: the text that the model reads is reworded, its meaning and the gold stay (paper, table 1)."""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Literal, NamedTuple

import msgspec

from robustbench_tc.schema import Change, Sample, Tool
from robustbench_tc.taxonomy import Rows

from .base import (
    Context,
    Facts,
    NotApplicable,
    Perturbation,
    TextRequest,
    lost_digits,
    lost_values,
    refuse_answer,
    register,
)
from .query import kept_values, query_span, query_text, replace_span, rewritten
from .registry import described_parameters
from .severity_typos import protected


def accepted_text(request: TextRequest, context: Context) -> tuple[str, str]:
    """The answer and its generator; NotApplicable if it breaks the acceptance check for this very sample."""
    text = context.text(request)
    if reason := refuse_answer(request, text.value):
        raise NotApplicable(f"text_refused: {reason}")
    return text.value, text.generator


def _check_text(before: str, after: str, clean: Sample, what: str, *, fold_case: bool = True) -> list[str]:
    wrong = [f"{what} is unchanged"] if before == after else []
    wrong += [
        f"{what} lost the gold value {v!r}"
        for v in lost_values(after, kept_values(clean, before), fold_case=fold_case)
    ]
    wrong += [f"{what} lost the digits {d}" for d in lost_digits(before, after)]
    return wrong


REWRITE: Facts = {
    "component": "observation",
    "level": "perception",
    "pack": "core",
    "method": "llm",
    "ground_truth_changes": False,
    "train_augmentable": True,
    "applies_to": "every source",
    "paper_rows": 199,
}
"""What all rewriting types share: a model writes the text, its meaning and the gold stay."""


class QueryRewrite(Perturbation, frozen=True):
    """The user's query (in a transcript its last substantive turn) is rewritten, nothing else."""

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """The query's span; the gold values that stand in it have to stay."""
        text = query_text(sample)
        return (TextRequest(kind=self.code, input=text, keep=kept_values(sample, text)),)

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Replaces the query's span by the accepted text; what surrounds it in the message stays."""
        (request,) = self.requests(sample)
        text, generator = accepted_text(request, context)
        messages, change = replace_span(sample, query_span(sample), text)
        return self.row(sample, [change], generator=generator, messages=messages)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """Only the query's span differs, and its rewriting keeps gold values (case included) and digits."""
        text, wrong = rewritten(clean, row)
        if (row.tools, row.golden_answers) != (clean.tools, clean.golden_answers):
            wrong.append("tools or gold changed")
        return wrong + self.check_text(query_text(clean), text, clean, row)

    def check_text(self, before: str, text: str, clean: Sample, row: Sample) -> list[str]:
        """What is wrong with the rewritten query itself."""
        return _check_text(before, text, clean, "the query", fold_case=False)


QUERY_REWRITE: Facts = {
    **REWRITE,
    "channel": "query",
    "may_change": ("messages",),
    "rows": Rows(paper=199, bundled=73),
}


class RealisticTypos(QueryRewrite, frozen=True):
    """Two to four typing errors; numbers, names and every word that an argument copies stay intact."""

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """As the base, with the words that a text by rule leaves as they are."""
        (request,) = super().requests(sample)
        fixed = {"protected": sorted(protected(request.input, sample))}
        return (msgspec.structs.replace(request, context=fixed),)


class Described(NamedTuple):
    """A description in a registry."""

    path: str
    """JSON pointer in the list of tools."""
    tool: str
    parameter: str | None
    text: str


class Descriptions(Perturbation, frozen=True, kw_only=True):
    """Every description of a tool, or of a parameter (nested ones too), in other words: constraints, types
    and accepted values verbatim, length within about ±20 %."""

    of: Literal["tool", "parameter"]

    def _places(self, tools: Sequence[Tool]) -> Iterator[Described]:
        for index, tool in enumerate(tools):
            if self.of == "parameter":
                for path, name, text in described_parameters(tool.parameters):
                    yield Described(f"/{index}/parameters{path}/description", tool.name, name, text)
            elif tool.description.strip():
                yield Described(f"/{index}/description", tool.name, None, tool.description)

    def _reworded(self, tools: Sequence[Tool], texts: Iterable[str]) -> tuple[Tool, ...]:
        """The tools with other descriptions, as long as there are texts."""
        out = msgspec.json.decode(msgspec.json.encode(tools))
        for place, text in zip(self._places(tools), texts, strict=False):
            holder = out
            *path, last = place.path.split("/")[1:]
            for key in path:
                name = key.replace("~1", "/").replace("~0", "~")
                holder = holder[int(name) if isinstance(holder, list) else name]
            holder[last] = text
        return msgspec.convert(out, tuple[Tool, ...])

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """One text per description."""
        return tuple(
            TextRequest(kind=self.code, tool=tool, parameter=name, input=text, keep=kept_values(sample, text))
            for _, tool, name, text in self._places(sample.tools)
        )

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Replaces every description; all of them have to be accepted, else the row is left out.

        Raises NotApplicable(`no_tool_description`, `no_parameter_description`) where there is none.
        """
        answers = [accepted_text(request, context) for request in self.requests(sample)]
        if not answers:
            raise NotApplicable(f"no_{self.of}_description")
        texts, generators = zip(*answers, strict=True)
        changes = [
            Change(f"/tools{place.path}", place.text, text)
            for place, text in zip(self._places(sample.tools), texts, strict=True)
        ]
        tools, generator = self._reworded(sample.tools, texts), "+".join(sorted(set(generators)))
        return self.row(sample, changes, generator=generator, tools=tools)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """Nothing else changed; every description differs and keeps gold values and digits."""
        if self._reworded(row.tools, repeat("-")) != self._reworded(clean.tools, repeat("-")):
            return [f"more changed in the registry than descriptions of a {self.of}"]
        wrong = self.beyond(clean, row)
        for before, after in zip(self._places(clean.tools), self._places(row.tools), strict=True):
            what = f"the description of {'.'.join(filter(None, (before.tool, before.parameter)))}"
            wrong += _check_text(before.text, after.text, clean, what)
        return wrong


register(
    RealisticTypos(
        **QUERY_REWRITE,
        code="realistic_typos",
        order=1,
        display_name="Typo",
        label="typos in the request",
        what_is_modified=(
            "The user query gains a few keyboard-style spelling slips; tools and ground truth stay as they "
            "were."
        ),
        how_made=(
            "A model writes two to four human typing errors into the user's query (API-Bank: the last "
            "substantive user turn). Numbers, names, quoted text and every word that a golden argument "
            "copies stay intact; a text that loses a golden value or a digit is refused and asked for "
            "again."
        ),
        judged_as="a user's request; the second was typed in a hurry, and slips as such cost nothing",
    ),
    QueryRewrite(
        **QUERY_REWRITE,
        code="query_paraphrase",
        order=2,
        display_name="QueryPara",
        label="request reworded",
        what_is_modified=(
            "The user query is reworded with entities, numbers and dates kept; tools and ground truth stay "
            "as they were."
        ),
        how_made=(
            "A model says the same query in other words, entities, numbers and technical terms "
            "verbatim; a text that loses a golden value or a digit is refused and asked for again."
        ),
        judged_as="a user's request",
    ),
    Descriptions(
        **REWRITE,
        of="tool",
        code="paraphrase_tool_description",
        order=3,
        display_name="ToolPara",
        label="tool descriptions reworded",
        channel="descriptions",
        what_is_modified=(
            "Every tool's natural-language description is reworded with the same meaning and about the same "
            "length."
        ),
        how_made=(
            "A model rewrites the description of every tool in the registry: same meaning, all "
            "constraints kept, about the same length."
        ),
        may_change=("tool descriptions",),
        rows=Rows(paper=197, bundled=73),
        paper_unchanged=2,
        judged_as="the description of a tool",
    ),
    Descriptions(
        **REWRITE,
        of="parameter",
        code="paraphrase_parameter_description",
        order=4,
        display_name="ParamPara",
        label="parameter descriptions reworded",
        channel="descriptions",
        what_is_modified=(
            "Parameter descriptions are reworded with the same meaning; names, types and allowed values stay."
        ),
        how_made=(
            "A model rewrites the description of every parameter in the registry: type constraints and "
            "accepted values verbatim, similar length."
        ),
        may_change=("parameter descriptions",),
        rows=Rows(paper=196, bundled=73),
        paper_unchanged=3,
        judged_as="the description of a tool's parameter",
    ),
)
