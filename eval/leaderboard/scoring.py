"""Accepted answers into figures: the scorers of `rbtc score`, the values of `rbtc summary`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median

import numpy as np

from robustbench_tc import schema, taxonomy
from robustbench_tc.eval import paper, predictions, verdicts
from robustbench_tc.eval.record import RunFolder, RunRecord
from robustbench_tc.eval.stats import caveats, evidence, packs, runs, summary, values
from robustbench_tc.io import parquet
from robustbench_tc.schema import Json, Prediction, Verdict

from . import flags
from .datasets import Rows
from .entry import Figures, Usage, Verdicts

CONDITIONS = (taxonomy.CLEAN, *taxonomy.codes())
"""The first axis of `Verdicts`."""


def score(
    record: RunRecord, answers: Sequence[Prediction], data: Rows, folder: Path
) -> tuple[Figures, list[Verdict]]:
    """Scores answers in the folder `folder`; their figures and verdicts."""
    run = RunFolder(folder, record)
    predictions.write(run.answers_path, answers)
    verdicts.score_file(run, data)
    columns = parquet.read_rows([run.scores_path], list(Verdict.__struct_fields__))
    judged = [schema.record(row, Verdict) for row in columns]
    of_scored = runs.read(folder)
    [outcomes] = runs.align([of_scored])
    # No row is missing; own tools have not every type, and then those that are there count.
    found = summary.summarise(outcomes, allow_missing=True)
    perturbed = [
        (one.source, verdict.correct)
        for one, verdict in zip(answers, judged, strict=True)
        if one.type_code in CONDITIONS[1:]
    ]
    asked, right = Counter(of for of, _ in perturbed), Counter(of for of, correct in perturbed if correct)
    unstated = runs.unstated(of_scored)
    says = evidence.answer(of_scored, outcomes)
    answered = [one for one in answers if one.status == "ok"]
    stated = {name: [getattr(one, name) for one in answered] for name in Usage.__struct_fields__}
    usage = {
        name: (median if name == "latency_s" else fmean)(each)
        for name, each in stated.items()
        if any(each) and None not in each
    }
    made = _figures(
        found,
        sources={source: (right[source], n) for source, n in sorted(asked.items())},
        verified=caveats.beside(outcomes, unstated, found.lines) if data.kind == "core" else {},
        usage=Usage(**usage),
        packs=Counter(taxonomy.get(one.type_code).pack for one in answers if one.type_code not in CONDITIONS),
        tables=packs.tables(packs.Given(of_scored, outcomes, found, True)),
        sentence=says.sentence,
        words={name: one.word for name, one in says.lines.items()},
        delivery=says.delivery,
        verdicts=verdicts_of(answers, judged),
        replies=flags.sketch(answers),
    )
    return made, judged


def of_paper() -> dict[str, Figures]:
    """The figures of the paper's models, by name: counts only, so nothing of theirs can be paired."""
    return {model: _figures(summary.from_counts(paper.counts(model))) for model in paper.models()}


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


def _figures(found: summary.Summary, **rest: Json) -> Figures:
    core = [code for code in taxonomy.codes() if code in found.lines]
    return Figures(
        counts={name: found.lines[name].of for name in (*values.HEADS, *core)},
        metrics=found.values,
        types={code: found.types[code] for code in core},
        **rest,
    )
