"""The figures of the page: what of a report goes into which drawing."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from robustbench_tc import taxonomy
from robustbench_tc.eval.report.figures import Axis, Dot, Shift
from robustbench_tc.eval.stats.evidence import Evidence
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.packs.severity import DOSES
from robustbench_tc.eval.stats.significance import LEVEL, Loss, rank_correlation
from robustbench_tc.eval.stats.values import Line, leading
from robustbench_tc.io import numbers
from robustbench_tc.safe_text import shortened
from robustbench_tc.schema import STAGES

from . import figures
from .content import Model

GROUPS = (taxonomy.CLEAN, *taxonomy.COMPONENTS)

WHOLE = {"components": {str(name): str(name) for name in taxonomy.COMPONENTS}}
"""The first columns of a grid of losses."""

LEAST_REACH = 0.1
"""The strongest colour of a loss stands for this loss at least: noise is not painted as if it were much."""

SIZES = (0.5, 1, 2, 4, 8, 16, 32, 70, 140, 400, 700)
"""Billions of parameters that a scale names."""


def readable(metric: str) -> str:
    if metric.startswith("type:"):
        return "Δ of single types"
    return metric.replace("delta_matched_", "Δ matched ").replace("delta_", "Δ ").replace("accuracy_", "")


def heatmap(models: tuple[Model, ...]) -> Markup:
    """Accuracy of models under clean and every type, grouped by component."""
    core = [kind.code for kind in taxonomy.types() if any(kind.code in m.summary.types for m in models)]
    groups = {"": {taxonomy.CLEAN: "clean"}, **columns(core)}
    rows = [
        (
            model.label,
            {
                taxonomy.CLEAN: model.summary.values["clean"],
                **{code: row.accuracy for code, row in model.summary.types.items()},
            },
        )
        for model in models
    ]
    return figures.heatmap(rows, groups, "accuracy per model and type, in percent")


def sized(models: tuple[Model, ...], metric: str) -> list[tuple[str, float, float]]:
    """(label, billions of parameters, value) of the models whose size is known."""
    return [
        (m.label, m.params_b, value.value)
        for m in models
        if m.params_b and (value := m.summary.values[metric]) is not None
    ]


def scatter(models: tuple[Model, ...], papers: tuple[Model, ...], metric: str) -> Markup:
    """A value against model size, ours filled, the paper's hollow; lines join the models of a family."""
    sets = {"paper": sized(papers, metric), "ours": sized(models, metric)}
    sizes = [size for points in sets.values() for _, size, _ in points]
    values = [value for points in sets.values() for _, _, value in points]
    margin = 0.08 * (max(values) - min(values)) + 0.01
    low, high = min(values) - margin, max(values) + margin
    x = Axis(min(sizes) / 1.2, max(sizes) * 1.2, {}, log=True)
    x = x._replace(ticks={size: numbers.size(size) for size in SIZES if x.low <= size <= x.high})
    dots, paths = [], []
    for kind, points in sets.items():
        families: dict[str, list[tuple[str, float, float]]] = {}
        for point in sorted(points, key=lambda point: point[1]):
            families.setdefault(family(point[0]), []).append(point)
        lines = {name: members for name, members in families.items() if len(members) > 1}
        paths += [figures.Path([(size, value) for _, size, value in of], kind) for of in lines.values()]
        ends = {members[-1][0]: name for name, members in lines.items()}
        note = " (paper's rows)" if kind == "paper" else ""
        dots += [
            Dot(size, value, kind, f"{name}, {numbers.size(size)}: {numbers.number(value)}{note}",
                name=ends.get(name, ""))
            for name, size, value in points
        ]  # fmt: skip
    return figures.chart(
        x, Axis(low, high, figures.ticks(low, high)), dots, paths,
        f"{readable(metric)} against model size", size=(380, 250),
    )  # fmt: skip


def family(name: str) -> str:
    """What stands before a model's size in its name: `Qwen3` of `Qwen3-8B`."""
    return re.split(r"-?\d+(?:\.\d+)?[bB](?![A-Za-z0-9])", name)[0]


# --- beside the paper's models ------------------------------------------------------------------------


