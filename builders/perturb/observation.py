"""Observation: the text that the model reads is reworded, its meaning and the gold stay (paper, table 1)."""

import random
from collections.abc import Iterator

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
from .registry import described_parameters, rewrite_descriptions
from .severity_typos import protected


def accepted_text(request: TextRequest, context: Context) -> tuple[str, str]:
    """The answer and its generator; NotApplicable if it breaks the acceptance check for this very sample."""
    text = context.text(request)
    if reason := refuse_answer(request, text.value):
        raise NotApplicable(f"text_refused: {reason}")
    return text.value, text.generator


def _generators(found: list[str]) -> str:
    return "+".join(sorted(set(found)))


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


class ParaphraseToolDescription(Perturbation, frozen=True):
    """Every tool's description in other words; constraints kept, length within about ±20 %."""

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """One text per tool that has a description."""
        return tuple(self._request(sample, tool) for tool in sample.tools if tool.description.strip())

    def _request(self, sample: Sample, tool: Tool) -> TextRequest:
        keep = kept_values(sample, tool.description)
        return TextRequest(kind=self.code, tool=tool.name, input=tool.description, keep=keep)

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Replaces every description; all of them have to be accepted, else the row is left out.

        Raises NotApplicable(`no_tool_description`) where no tool has one.
        """
        tools, changes, generators = [], [], []
        for index, tool in enumerate(sample.tools):
            if not tool.description.strip():
                tools.append(tool)
                continue
            text, generator = accepted_text(self._request(sample, tool), context)
            generators.append(generator)
            tools.append(msgspec.structs.replace(tool, description=text))
            changes.append(Change(f"/tools/{index}/description", tool.description, text))
        if not changes:
            raise NotApplicable("no_tool_description")
        return self.row(sample, changes, generator=_generators(generators), tools=tuple(tools))

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """Names and schemas stay; every description differs and keeps gold values and digits."""
        if [(t.name, t.parameters) for t in row.tools] != [(t.name, t.parameters) for t in clean.tools]:
            return ["a tool's name or schema changed"]
        wrong = self.beyond(clean, row)
        for before, after in zip(clean.tools, row.tools, strict=True):
            if before.description.strip():
                what = f"the description of {before.name}"
                wrong += _check_text(before.description, after.description, clean, what)
            elif after.description != before.description:
                wrong.append(f"{before.name} had no description to rewrite")
        return wrong


class ParaphraseParameterDescription(Perturbation, frozen=True):
    """Every parameter's description in other words, nested ones too; types and accepted values verbatim."""

    def _request(self, sample: Sample, tool: str, parameter: str, text: str) -> TextRequest:
        keep = kept_values(sample, text)
        return TextRequest(kind=self.code, tool=tool, parameter=parameter, input=text, keep=keep)

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        """One text per described parameter, nested ones included."""
        return tuple(
            self._request(sample, tool.name, name, text)
            for tool in sample.tools
            for _, name, text in described_parameters(tool.parameters)
        )

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        """Replaces every parameter's description; all have to be accepted, else the row is left out.

        Raises NotApplicable(`no_parameter_description`) where no parameter has one.
        """
        generators: list[str] = []
        tools, changes = [], []
        for index, tool in enumerate(sample.tools):

            def rewrite(name: str, text: str, tool_name: str = tool.name) -> str:
                answer, generator = accepted_text(self._request(sample, tool_name, name, text), context)
                generators.append(generator)
                return answer

            new = msgspec.structs.replace(tool, parameters=rewrite_descriptions(tool.parameters, rewrite))
            tools.append(new)
            changes += [
                Change(f"/tools/{index}/parameters{path}/description", before, after)
                for (path, _, before), (_, _, after) in _paired(tool.parameters, new.parameters)
            ]
        if not changes:
            raise NotApplicable("no_parameter_description")
        return self.row(sample, changes, generator=_generators(generators), tools=tuple(tools))

    def check(self, clean: Sample, row: Sample) -> list[str]:
        """Schemas are equal apart from descriptions; each differs and keeps gold values and digits."""
        wrong = self.beyond(clean, row)
        if len(row.tools) != len(clean.tools):
            return [*wrong, "tools were added or removed"]
        for before, after in zip(clean.tools, row.tools, strict=True):
            if _blank(before.parameters) != _blank(after.parameters):
                wrong.append(f"the schema of {before.name} changed beyond its descriptions")
                continue
            if (before.name, before.description) != (after.name, after.description):
                wrong.append(f"the name or description of {before.name} changed")
            for (_, name, old), (_, _, new) in _paired(before.parameters, after.parameters):
                wrong += _check_text(old, new, clean, f"the description of {before.name}.{name}")
        return wrong


def _blank(parameters: dict[str, object]) -> object:
    """The schema with its non-blank parameter descriptions masked."""
    return rewrite_descriptions(parameters, lambda name, text: "-")


def _paired(
    before: dict[str, object], after: dict[str, object]
) -> Iterator[tuple[tuple[str, str, str], tuple[str, str, str]]]:
    return zip(described_parameters(before), described_parameters(after), strict=True)


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
    ParaphraseToolDescription(
        **REWRITE,
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
    ParaphraseParameterDescription(
        **REWRITE,
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
