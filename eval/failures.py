"""Single predictions: which failed, and one of them whole, with what was asked and why it is wrong."""

from pathlib import Path

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.io import parquet
from robustbench_tc.io.not_live import refuse_no_run, refuse_run
from robustbench_tc.schema import ERROR_MODES, Prediction, Sample, Verdict, record

from .stats.breakdown import READ_WITH_CARE
from .wanted import unmet

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


def said(verdict: Verdict, row: Sample | None = None) -> str:
    """Why it is wrong. `row`: what was asked, of which own tools' arguments say what they wanted."""
    reason = REASONS.get(verdict.reason or "", verdict.reason or "")
    lacks = None if row is None else unmet(verdict, row)
    return reason if lacks is None else f"{reason}: {lacks}"


class Judged(msgspec.Struct, frozen=True):
    """One prediction and, if an answer was had, its verdict."""

    prediction: Prediction
    verdict: Verdict | None

    @property
    def why(self) -> str:
        """One sentence."""
        if self.verdict is None:
            return f"no verdict: no answer was had ({self.prediction.error or 'unknown error'})"
        if self.verdict.correct:
            return "correct"
        return f"{said(self.verdict) or 'wrong'} ({self.verdict.error_mode})"


def read(run: Path) -> list[Judged]:
    """Every prediction of a scored run. Raises UserError."""
    refuse_run(run)
    path = run / "scores.parquet"
    if not path.is_file():
        refuse_no_run(run)
        raise UserError(f"{run} has no scores.parquet: run `rbtc score {run}` first")
    out = []
    for row in parquet.read_rows([path]):
        verdict = None
        if row["status"] != "request_error" and row["correct"] is not None:
            verdict = record(row | {"calls": row["calls"] or "[]", "flags": row["flags"] or []}, Verdict)
        out.append(Judged(record(row, Prediction), verdict))
    return out


def failures(
    run: Path,
    *,
    type_code: str | None = None,
    mode: str | None = None,
    source: str | None = None,
    flag: str | None = None,
) -> list[Judged]:
    """The wrong answers of a run, filtered; with `flag`, right ones that carry it too.

    Raises UserError with near misses for names that do not occur.
    """
    rows = read(run)
    if flag is not None:
        known = {*READ_WITH_CARE, *(f for row in rows if row.verdict for f in row.verdict.flags)}
        if flag not in known:
            raise unknown("flag", flag, known)
    found_types = {row.prediction.type_code for row in rows}
    if type_code is not None:
        type_code = taxonomy.find_in(found_types, type_code, "type of this run")
    if mode is not None and mode not in ERROR_MODES:
        raise unknown("error mode", mode, ERROR_MODES)
    found_sources = {row.prediction.source for row in rows}
    if source is not None and source not in found_sources:
        raise unknown("source of this run", source, found_sources)
    return [
        row
        for row in rows
        if row.verdict is not None
        and (not row.verdict.correct if flag is None else flag in row.verdict.flags)
        and (type_code is None or row.prediction.type_code == type_code)
        and (mode is None or row.verdict.error_mode == mode)
        and (source is None or row.prediction.source == source)
    ]


def find(run: Path, wanted: str, type_code: str | None = None) -> list[Judged]:
    """The predictions that `wanted` means: an id, a clean_id, or a unique prefix of one, all repeats.

    Raises UserError where nothing or several samples fit.
    """
    rows = read(run)
    clean_id, _, code = wanted.rpartition("::")
    if not clean_id:
        clean_id, code = wanted, type_code or ""
    ids = list(dict.fromkeys(row.prediction.clean_id for row in rows))
    fitting = [i for i in ids if i == clean_id] or [i for i in ids if i.startswith(clean_id)]
    if not fitting:
        raise unknown(f"sample in {run}", clean_id, ids)
    if len(fitting) > 1:
        raise UserError(
            f"{clean_id!r} fits {len(fitting)} samples, first {fitting[0]!r} and {fitting[1]!r}: say more"
        )
    of_sample = [row for row in rows if row.prediction.clean_id == fitting[0]]
    if not code:
        return of_sample
    there = {row.prediction.type_code for row in of_sample}
    code = taxonomy.find_in(there, code, f"type of {fitting[0]} in {run}")
    found = [row for row in of_sample if row.prediction.type_code == code]
    return sorted(found, key=lambda row: row.prediction.repeat)
