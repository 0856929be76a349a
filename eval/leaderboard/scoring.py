"""Accepted answers into verdicts and an entry of the board: the scorers of `rbtc score`, the values of
`eval.stats`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.eval import paper, predictions, verdicts
from robustbench_tc.eval.record import RunFolder
from robustbench_tc.eval.stats import blind, defences, levels, stages
from robustbench_tc.eval.stats.breakdown import breakdown, gains
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs import Given
from robustbench_tc.eval.stats.packs import tables as pack_tables
from robustbench_tc.eval.stats.runs import Outcomes, align, read, unstated
from robustbench_tc.eval.stats.summary import Summary, from_counts, summarise
from robustbench_tc.eval.stats.values import HEADS
from robustbench_tc.eval.stats.verified import beside
from robustbench_tc.schema import Json, Prediction, Verdict

from . import copies, flags
from .checks import Accepted, Asked
from .records import Claims, Entry, Gain, Metric, TypeLine, Usage


def score(accepted: Accepted, asked: Asked, folder: Path) -> tuple[Entry, list[Verdict]]:
    """Scores the answers in the run folder `folder`, which is made, and computes their entry."""
    run = RunFolder(folder, accepted.record)
    folder.mkdir(parents=True)
    predictions.write(run.predictions_path, accepted.predictions)
    found = verdicts.score_run(run, asked, accepted.predictions)
    judged = [one for one in found if one is not None]
    if len(judged) != len(accepted.predictions):
        raise ValueError("an accepted answer was not judged")
    entry = entry_of_run(folder)
    more = {
        "usage": usage_of(accepted.predictions),
        "flags": flags.of_run(accepted.predictions, judged, asked, asked.known),
        "replies": copies.sketch(accepted.predictions),
    }
    return msgspec.structs.replace(entry, **more), judged


def entry_of_run(folder: Path) -> Entry:
    """The entry of a scored run folder."""
    run = read(folder)
    [outcomes] = align([run])
    summary, rest = summarise(outcomes), breakdown(run)
    of_stages = stages.stages(run, outcomes)
    packs: Counter[str] = Counter()
    for code, line in summary.lines.items():
        if code not in HEADS and line.n:
            packs[taxonomy.get(code).pack] += line.n
    return _entry(
        summary,
        verified=beside(outcomes, unstated(run), summary.lines),
        error_modes={
            name: rest.error_modes[name]
            for name in (taxonomy.CLEAN, *taxonomy.COMPONENTS)
            if name in rest.error_modes
        },
        gains=tuple(
            Gain(one.type_code, one.lost, one.gained, one.gain, one.error) for one in gains(summary, rest)
        ),
        repeats=outcomes.repeats,
        cost=defences.cost(run),
        packs={name: n for name, n in packs.items() if name != "core"},
        tables=(
            levels.table(levels.levels(outcomes)),
            *([] if of_stages is None else [stages.table(of_stages)]),
            *pack_tables(Given(run, outcomes, summary)),
        ),
        needs_no_reading=blind.read(run.record.get("needs_no_reading", ())),
        verdicts=_digits(outcomes),
    )


def usage_of(answers: Iterable[Prediction]) -> Usage:
    """Tokens and time of the rows that were answered."""
    answered = [one for one in answers if one.status == "ok"]

    def stated(name: str) -> list[float] | None:
        found = [getattr(one, name) for one in answered]
        known = [float(one) for one in found if one is not None and 0 <= one < 1e9]  # no NaN either
        return known if known and len(known) == len(found) and any(known) else None

    prompt, completion, seconds = map(stated, ("prompt_tokens", "completion_tokens", "latency_s"))
    return Usage(
        None if prompt is None else fmean(prompt),
        None if completion is None else fmean(completion),
        None if seconds is None else median(seconds),
    )


def entries_of_paper() -> dict[str, Entry]:
    """The entries of the paper's models, by name: counts only, so nothing of theirs can be paired."""
    return {
        model: _entry(from_counts(counts), tables=(levels.table(levels.from_counts(counts)),))
        for model in paper.models()
        for counts in (paper.counts(model),)
    }


def claims_of(accepted: Accepted, judged: Sequence[Verdict]) -> Claims | None:
    """What the file said of its own rows beside our verdicts; None if it said nothing."""
    claimed = [
        (one, said, verdict.correct)
        for one, said, verdict in zip(accepted.predictions, accepted.claims, judged, strict=True)
        if said is not None
    ]
    if not claimed:
        return None
    core = set(taxonomy.codes())
    perturbed = [said for one, said, _ in claimed if one.type_code in core]
    return Claims(
        rows=len(claimed),
        agree=sum(said == right for _, said, right in claimed),
        too_good=sum(said and not right for _, said, right in claimed),
        too_bad=sum(right and not said for _, said, right in claimed),
        claimed_perturbed=sum(perturbed) / len(perturbed) if perturbed else None,
        examples=tuple(one.id for one, said, right in claimed if said != right)[:20],
    )


def _entry(found: Summary, **rest: Json) -> Entry:
    lines = found.lines
    core = [code for code in taxonomy.codes() if code in lines]
    return Entry(
        counts={name: lines[name].of for name in (*HEADS, *core)},
        metrics={name: _metric(interval) for name, interval in found.values.items()},
        types={code: _type_line(found, code) for code in core},
        **rest,
    )


def _metric(found: Interval | None) -> Metric:
    return Metric() if found is None else Metric(found.value, found.low, found.high, found.n)


def _type_line(found: Summary, code: str) -> TypeLine:
    row = found.types[code]
    flips = row.flips
    return TypeLine(
        accuracy=_metric(row.accuracy),
        delta=_metric(row.delta),
        delta_matched=found.lines[code].delta_matched,
        lost=None if flips is None else flips.lost,
        gained=None if flips is None else flips.gained,
        p_holm=None if flips is None else flips.p_holm,
    )


def _digits(outcomes: Outcomes) -> dict[str, str]:
    """Per type the right answers of every clean_id, a digit each; `-` where the type has no such row."""
    digits = {}
    for code in outcomes.types:
        correct, n = outcomes.columns([code])
        pairs = zip(correct.tolist(), n.tolist(), strict=True)
        digits[code] = "".join(str(right) if rows else "-" for right, rows in pairs)
    return digits
