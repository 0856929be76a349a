"""What a run made of one sample, as `rbtc show RUN ID` prints it: prompt, replies, parsed call, gold,
verdict."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from robustbench_tc import taxonomy
from robustbench_tc.eval import wire
from robustbench_tc.eval.defend.chain import shown
from robustbench_tc.eval.wanted import unmet
from robustbench_tc.schema import Prediction, Sample, dumps
from robustbench_tc.shown import Line, Part, Table

from .failures import Asked, Judged, asked, beginning, calls_of, find, reply_of

SHOWN = 20_000
"""Characters of a text."""

STYLES = {"none": "yellow", "right": "green", "wrong": "red"}


@dataclass(frozen=True)
class Replies:
    """The answers of a run to one sample: to all of its rows, or to the repeats of one of them."""

    found: Sequence[Judged]
    asked: Asked

    def json(self) -> Sequence[Judged]:
        """Predictions and verdicts."""
        return self.found

    def shown(self) -> Iterator[Part]:
        """A line for each row of a whole sample; the answers to one row as they are."""
        if len({row.prediction.type_code for row in self.found}) > 1:
            yield from self._verdicts()
        else:
            for row in self.found:
                yield from self._whole(row)

    def _verdicts(self) -> Iterator[Part]:
        first = self.found[0].prediction
        kinds = taxonomy.among(row.prediction.type_code for row in self.found)
        order = {code: i for i, code in enumerate((taxonomy.CLEAN, *(kind.code for kind in kinds)))}
        rows = sorted(
            self.found,
            key=lambda row: (order.get(row.prediction.type_code, len(order)), row.prediction.repeat),
        )
        yield Line(f"{first.clean_id}, {first.model}", "bold")
        columns = ("type", "repeat", "verdict", "why", "reply")
        yield Table(
            columns,
            [
                (
                    taxonomy.named(row.prediction.type_code),
                    str(row.prediction.repeat),
                    row.word,
                    row.why,
                    beginning(reply_of(row.prediction)),
                )
                for row in rows
            ],
            folded=columns,
        )
        yield "add ::TYPE to the id to see one in full"

    def _whole(self, row: Judged) -> Iterator[Part]:
        one, verdict = row.prediction, row.verdict
        sample = self.asked.rows.get(one.id)
        yield Line(f"{one.id}, repeat {one.repeat}, {one.model}, {one.mode}", "bold")
        yield from self._prompt(one, sample)
        if one.injected:
            yield from _reply("first reply", one.first_output, one.first_tool_calls)
            if sample is not None:
                yield _field("answered with", sample.injected_error or "")
        last = "second reply" if (one.attempts or 1) == 1 else f"reply after {one.attempts} such answers"
        yield from _reply(last if one.injected else "reply", one.raw_output, one.tool_calls)
        if one.finish_reason == "length":
            yield _field("note", "the reply was cut at the token limit")
        if verdict is not None:
            yield _field(f"parsed ({verdict.variant or 'no variant fired'})", calls_of(verdict.calls))
        for answer in () if sample is None else sample.golden_answers:
            yield _field("gold", calls_of(answer))
        score = "" if verdict is None else f", score {verdict.score:g}"
        yield Line(f"verdict: {row.word}{score}: {row.why}", STYLES[row.word])
        if verdict is not None and sample is not None and (lacks := unmet(verdict, sample)) is not None:
            yield _field("argument", lacks)
        if verdict is not None and verdict.flags:
            yield _field("flags", ", ".join(verdict.flags))

    def _prompt(self, one: Prediction, sample: Sample | None) -> Iterator[Part]:
        words = self.asked.other_words
        if sample is None:
            yield _field("prompt", f"not shown: {self.asked.problem or 'the dataset has no such row'}")
        elif words is not None:
            yield _field("prompt", f"not shown: asked in other words than this package's ({words})")
            for said in sample.messages:
                yield _field(f"the row's own ({said.role})", said.content)
        else:
            request = wire.first(shown(self.asked.chain, sample), one.mode)
            for message in request.messages:
                yield _field(f"asked ({message['role']})", str(message["content"]))
            for tool in request.tools or ():
                yield _field("tool", dumps(tool))


def replies(run: Path, wanted: str, *, dataset: str | None = None) -> Replies:
    """The answers of a run to the sample or row that `wanted` means (`failures.find`).

    `dataset`: where the dataset lies now, if it was moved. Raises UserError.
    """
    return Replies(find(run, wanted), asked(run, dataset))


def _reply(name: str, text: str | None, calls: object) -> Iterator[Part]:
    yield _field(name, text or "(no text)")
    if calls:
        yield _field(f"{name}, native calls", dumps(calls))


def _field(name: str, text: str) -> Part:
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]}… ({len(text)} characters)"
    return Line(f"{name}: {text}")
