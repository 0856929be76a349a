"""Single predictions of a run: which are wrong, why, and what was asked."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval import defend, prompts, reasons, verdicts, wire
from robustbench_tc.eval.defend.chain import shown
from robustbench_tc.eval.record import RunRecord, open_run
from robustbench_tc.eval.row_view import one_of, split
from robustbench_tc.eval.wanted import unmet
from robustbench_tc.io import parquet
from robustbench_tc.safe_text import shortened
from robustbench_tc.schema import ERROR_MODES, Call, Prediction, Sample, Verdict, dumps, record
from robustbench_tc.shown import Line, Part, Table

from ..live.score import LiveScore, read_scores
from ..live.show import outcome
from ..parse import READER_VERSION
from ..score import parse_prediction
from .breakdown import READ_WITH_CARE
from .runs import is_live, scores_of

REASONS = {
    "no_call": "there is no call to judge",
    "call_count": "the number of calls is not the golden one",
    "wrong_name": "another tool is called than the golden one",
    "missing_parameter": "a golden parameter is missing",
    "unexpected_parameter": "a parameter is there that the golden call has not",
    "wrong_type": "a value has the wrong type",
    "wrong_value": "a value is not an accepted one",
    "no_match": "one of several golden calls has no partner",
    "unexpected_call": "called a tool where no call is right",
    "unparsable": "broke off, said nothing or began a call that cannot be read, where no call is right",
    "no_question": "neither called a tool nor asked, where asking is right",
    "unknown_tool": "the golden tool is not in the registry",
    "rejected": "the server refused the tool list",
    "agent_error": "the agent raised, hung or returned no reply",
    "too_long": "the server refused the length",
}
"""Reason codes of the scorers as sentences."""


def reason_text(verdict: Verdict, row: Sample | None = None) -> str:
    """Why it is wrong. `row`: what was asked, of which own tools' arguments say what they wanted."""
    reason = REASONS.get(verdict.reason or "", verdict.reason or "")
    lacks = row and unmet(verdict, row)
    return f"{reason}: {lacks}" if lacks else reason


class Judged(msgspec.Struct, frozen=True):
    """One prediction and, if an answer was had, its verdict."""

    prediction: Prediction
    verdict: Verdict | None

    @property
    def word(self) -> str:
        """`right`, `wrong` or `none`."""
        return "none" if self.verdict is None else "right" if self.verdict.correct else "wrong"

    @property
    def why(self) -> str:
        """One sentence."""
        if self.verdict is None:
            return f"no verdict: no answer was had ({self.prediction.error or 'unknown error'})"
        if self.verdict.correct:
            return "correct"
        return f"{reason_text(self.verdict) or 'wrong'} ({self.verdict.error_mode})"


def read_judged(run: Path) -> list[Judged]:
    """Every prediction of a scored run. Raises UserError."""
    out = []
    for row in parquet.read_rows([scores_of(run)]):
        # a baseline has no texts and reasons
        found = {"reason": None, **row, "calls": row["calls"] or "[]", "flags": row["flags"] or []}
        judged = row["status"] != "request_error" and row["correct"] is not None
        out.append(Judged(record(row, Prediction), record(found, Verdict) if judged else None))
    return out


@dataclass(frozen=True)
class Asked:
    """What a run was asked, as far as its folder and its dataset are there."""

    rows: Mapping[str, Sample]
    """By id; empty where there is no dataset."""
    problem: str = ""
    """Why there is none."""
    record: RunRecord | None = None