def paper_drops(papers: tuple[Model, ...]) -> Markup:
    """Δ of the paper's models under the components and every type; of counts alone nothing is tested."""
    found = {
        model.label: {
            **{code: row.delta for code, row in model.summary.types.items()},
            **{str(name): model.summary.values[f"delta_{name}"] for name in taxonomy.COMPONENTS},
        }
        for model in papers
    }
    rows = [
        (label, {name: Shift(one.value, None, _around(one)) for name, one in cells.items() if one})
        for label, cells in found.items()
    ]
    most = max(abs(one.value) for _, cells in rows for one in cells.values())
    return figures.shifts(rows, WHOLE | columns(valued(papers)), "Δ of the paper's models, in points", most)


def clean_against_perturbed(models: tuple[Model, ...], papers: tuple[Model, ...]) -> Markup:
    """Perturbed accuracy by clean accuracy, ours filled and named, the paper's hollow; on the diagonal
    nothing is lost."""
    dots = []
    for kind, of in (("ours", models), ("paper", papers)):
        for label, clean, perturbed in accuracies(of):
            tip = f"{label}: {numbers.percent(clean)} clean, {numbers.percent(perturbed)} perturbed"
            dots.append(Dot(clean, perturbed, kind, tip, name=label))
    every = [at for dot in dots for at in (dot.x, dot.y)]
    low, high = math.floor(10 * min(every)) / 10, math.ceil(10 * max(every)) / 10
    ticks = {at / 10: f"{10 * at} %" for at in range(round(10 * low), round(10 * high) + 1)}
    x = Axis(low, high, ticks, name="clean accuracy")
    diagonal = figures.Path([(low, low), (high, high)], "proportional")
    return figures.chart(
        x, x._replace(name="perturbed accuracy"), dots, [diagonal],
        "perturbed accuracy against clean accuracy of models", size=(640, 520),
    )  # fmt: skip


def accuracies(models: Sequence[Model]) -> list[tuple[str, float, float]]:
    """(label, clean, perturbed) of the models that have both."""
    found = [(m.label, m.summary.values["clean"], m.summary.values["perturbed"]) for m in models]
    return [(label, clean.value, after.value) for label, clean, after in found if clean and after]


def rank_agreement(models: Sequence[Model]) -> float | None:
    """Spearman's ρ of clean and perturbed accuracy."""
    pairs = np.array([both for _, *both in accuracies(models)], np.float64).reshape(-1, 2)
    return rank_correlation(pairs[:, 0], pairs[:, 1])


# --- the first screen ---------------------------------------------------------------------------------


def axis_of(drops: Iterable[Interval | None]) -> Axis:
    """One axis for the drops of every model."""
    ends = [0.0, LEAST_REACH, *(end for drop in drops if drop for end in (drop.low, drop.high))]
    return Axis(min(ends), max(ends), {})


def answered(models: Sequence[Model]) -> list[Interval]:
    """The drops of the first screen."""
    return [one.drop for model in models if model.answer for one in model.answer.lines.values()]


def of_types(models: Sequence[Model]) -> list[Interval | None]:
    """Δ matched of every type that figures speak of."""
    return [m.summary.types[code].delta_matched for m in models for code in leading(m.summary.types)]


def flips(model: Model) -> dict[str, Line]:
    """The types whose pairs are all there."""
    return {code: model.summary.lines[code] for code, row in model.summary.types.items() if row.flips}


# --- doses --------------------------------------------------------------------------------------------

CURVES = ("first", "second", "third")
"""Kinds of lines; a fourth model's line looks as the first's, its name stands at its end."""

NAME = 20
"""Letters of a model's name that have room beside its curve."""


def doses(models: Sequence[Model]) -> dict[str, Markup]:
    """Series → a curve for each model: accuracy by dose over the samples that have every dose."""
    found: defaultdict[str, defaultdict[str, list[tuple[str, Interval]]]]
    found = defaultdict(lambda: defaultdict(list))
    tables = [(model.label, table) for model in models for table in model.packs if table.name == DOSES]
    for label, table in tables:
        for row in table.rows:
            if isinstance(row[-1], Interval):
                found[str(row[0])][label].append((str(row[1]), row[-1]))
    return {name: _curves(name, of_models) for name, of_models in found.items()}


