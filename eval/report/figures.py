"""The page's figures as inline SVG. Colours are CSS variables, so dark and light need no second set.

Every figure has its numbers in a table beside it; text in a figure is escaped here.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape

from robustbench_tc import taxonomy
from robustbench_tc.eval.stats.intervals import Interval
from robustbench_tc.eval.stats.significance import log_linear

from .content import Model, Rows

ERROR_MODES = ("wrong_name", "wrong_parameters", "name_bias", "omitted", "empty", "other")
OUTCOMES = ("both_right", "gained", "lost", "both_wrong")

ROW = 22
"""Height of a row in pixels."""


def _svg(width: float, height: float, label: str, parts: Iterable[str], kind: str = "") -> str:
    body = "".join(parts)
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(label)}">{body}</svg>'
    )


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def heatmap(models: Sequence[Model]) -> str:
    """Accuracy of models (rows) under clean and every type (columns), grouped by component."""
    types = [t for t in taxonomy.types() if any(t.code in m.summary.types for m in models)]
    label_width, cell, head, group_gap = 190, 40, 118, 8
    columns: list[tuple[str, str, float]] = [(taxonomy.CLEAN, "clean", label_width)]
    x: float = label_width + cell + group_gap
    groups: list[tuple[str, float, float]] = []
    for component in taxonomy.COMPONENTS:
        start = x
        for kind in (t for t in types if t.component == component):
            columns.append((kind.code, kind.display_name, x))
            x += cell
        if x > start:
            groups.append((component, start, x))
            x += group_gap
    parts = [_text((a + b) / 2, 12, name, kind="axis", anchor="middle") for name, a, b in groups]
    for _, name, at in columns:
        middle = at + cell / 2
        parts.append(
            f'<text transform="translate({middle + 4:.1f} {head - 6}) rotate(-55)" class="axis">'
            f"{escape(_shorten(name, 17))}</text>"
        )
    for row, model in enumerate(models):
        y = head + row * ROW
        parts.append(_text(label_width - 8, y + 15, _shorten(model.label, 27), kind="name", anchor="end"))
        for code, name, at in columns:
            found = _cell(model, code)
            if found is None:
                parts.append(f"<g>{_title(f'{model.label}, {name}: no value')}")
                parts.append(
                    f'<rect x="{at}" y="{y}" width="{cell - 2}" height="{ROW - 2}" class="gap"/></g>'
                )
                continue
            # Three classes, because the text's colour has to change at another value in dark than in light.
            side = "high" if found.value >= 0.62 else "mid" if found.value >= 0.53 else "low"
            tip = f"{model.label}, {name}: {found.value:.3f} [{found.low:.3f}, {found.high:.3f}], n {found.n}"
            parts.append(
                f'<g class="{side}">{_title(tip)}<rect x="{at}" y="{y}" width="{cell - 2}" '
                f'height="{ROW - 2}" rx="2" style="--v:{found.value:.3f}"/>'
                f"{_text(at + cell / 2 - 1, y + 14.5, f'{100 * found.value:.0f}', anchor='middle')}</g>"
            )
    height = head + ROW * len(models) + 2
    return _svg(x + 34, height, "accuracy per model and type, in percent", parts, "heatmap")


def _cell(model: Model, code: str) -> Interval | None:
    if code == taxonomy.CLEAN:
        return model.summary.values["clean"]
    row = model.summary.types.get(code)
    return row.accuracy if row else None


def component_bars(models: Sequence[Model]) -> list[tuple[str, str]]:
    """One (title, figure) per component: a bar per model with its interval."""
    panels = []
    for name in ("clean", *taxonomy.COMPONENTS):
        metric = name if name == "clean" else f"accuracy_{name}"
        panels.append((name, _bars(models, metric, f"accuracy, {name}")))
    return panels


def _bars(models: Sequence[Model], metric: str, label: str) -> str:
    left, width, right = 130, 180, 44
    parts = [
        _line(left + width * tick, 0, left + width * tick, ROW * len(models), "grid") for tick in (0.5, 1)
    ]
    for row, model in enumerate(models):
        y = row * ROW
        parts.append(_text(left - 6, y + 15, _shorten(model.label, 18), kind="name", anchor="end"))
        found = model.summary.values[metric]
        if found is None:
            parts.append(_text(left + 4, y + 15, "gap", kind="axis"))
            continue
        tip = f"{model.label}: {found.value:.3f} [{found.low:.3f}, {found.high:.3f}], n {found.n}"
        parts.append(
            f'<g>{_title(tip)}<rect x="{left}" y="{y + 4}" width="{width * found.value:.1f}" '
            f'height="{ROW - 8}" class="bar"/></g>'
        )
        middle = y + ROW / 2
        parts.append(_line(left + width * found.low, middle, left + width * found.high, middle, "whisker"))
        parts.append(_text(left + width + 6, y + 15, f"{found.value:.3f}", kind="number"))
    parts.append(_line(left, 0, left, ROW * len(models), "base"))
    return _svg(left + width + right, ROW * len(models) + 1, label, parts)


def size_panels(models: Sequence[Model], papers: Sequence[Model]) -> list[tuple[str, str]]:
    """Δ per component and retention against model size, ours filled, the paper's hollow, with trends."""
    metrics = [*(f"delta_{name}" for name in taxonomy.COMPONENTS), "retention"]
    panels = []
    for metric in metrics:
        title = "retention" if metric == "retention" else f"Δ {metric.removeprefix('delta_')}"
        panels.append((title, _scatter(models, papers, metric, title)))
    return panels


def _points(models: Sequence[Model], metric: str) -> list[tuple[str, float, float]]:
    found = [(m.label, m.params_b, m.summary.values[metric]) for m in models]
    return [(label, size, value.value) for label, size, value in found if size and value is not None]


