"""Accepted answers into figures: the scorers of `rbtc score`, the values of `rbtc summary`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, median

import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.eval import paper, predictions, verdicts
from robustbench_tc.eval.record import RunFolder, RunRecord
from robustbench_tc.eval.stats import blind, defences, levels, stages
from robustbench_tc.eval.stats.breakdown import breakdown
from robustbench_tc.eval.stats.packs import Given
from robustbench_tc.eval.stats.packs import tables as pack_tables
from robustbench_tc.eval.stats.runs import align, read, unstated
from robustbench_tc.eval.stats.summary import Summary, from_counts, summarise
from robustbench_tc.eval.stats.values import HEADS
from robustbench_tc.eval.stats.verified import beside
from robustbench_tc.schema import Json, Prediction, Verdict

from . import copies
from .datasets import Rows
from .entry import Figures, TypeLine, Usage, Verdicts

CONDITIONS = (taxonomy.CLEAN, *taxonomy.codes())
"""The first axis of `Verdicts`."""


def score(
    record: RunRecord, answers: Sequence[Prediction], data: Rows, folder: Path
) -> tuple[Figures, list[Verdict]]:
    """Scores answers in the folder `folder`; their figures and verdicts."""
    run = RunFolder(folder, record)
    predictions.write(run.predictions_path, answers)
    judged = [one for one in verdicts.score_run(run, data, answers) if one is not None]
    of_scored = read(folder)
    [outcomes] = align([of_scored])
    # No row is missing; own tools have not every type, and then those that are there count.
    summary, rest = summarise(outcomes, allow_missing=True), breakdown(of_scored, allow_missing=True)
    of_stages = stages.stages(of_scored, outcomes, allow_missing=True)
    packs = Counter(taxonomy.get(one.type_code).pack for one in answers if one.type_code != taxonomy.CLEAN)
    perturbed = [pair for pair in zip(answers, judged, strict=True) if pair[0].type_code in CONDITIONS[1:]]
    sources = {
        source: tuple(verdict.correct for one, verdict in perturbed if one.source == source)
        for source in sorted({one.source for one, _ in perturbed})
    }
    made = _figures(
        summary,
        sources={source: (sum(right), len(right)) for source, right in sources.items()},
        verified=beside(outcomes, unstated(of_scored), summary.lines) if data.kind == "core" else {},
        error_modes={
            name: rest.error_modes[name]
            for name in (taxonomy.CLEAN, *taxonomy.COMPONENTS)
            if name in rest.error_modes
        },
        usage=usage_of(answers),
        cost=defences.cost(of_scored),
        packs={name: n for name, n in packs.items() if name != "core"},
        tables=(
            levels.table(levels.levels(outcomes, allow_missing=True)),
            *([] if of_stages is None else [stages.table(of_stages)]),
            *pack_tables(Given(of_scored, outcomes, summary, True)),
        ),
        needs_no_reading=blind.read(of_scored.record.get("needs_no_reading", ())),
        verdicts=verdicts_of(answers, judged),
        replies=copies.sketch(answers),
    )
    return made, judged


def of_paper() -> dict[str, Figures]:
    """The figures of the paper's models, by name: counts only, so nothing of theirs can be paired."""
    return {
        model: _figures(from_counts(counts), tables=(levels.table(levels.from_counts(counts)),))
        for model in paper.models()
        for counts in (paper.counts(model),)
    }


def usage_of(answers: Iterable[Prediction]) -> Usage:
    """Tokens and time of the rows that were answered."""
    answered = [one for one in answers if one.status == "ok"]

    def stated(name: str) -> list[float] | None:
        known = [float(value) for one in answered if (value := getattr(one, name)) is not None]
        return known if known and len(known) == len(answered) and any(known) else None

    prompt, completion, seconds = map(stated, ("prompt_tokens", "completion_tokens", "latency_s"))
    return Usage(
        None if prompt is None else fmean(prompt),
        None if completion is None else fmean(completion),
        None if seconds is None else median(seconds),
    )


def verdicts_of(answers: Sequence[Prediction], judged: Sequence[Verdict]) -> Verdicts:
    """A bit for each row and repeat."""
    samples = {name: at for at, name in enumerate(sorted({one.clean_id for one in answers}))}
    conditions = {code: at for at, code in enumerate(CONDITIONS)}
    repeats = 1 + max(one.repeat for one in answers)
    there, right = (np.zeros((repeats, len(conditions), len(samples)), dtype=bool) for _ in range(2))
    for one, verdict in zip(answers, judged, strict=True):
        if one.type_code in conditions:
            place = one.repeat, conditions[one.type_code], samples[one.clean_id]
            there[place], right[place] = True, verdict.correct
    return Verdicts(
        len(samples),
        np.packbits(there[0]).tobytes(),
        tuple(np.packbits(of_repeat).tobytes() for of_repeat in right),
    )


def _figures(found: Summary, **rest: Json) -> Figures:
    lines = found.lines
    core = [code for code in taxonomy.codes() if code in lines]
    return Figures(
        counts={name: lines[name].of for name in (*HEADS, *core)},
        metrics=found.values,
        types={code: _type_line(found, code) for code in core},
        **rest,
    )


def _type_line(found: Summary, code: str) -> TypeLine:
    row = found.types[code]
    flips = row.flips
    return TypeLine(
        accuracy=row.accuracy,
        delta=row.delta,
        delta_matched=found.lines[code].delta_matched,
        lost=None if flips is None else flips.lost,
        gained=None if flips is None else flips.gained,
        p_holm=None if flips is None else flips.p_holm,
    )
