"""Observation: the text that the model reads is reworded, its meaning and the gold stay (paper, table 1)."""

import random
from collections.abc import Iterator

import msgspec

from robustbench_tc.schema import Change, Sample

from .base import (
    Context,
    NotApplicable,
    Perturbation,
    TextRequest,
    lost_digits,
    lost_values,
    refuse_text,
    register,
)
from .query import kept_values, query_span, query_text, replace_span
from .registry import described_parameters, rewrite_descriptions


def _accepted(request: TextRequest, context: Context) -> tuple[str, str]:
    """The answer and its generator; NotApplicable if it breaks the acceptance check for this very sample."""
    text = context.text(request)
    if reason := refuse_text(request, text.value):
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


class QueryRewrite(Perturbation):
    """The user's query (in a transcript its last substantive turn) is rewritten, nothing else."""

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        text = query_text(sample)
        return (TextRequest(kind=self.code, input=text, keep=kept_values(sample, text)),)

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        (request,) = self.requests(sample)
        text, generator = _accepted(request, context)
        messages, change = replace_span(sample, query_span(sample), text)
        return self.row(sample, [change], generator=generator, messages=messages)

    def check(self, clean: Sample, row: Sample) -> list[str]:
        span = query_span(clean)
        before = clean.messages[span.message].content
        head, tail = before[: span.start], before[span.end :]
        if len(row.messages) != len(clean.messages):
            return ["messages were added or removed"]
        after = row.messages[span.message].content
        wrong = []
        if not (after.startswith(head) and after.endswith(tail) and len(after) >= len(head) + len(tail)):
            wrong.append("text outside the query changed")
        others = [m for i, m in enumerate(row.messages) if i != span.message]
        if others != [m for i, m in enumerate(clean.messages) if i != span.message]:
            wrong.append("another message changed")
        if (row.tools, row.golden_answers) != (clean.tools, clean.golden_answers):
            wrong.append("tools or gold changed")
        text = after[span.start : len(after) - len(tail)]
        return wrong + _check_text(before[span.start : span.end], text, clean, "the query", fold_case=False)


@register("realistic_typos")
class RealisticTypos(QueryRewrite):
    """Two to four typing errors; numbers, names and every word that an argument copies stay intact."""


@register("query_paraphrase")
class QueryParaphrase(QueryRewrite):
    """The query in other words; entities, numbers, dates and technical terms verbatim."""


@register("paraphrase_tool_description")
class ParaphraseToolDescription(Perturbation):
    """Every tool's description in other words; constraints kept, length within about ±20 %."""

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        return tuple(
            TextRequest(
                kind=self.code,
                tool=tool.name,
                input=tool.description,
                keep=kept_values(sample, tool.description),
            )
            for tool in sample.tools
            if tool.description.strip()
        )

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        requests = iter(self.requests(sample))
        tools, changes, generators = [], [], []
        for index, tool in enumerate(sample.tools):
            if not tool.description.strip():
                tools.append(tool)
                continue
            text, generator = _accepted(next(requests), context)
            generators.append(generator)
            tools.append(msgspec.structs.replace(tool, description=text))
            changes.append(Change(f"/tools/{index}/description", tool.description, text))
        if not changes:
            raise NotApplicable("no_tool_description")
        return self.row(sample, changes, generator=_generators(generators), tools=tuple(tools))

    def check(self, clean: Sample, row: Sample) -> list[str]:
        if [(t.name, t.parameters) for t in row.tools] != [(t.name, t.parameters) for t in clean.tools]:
            return ["a tool's name or schema changed"]
        wrong = []
        if (row.messages, row.golden_answers) != (clean.messages, clean.golden_answers):
            wrong.append("messages or gold changed")
        for before, after in zip(clean.tools, row.tools, strict=True):
            if before.description.strip():
                what = f"the description of {before.name}"
                wrong += _check_text(before.description, after.description, clean, what)
            elif after.description != before.description:
                wrong.append(f"{before.name} had no description to rewrite")
        return wrong


@register("paraphrase_parameter_description")
class ParaphraseParameterDescription(Perturbation):
    """Every parameter's description in other words, nested ones too; types and accepted values verbatim."""

    def _request(self, sample: Sample, tool: str, parameter: str, text: str) -> TextRequest:
        keep = kept_values(sample, text)
        return TextRequest(kind=self.code, tool=tool, parameter=parameter, input=text, keep=keep)

    def requests(self, sample: Sample) -> tuple[TextRequest, ...]:
        return tuple(
            self._request(sample, tool.name, name, text)
            for tool in sample.tools
            for _, name, text in described_parameters(tool.parameters)
        )

    def perturb(self, sample: Sample, rng: random.Random, context: Context) -> Sample:
        generators: list[str] = []
        tools, changes = [], []
        for index, tool in enumerate(sample.tools):

            def rewrite(name: str, text: str, tool_name: str = tool.name) -> str:
                answer, generator = _accepted(self._request(sample, tool_name, name, text), context)
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
        wrong = []
        if (row.messages, row.golden_answers) != (clean.messages, clean.golden_answers):
            wrong.append("messages or gold changed")
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