def _scatter(models: Sequence[Model], papers: Sequence[Model], metric: str, label: str) -> str:
    ours, theirs = _points(models, metric), _points(papers, metric)
    width, height, left, bottom = 250, 170, 40, 26
    if not ours and not theirs:
        return _svg(left + width, 30, label, [_text(0, 18, "no model of known size", kind="axis")])
    sizes = [size for _, size, _ in ours + theirs]
    values = [value for _, _, value in ours + theirs]
    x0, x1 = math.log10(min(sizes)) - 0.08, math.log10(max(sizes)) + 0.08
    margin = 0.08 * (max(values) - min(values)) + 0.01
    y0, y1 = min(values) - margin, max(values) + margin

    def at(size: float, value: float) -> tuple[float, float]:
        x = left + width * (math.log10(size) - x0) / (x1 - x0)
        return x, 8 + height * (y1 - value) / (y1 - y0)

    parts = []
    for tick in _ticks(y0, y1):
        _, y = at(10**x0, tick)
        parts += [
            _line(left, y, left + width, y, "grid"),
            _text(left - 5, y + 4, f"{tick:g}", kind="axis", anchor="end"),
        ]
    for size in (0.5, 1, 2, 4, 8, 16, 32, 70, 140, 400, 700):
        if x0 <= math.log10(size) <= x1:
            x, _ = at(size, y0)
            parts.append(_text(x, height + bottom, f"{size:g}B", kind="axis", anchor="middle"))
    for points, kind in ((theirs, "paper"), (ours, "ours")):
        trend = log_linear([size for _, size, _ in points], [value for _, _, value in points])
        if trend:
            ends = [min(size for _, size, _ in points), max(size for _, size, _ in points)]
            (xa, ya), (xb, yb) = (at(size, trend[0] + trend[1] * math.log10(size)) for size in ends)
            parts.append(_line(xa, ya, xb, yb, f"trend {kind}"))
        for name, size, value in points:
            x, y = at(size, value)
            tip = f"{name}, {size:g}B: {value:.3f}" + (" (paper's rows)" if kind == "paper" else "")
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="dot {kind}">{_title(tip)}</circle>')
    return _svg(left + width + 8, height + bottom + 8, f"{label} against model size", parts)


def _ticks(low: float, high: float) -> list[float]:
    step = 10 ** math.floor(math.log10((high - low) / 2))
    while (high - low) / step > 5:
        step *= 2
    first = math.ceil(low / step)
    return [
        round((first + i) * step, 6)
        for i in range(int((high - low) / step) + 1)
        if (first + i) * step <= high
    ]


def error_bars(rows: Rows, cells: Rows) -> str:
    """One run's wrong answers by mode: a bar per component, its length the share of wrong answers.

    `rows` are the run's rows of `error_modes`, `cells` those of `by_source` (for the numbers of answers).
    """
    names = ["clean", *taxonomy.COMPONENTS]
    left, width = 90, 300
    parts = [
        _line(left + width * tick, 0, left + width * tick, ROW * len(names), "grid") for tick in (0.5, 1)
    ]
    for at, name in enumerate(names):
        total = sum(row["n"] for row in cells if row["component"] == name)
        y, x = at * ROW, float(left)
        parts.append(_text(left - 6, y + 15, name, kind="name", anchor="end"))
        wrong = 0
        for mode in ERROR_MODES:
            count = sum(
                row["n"]
                for row in rows
                if (row["component"] or "clean") == name and row["error_mode"] == mode
            )
            if not count or not total:
                continue
            wrong += count
            size = width * count / total
            tip = f"{name}, {mode}: {count} of {total} answers"
            parts.append(
                f'<g>{_title(tip)}<rect x="{x:.1f}" y="{y + 4}" width="{size:.1f}" height="{ROW - 8}" '
                f'class="mode {mode}"/></g>'
            )
            x += size
        if total:
            parts.append(_text(x + 6, y + 15, f"{wrong} of {total}", kind="number"))
    parts.append(_line(left, 0, left, ROW * len(names), "base"))
    return _svg(left + width + 90, ROW * len(names) + 1, "wrong answers by error mode", parts)


def flip_bars(rows: Rows) -> str:
    """One run's flip matrix: per type the shares of pairs right on both, gained, lost, wrong on both."""
    left, width = 106, 300
    names = {t.code: t.display_name for t in taxonomy.types("all")}
    parts = []
    for at, row in enumerate(rows):
        y, x = at * ROW, float(left)
        parts.append(
            _text(left - 6, y + 15, _shorten(names[row["type_code"]], 13), kind="name", anchor="end")
        )
        for outcome in OUTCOMES:
            size = width * row[outcome] / row["pairs"]
            tip = f"{row['type_code']}, {outcome.replace('_', ' ')}: {row[outcome]} of {row['pairs']} pairs"
            parts.append(
                f'<g>{_title(tip)}<rect x="{x:.1f}" y="{y + 3}" width="{size:.1f}" height="{ROW - 6}" '
                f'class="flip {outcome}"/></g>'
            )
            x += size
        parts.append(_text(x + 6, y + 15, f"−{row['lost']} +{row['gained']}", kind="number"))
    return _svg(left + width + 70, ROW * len(rows) + 1, "flips between clean and perturbed", parts)


def share_bar(share: float, largest: float) -> str:
    """A small bar for a table cell."""
    size = 0.0 if largest <= 0 else 80 * share / largest
    bar = f'<rect width="{size:.1f}" height="10" class="bar"/>'
    return f'<svg viewBox="0 0 80 10" width="80" height="10" aria-hidden="true">{bar}</svg>'