def _curves(name: str, of_models: Mapping[str, Sequence[tuple[str, Interval]]]) -> Markup:
    steps = list(dict.fromkeys(dose for points in of_models.values() for dose, _ in points))
    paths, dots = [], []
    for at, (label, points) in enumerate(of_models.items()):
        kind = CURVES[at % len(CURVES)]
        line = [(steps.index(d), one.value) for d, one in points]
        paths.append(figures.Path(line, kind, shortened(label, NAME)))
        dots += [
            Dot(
                steps.index(dose), one.value, kind, f"{label}, {dose}: {numbers.number(one.value)} "
                f"{numbers.interval(one)}, {one.n} samples",
            )
            for dose, one in points
        ]  # fmt: skip
    x = Axis(-0.2, len(steps) - 0.8, dict(enumerate(steps)), name=name)
    y = Axis(0, 1, {0: "0", 0.5: "0.5", 1: "1"}, name="accuracy")
    return figures.chart(x, y, dots, paths, f"accuracy by dose of {name}", size=(450, 220), right=160)


# --- losses -------------------------------------------------------------------------------------------


def columns(codes: Iterable[str]) -> dict[str, dict[str, str]]:
    """Component → type code → name, of the types of the core; of all types where none is of the core."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for one in taxonomy.among(leading(set(codes))):
        component = (one.code in taxonomy.codes() and one.component) or "beyond the core"
        found[component][one.code] = taxonomy.named(one.code)
    return found


def valued(models: Iterable[Model]) -> list[str]:
    """The types that some model has a value of."""
    return [code for model in models for code in model.summary.types]


def reach(models: Sequence[Model]) -> float:
    """The shift of the strongest colour: the largest of these figures."""
    return max([LEAST_REACH, *(abs(one.value) for one in of_types(models) if one)])


def losses(models: Sequence[Model]) -> Markup:
    """Δ matched of models under the components and every type."""
    rows = []
    for model in models:
        found = {name: (one.drop, one.p_holm < LEVEL) for name, one in components(model).items()} | {
            code: (row.delta_matched, bool(row.flips and row.flips.significant))
            for code, row in model.summary.types.items()
            if row.delta_matched
        }
        cells = {
            name: Shift(drop.value, sure, f"{_around(drop)}, {drop.n} pairs")
            for name, (drop, sure) in found.items()
        }
        rows.append((model.label, cells))
    label = "Δ matched per model and type, in points: positive is a loss"
    return figures.shifts(rows, WHOLE | columns(valued(models)), label, reach(models))


def components(model: Model) -> dict[str, Evidence]:
    """What the run says of each component; nothing of the paper's models."""
    lines = model.answer.lines if model.answer else {}
    return {name: lines[name] for name in lines if name in taxonomy.COMPONENTS}


def stage_shifts(model: Model) -> Markup:
    """The shift of every stage under each component: which stage a perturbation breaks."""
    found = model.stages.shifts if model.stages else {}
    rows = [
        (
            component,
            {
                stage: _shift(
                    one, f"{one.lost} fail there only when perturbed and {one.gained} only when clean,"
                )
                for stage, one in found[component].items()
            },
        )
        for component in taxonomy.COMPONENTS
        if component in found
    ]
    every = [abs(one.delta_matched) for of in found.values() for one in of.values()]
    return figures.shifts(
        rows,
        {"stage": {str(stage): str(stage) for stage in STAGES}},
        f"stages of {model.label}: share of samples that fail there when perturbed, minus the share when "
        "clean, in points",
        max([LEAST_REACH, *every]),
    )


def source_losses(model: Model) -> Markup:
    """Δ matched of one model by source and type."""
    rows = [
        (
            source,
            {code: _shift(one, f"{one.lost} lost and {one.gained} gained") for code, one in cells.items()},
        )
        for source, cells in model.source_losses.items()
    ]
    label = f"Δ matched of {model.label} per source and type, in points: positive is a loss"
    return figures.shifts(rows, columns(model.summary.types), label, reach([model]))


def _shift(found: Loss, counts: str) -> Shift:
    tip = f"{numbers.signed(found.delta_matched)}, {counts} of {found.pairs}"
    return Shift(found.delta_matched, found.significant, tip)


def _around(found: Interval) -> str:
    return f"{numbers.signed(found.value)} {numbers.interval(found, sign=True)}"
