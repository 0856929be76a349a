"""A line figure with logarithmic axes as SVG, so that growth by a constant factor is a straight line."""

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 64, 96, 16, 56
LINE = 15
"""Least distance of two names beside the ends of their lines."""
COLOURS = ("#1f6feb", "#c2410c", "#15803d", "#7e22ce")


def log_log(lines: Mapping[str, Mapping[int, float]], across: str, up: str) -> str:
    """Each line is a name and its values by x; a dashed one is proportional to x and meets it at its end."""
    xs = sorted({x for line in lines.values() for x in line})
    ys = [y for line in lines.values() for y in line.values()]
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    first, last = math.log10(xs[0]), math.log10(xs[-1])

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (math.log10(x) - first) / (last - first) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (math.log10(y) - low) / (high - low) * (HEIGHT - TOP - BOTTOM),
        )

    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}" '
        'fill="none" stroke="#888"/>'
    ]
    parts += [_text(at(x, 10.0**low)[0], HEIGHT - BOTTOM + 18, f"{x}×", "middle") for x in xs]
    powers = range(low, high + 1)
    parts += [_text(LEFT - 8, at(xs[0], 10.0**p)[1] + 4, f"{10.0**p:g}", "end") for p in powers]
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, across, "middle"))
    parts.append(f'<g transform="translate(14 {HEIGHT / 2}) rotate(-90)">{_text(0, 0, up, "middle")}</g>')
    ends = []
    for (name, line), colour in zip(lines.items(), COLOURS, strict=False):
        points = [at(x, y) for x, y in sorted(line.items())]
        proportional = {x: line[xs[-1]] * x / xs[-1] for x in xs}
        parts.append(_path([at(x, y) for x, y in proportional.items() if y >= 10**low], "#999", dashed=True))
        parts.append(_path(points, colour))
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
        ends.append((points[-1][1], name, colour))
    below = 0.0
    for y, name, colour in sorted(ends):
        below = max(y + 4, below + LINE)
        parts.append(_text(WIDTH - RIGHT + 8, below, name, "start", colour))
    parts.append(_text(LEFT + 12, TOP + 20, "dashed: proportional", "start", "#666"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="13">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def _path(points: Sequence[tuple[float, float]], colour: str, *, dashed: bool = False) -> str:
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="4 4"' if dashed else ""
    return f'<polyline points="{steps}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