def asked(run: Path, dataset: str | None = None) -> Asked:
    """From the run's record and its dataset, which lies where it lay then, or at `dataset`."""
    record = None
    try:
        folder = open_run(run)
        record = folder.record
        return Asked(verdicts.dataset_of(folder, dataset).by_id, record=record)
    except UserError as error:  # the verdicts alone are enough
        return Asked({}, str(error), record)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The wrong answers of a run, its replies with a flag, or its wrong episodes."""

    run: str
    kind: str
    """What is listed."""
    found: Sequence[Judged] | Sequence[LiveScore]
    limit: int
    """So many are shown."""
    columns: tuple[str, ...]
    cells: Callable[[Any], tuple[str, ...]]
    """Of one that was found: its row in the table."""
    problem: str = ""
    """Why there are no gold calls beside the answers."""
    reasons: Sequence[str] = ()
    """Why requests failed, over the whole run: failed requests have no verdict and are not listed."""

    def json(self) -> Sequence[Judged] | Sequence[LiveScore]:
        """Predictions with their verdicts; scores of episodes."""
        return self.found[: self.limit]

    def shown(self) -> Iterator[Part]:
        """A line for each, how many there are, and how one is seen whole."""
        yield Table(self.columns, [self.cells(row) for row in self.json()], folded=self.columns)
        if self.problem:
            yield f"no gold calls: {self.problem}"
        first = f", the first {self.limit} shown (--limit)" if len(self.found) > self.limit else ""
        yield f"{len(self.found)} {self.kind}{first}; rbtc show {self.run} ID shows one whole"
        yield from self.reasons


def _beside_gold(of_run: Asked, row: Judged) -> tuple[str, ...]:
    """Gold and answer side by side."""
    one, verdict, sample = row.prediction, row.verdict, of_run.rows.get(row.prediction.id)
    assert verdict is not None  # `failures` lists no other
    gold = "" if sample is None else " or ".join(map(calls_of, sample.golden_answers))
    answer = calls_of(verdict.calls) if verdict.calls else reply_of(one)
    mode = verdict.error_mode or "right"
    return one.id, mode, beginning(gold, 160), beginning(answer, 160), reason_text(verdict, sample)


def wrong_episodes(run: Path, type_code: str | None, worlds: Sequence[str], limit: int) -> Listing:
    """Those of one kind of fault, and of some worlds: what became of the world, and what the user was told.
    Raises UserError for names that do not occur."""
    scores = read_scores(run)
    if type_code is not None:
        type_code = taxonomy.find_in({one.type_code for one in scores}, type_code, "type of this run")
    _known("world of this run", worlds, {one.world for one in scores})
    found = [
        one
        for one in scores
        if one.success is False and type_code in (None, one.type_code) and (not worlds or one.world in worlds)
    ]
    return Listing(
        run=str(run),
        kind="wrong episodes",
        found=found,
        limit=limit,
        columns=("id", "repeat", "ended", "why"),
        cells=lambda one: (one.id, str(one.repeat), one.ended, "; ".join(outcome(one))),
    )


def _known(what: str, names: Iterable[str], there: Collection[str]) -> None:
    """Raises UserError with near misses for a name that does not occur."""
    for name in names:
        if name not in there:
            raise unknown(what, name, there)


def failures(
    run: Path,
    *,
    type_code: str | None = None,
    error_mode: str | None = None,
    sources: Sequence[str] = (),
    flag: str | None = None,
    limit: int = 50,
) -> Listing:
    """The wrong answers of a run, filtered; with `flag`, right ones that carry it too. Of a live run the
    wrong episodes; their sources are worlds.

    Raises UserError with near misses for names that do not occur.
    """
    if is_live(run):
        if error_mode or flag:
            raise UserError(f"{run} is a live run: its episodes have no error modes and no flags")
        return wrong_episodes(run, type_code, sources, limit)
    rows = read_judged(run)
    flags = {*READ_WITH_CARE, *(f for row in rows if row.verdict for f in row.verdict.flags)}
    _known("flag", filter(None, [flag]), flags)
    if type_code is not None:
        type_code = taxonomy.find_in(
            {row.prediction.type_code for row in rows}, type_code, "type of this run"
        )
    _known("error mode", filter(None, [error_mode]), ERROR_MODES)
    _known("source of this run", sources, {row.prediction.source for row in rows})
    found = [
        row
        for row in rows
        if row.verdict is not None
        and (not row.verdict.correct if flag is None else flag in row.verdict.flags)
        and type_code in (None, row.prediction.type_code)
        and error_mode in (None, row.verdict.error_mode)
        and (not sources or row.prediction.source in sources)
    ]
    of_run = asked(run)
    sessions = of_run.record.sessions if of_run.record else ()
    why = reasons.lines(reasons.of_predictions(run / "scores.parquet"), sessions[-1] if sessions else None)
    return Listing(
        run=str(run),
        kind="wrong answers" if flag is None else "replies",
        found=found,
        limit=limit,
        columns=("id", "error mode", "gold", "answer", "why"),
        cells=partial(_beside_gold, of_run),
        problem=of_run.problem,
        reasons=[*why],
    )


def find(run: Path, wanted: str) -> list[Judged]:
    """The predictions that `wanted` means: an id, a clean_id, or a unique prefix of one, all repeats.

    Raises UserError where nothing or several samples fit.
    """
    rows = read_judged(run)
    clean_id, code = split(wanted)
    clean_id = one_of(clean_id, (row.prediction.clean_id for row in rows), run)
    rows = [row for row in rows if row.prediction.clean_id == clean_id]
    if code:
        there = {row.prediction.type_code for row in rows}
        code = taxonomy.find_in(there, code, f"type of {clean_id} in {run}")
        rows = [row for row in rows if row.prediction.type_code == code]
    return sorted(rows, key=lambda row: row.prediction.repeat)


def beginning(text: str, length: int = 90) -> str:
    """The first characters of a text, on one line."""
    return shortened(" ".join(text.split()), length)


def reply_of(one: Prediction) -> str:
    """What the model said: its text, else its native calls; of an agent that failed the error."""
    return one.raw_output or (dumps(one.tool_calls) if one.tool_calls else one.error or "")


def calls_of(answer: Sequence[Call]) -> str:
    """Calls as people read them."""
    return "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer) or "no call"


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
        order = [taxonomy.CLEAN, *(kind.code for kind in kinds)]
        yield Line(f"{first.clean_id}, {first.model}", "bold")
        rows = [
            (
                taxonomy.named(row.prediction.type_code),
                str(row.prediction.repeat),
                row.word,
                row.why,
                beginning(reply_of(row.prediction)),
            )
            for row in sorted(
                self.found, key=lambda row: (order.index(row.prediction.type_code), row.prediction.repeat)
            )
        ]
        columns = ("type", "repeat", "verdict", "why", "reply")
        yield Table(columns, rows, folded=columns)
        yield "add ::TYPE to the id to see one in full"

    def _whole(self, row: Judged) -> Iterator[Part]:
        one = row.prediction
        yield Line(f"{one.id}, repeat {one.repeat}, {one.model}, {one.mode}", "bold")
        sample = self.asked.rows.get(one.id)
        for name, text in (*self._prompt(one, sample), *fields(row, sample)):
            if len(text) > SHOWN:
                text = f"{text[:SHOWN]}… ({len(text)} characters)"
            yield Line(f"{name}: {text}", STYLES[row.word] if name == "verdict" else "")

    def _prompt(self, one: Prediction, sample: Sample | None) -> Iterator[tuple[str, str]]:
        settings = self.asked.record.settings if self.asked.record else None
        if sample is None or settings is None:
            yield "prompt", f"not shown: {self.asked.problem or 'the dataset has no such row'}"
        elif one.mode == "prompt" and settings.prompt_version != prompts.prompt_version():
            words = settings.prompt_version
            yield "prompt", f"not shown: asked in other words than this package's ({words})"
            yield from ((f"the row's own ({said.role})", said.content) for said in sample.messages)
        else:
            request = wire.first(shown(defend.parse(settings.defend), sample), one.mode)
            yield from ((f"asked ({said['role']})", str(said["content"])) for said in request.messages)
            yield from (("tool", dumps(tool)) for tool in request.tools or ())


def fields(row: Judged, sample: Sample | None) -> Iterator[tuple[str, str]]:
    """What was replied, what was read from it, gold and verdict, by name."""
    one, verdict = row.prediction, row.verdict
    if one.injected:
        yield from _reply("first reply", one.first_output, one.first_tool_calls)
        if sample is not None:
            yield "answered with", sample.injected_error or ""
    last = "second reply" if (one.attempts or 1) == 1 else f"reply after {one.attempts} such answers"
    yield from _reply(last if one.injected else "reply", one.raw_output, one.tool_calls)
    if one.finish_reason == "length":
        yield "note", "the reply was cut at the token limit"
    if sample is not None and one.status == "ok":
        parsed = parse_prediction(one, sample)
        parts = ", ".join(f"{part.kind} [{part.start}:{part.end}]" for part in parsed.segments)
        yield f"read by reader {READER_VERSION}", f"{parts}; tried: {', '.join(parsed.tried) or 'nothing'}"
    if verdict is not None:
        yield f"parsed ({verdict.variant or 'no variant fired'})", calls_of(verdict.calls)
    yield from (("gold", calls_of(answer)) for answer in (sample.golden_answers if sample else ()))
    yield "verdict", f"{row.word}{f', score {verdict.score:g}' if verdict else ''}: {row.why}"
    if verdict is not None and sample is not None and (lacks := unmet(verdict, sample)) is not None:
        yield "argument", lacks
    if verdict is not None and verdict.stage:
        yield "stage", f"{verdict.stage}: {(verdict.stage_detail or '').replace('_', ' ')}"
    if verdict is not None and verdict.flags:
        yield "flags", ", ".join(verdict.flags)


def _reply(name: str, text: str | None, calls: object) -> Iterator[tuple[str, str]]:
    yield name, text or "(no text)"
    if calls:
        yield f"{name}, native calls", dumps(calls)


def replies(run: Path, wanted: str, *, dataset: str | None = None) -> Replies:
    """The answers of a run to the sample or row that `wanted` means (`failures.find`).

    `dataset`: where the dataset lies now, if it was moved. Raises UserError.
    """
    return Replies(find(run, wanted), asked(run, dataset))
