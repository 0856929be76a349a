"""A run's answers to one sample: what was asked, what came back, the verdict and why."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Call, Prediction, Sample, dumps
from robustbench_tc.shown import Line, Part, Table

from . import defend, failures, prompts, record, verdicts, wire
from .defend.base import Defence
from .defend.chain import shown
from .failures import Judged
from .row_view import one_of, split
from .wanted import unmet

LONGEST = 20_000
"""Characters of a text that are shown."""


class Answers(NamedTuple):
    """The answers to a sample, of one type or of several: all repeats."""

    rows: list[Judged]
    asked: dict[str, Sample]
    """The rows of the run's dataset, where it is at hand."""
    problem: str = ""
    """Why it is not."""
    other_words: str = ""
    """The version of the prompts, where they are not this package's."""
    chain: Sequence[Defence] = ()
    """What stood between the rows and the model."""

    def json(self) -> list[Judged]:
        """The predictions with their verdicts."""
        return self.rows

    def shown(self) -> Iterator[Part]:
        codes = {row.prediction.type_code for row in self.rows}
        if len(codes) == 1:
            for row in self.rows:
                yield from self._whole(row)
            return
        first = self.rows[0].prediction
        order = [taxonomy.CLEAN, *(kind.code for kind in taxonomy.among(codes)), *sorted(codes)]
        yield Line(f"{first.clean_id}, {first.model}", "bold")
        ordered = sorted(self.rows, key=lambda one: (order.index(one.prediction.type_code), one.prediction.repeat))
        yield Table(
            ("type", "repeat", "verdict", "why", "reply"),
            [
                (taxonomy.named(one.type_code), str(one.repeat), _word(row), row.why, beginning(reply_of(one)))
                for row in ordered
                for one in (row.prediction,)
            ],
            folded=("verdict", "why", "reply"),
        )
        yield "add ::TYPE to the id to see one in full"

    def _whole(self, row: Judged) -> Iterator[Part]:
        one, verdict, sample = row.prediction, row.verdict, self.asked.get(row.prediction.id)
        yield Line(f"{one.id}, repeat {one.repeat}, {one.model}, {one.mode}", "bold")
        if sample is None:
            yield _field("prompt", f"not shown: {self.problem or 'the dataset has no such row'}")
        else:
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
        score, style = ("", "yellow") if verdict is None else (
            f", score {verdict.score:g}", "green" if verdict.correct else "red"
        )
        yield Line(f"verdict: {_word(row)}{score}: {row.why}", style)
        if verdict is not None and sample is not None and (lacks := unmet(verdict, sample)) is not None:
            yield _field("argument", lacks)
        if verdict is not None and verdict.flags:
            yield _field("flags", ", ".join(verdict.flags))

    def _prompt(self, one: Prediction, sample: Sample) -> Iterator[Line]:
        if self.other_words and one.mode == "prompt":
            yield _field(
                "prompt", f"not shown: asked in other words than this package's ({self.other_words})"
            )
            for said in sample.messages:
                yield _field(f"the row's own ({said.role})", said.content)
            return
        asked = wire.first(shown(self.chain, sample), one.mode)
        for message in asked.messages:
            yield _field(f"asked ({message['role']})", str(message["content"]))
        for tool in asked.tools or ():
            yield _field("tool", dumps(tool))


def find(run: Path, wanted: str, dataset: str | None = None) -> Answers:
    """The answers that `wanted` means: an id, a clean_id, or a unique prefix of one, possibly with ::TYPE.

    `dataset`: where the run's dataset lies now. Raises UserError where nothing or several samples fit.
    """
    rows = failures.read(run)
    clean_id, code = split(wanted)
    clean_id = one_of(clean_id, (row.prediction.clean_id for row in rows), run)
    rows = [row for row in rows if row.prediction.clean_id == clean_id]
    if code:
        there = {row.prediction.type_code for row in rows}
        code = taxonomy.find_in(there, code, f"type of {clean_id} in {run}")
        rows = [row for row in rows if row.prediction.type_code == code]
    rows.sort(key=lambda row: row.prediction.repeat)
    try:
        folder = record.open_run(run)
        settings = folder.record.settings
        version = "" if settings.prompt_version == prompts.prompt_version() else settings.prompt_version
        chain = defend.parse(settings.defend)
    except UserError as error:  # the answers alone are enough
        return Answers(rows, {}, str(error))
    try:
        return Answers(rows, verdicts.dataset_of(folder, dataset).by_id, "", version, chain)
    except UserError as error:
        return Answers(rows, {}, str(error), version, chain)


def _word(row: Judged) -> str:
    return "none" if row.verdict is None else "right" if row.verdict.correct else "wrong"


def _reply(name: str, text: str | None, calls: object) -> Iterator[Line]:
    yield _field(name, text or "(no text)")
    if calls:
        yield _field(f"{name}, native calls", dumps(calls))


def _field(name: str, text: str) -> Line:
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text)} characters)"
    return Line(f"{name}: {text}")


def beginning(text: str, length: int = 90) -> str:
    """The first characters of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def reply_of(one: Prediction) -> str:
    """What the model said: its text, else its native calls; of an agent that failed the error."""
    return one.raw_output or (dumps(one.tool_calls) if one.tool_calls else one.error or "")


def calls_of(answer: Sequence[Call]) -> str:
    """Calls as people read them."""
    return "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer) or "no call"
