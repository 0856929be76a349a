"""Accepted answers into verdicts and an entry of the board, with the scorers of `rbtc score` and the marts.

The values come from the marts, the intervals and tests from `eval.stats`. The marts live in another room and
are handed in.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from robustbench_tc import taxonomy
from robustbench_tc.eval import predictions, summary, verdicts
from robustbench_tc.eval.record import RunFolder
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.runs import Outcomes, align, read
from robustbench_tc.eval.stats.summary import METRICS, Summary, from_counts, summarise
from robustbench_tc.schema import Json, Verdict

from .checks import Accepted, Asked
from .records import Claims, Entry, Gain, Metric, Rows, TypeLine

Marts = Callable[[Sequence[str], str | None], dict[str, Rows]]
"""(names of marts, a scored run folder or None for the paper's counts) → rows of each."""

TABLES = ("accuracy", "table2", "deltas")
SAMPLES = ("error_modes", "what_to_gain")
"""Marts that look at single predictions."""


def score(accepted: Accepted, asked: Asked, folder: Path, marts: Marts) -> tuple[Entry, list[Verdict]]:
    """Scores the answers in the run folder `folder`, which is made, and computes their entry."""
    run = RunFolder(folder, accepted.record)
    folder.mkdir(parents=True)
    predictions.write(run.predictions_path, accepted.predictions)
    found = verdicts.score_run(run, asked, accepted.predictions)
    judged = [one for one in found if one is not None]
    if len(judged) != len(accepted.predictions):
        raise ValueError("an accepted answer was not judged")
    return entry_of_run(folder, marts), judged


def entry_of_run(folder: Path, marts: Marts) -> Entry:
    """The entry of a scored run folder."""
    [outcomes] = align([read(folder)])
    tables = marts((*TABLES, *SAMPLES), str(folder))
    modes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in tables["error_modes"]:
        modes[row["component"] or taxonomy.CLEAN][row["error_mode"]] += row["n"]
    # Without one right clean answer there is no retention to resample: the cluster convention has no answer.
    right = int(outcomes.column(taxonomy.CLEAN)[0].sum())
    return _entry(
        tables,
        summarise(outcomes, "cluster" if right else "paper"),
        error_modes={
            name: {mode: modes[name][mode] for mode in summary.ERROR_MODES if modes[name][mode]}
            for name in (taxonomy.CLEAN, *taxonomy.COMPONENTS)
            if name in modes
        },
        gains=tuple(
            Gain(
                row["type_code"],
                row["lost"],
                row["gained"],
                row["perturbed_accuracy_gain"],
                row["most_frequent_error"],
            )
            for row in tables["what_to_gain"]
        ),
        repeats=outcomes.repeats,
        verdicts=_digits(outcomes),
    )


def entries_of_paper(marts: Marts) -> dict[str, Entry]:
    """The entries of the paper's models, by name: counts only, so nothing of theirs can be paired."""
    tables = marts(TABLES, None)
    by_model: defaultdict[str, dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for name, rows in tables.items():
        for row in rows:
            by_model[row["model"]][name].append(row)
    return {model: _entry(found, from_counts(_counts(found))) for model, found in by_model.items()}


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


def _counts(tables: dict[str, Rows]) -> dict[str, tuple[int, int]]:
    return {row["type_code"]: (row["correct"], row["n"]) for row in tables["accuracy"]}


def _entry(tables: dict[str, Rows], found: Summary, **rest: Json) -> Entry:
    counts = _counts(tables)
    [table2] = tables["table2"]
    values: dict[str, float | None] = {
        name: table2[name] for name in ("clean", "perturbed", "retention") if name in table2
    }
    by_type: dict[str, dict[str, Json]] = {}
    for row in tables["deltas"]:
        if row["type_code"] is not None:
            by_type[row["type_code"]] = row
        elif row["component"] in taxonomy.COMPONENTS:
            name = row["component"]
            values[f"accuracy_{name}"] = row["accuracy"]
            values[f"delta_{name}"] = row["delta"]
            values[f"delta_matched_{name}"] = row["delta_matched"]
    core = [code for code in taxonomy.codes() if code in counts]
    pooled = {"perturbed": core} | {
        name: [code for code in core if taxonomy.component_of(code) == name] for name in taxonomy.COMPONENTS
    }
    sums = {
        name: (sum(counts[code][0] for code in codes), sum(counts[code][1] for code in codes))
        for name, codes in pooled.items()
    }
    return Entry(
        counts={taxonomy.CLEAN: counts[taxonomy.CLEAN], **sums, **{code: counts[code] for code in core}},
        metrics={name: _metric(values.get(name), found.values[name]) for name in METRICS},
        types={code: _type_line(by_type[code], found, code) for code in core},
        **rest,
    )


def _metric(value: float | None, interval: Interval | None) -> Metric:
    if interval is None:
        return Metric(value)
    return Metric(value, interval.low, interval.high, interval.n)


def _type_line(row: dict[str, Json], found: Summary, code: str) -> TypeLine:
    line = found.types[code]
    flips = line.flips
    return TypeLine(
        accuracy=_metric(row["accuracy"], line.accuracy),
        delta=_metric(row["delta"], line.delta),
        delta_matched=row["delta_matched"],
        lost=None if flips is None else flips.lost,
        gained=None if flips is None else flips.gained,
        p_holm=None if flips is None else flips.p_holm,
    )


def _digits(outcomes: Outcomes) -> dict[str, str]:
    """Per type the right answers of every clean_id, a digit each; `-` where the type has no such row."""
    digits = {}
    for code in outcomes.types:
        correct, n = outcomes.column(code)
        pairs = zip(correct.tolist(), n.tolist(), strict=True)
        digits[code] = "".join(str(right) if rows else "-" for right, rows in pairs)
    return digits
