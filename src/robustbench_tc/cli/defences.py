"""`rbtc list defences` and `rbtc defences`: what may stand between a model and its rows, and its worth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..io.numbers import interval, number, percent, signed
from . import _console

if TYPE_CHECKING:
    from ..eval.stats.defences import DefenceLine


def defences(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="Scored run without defences.")],
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN…", help="Scored runs of the same with --defend.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Which defence pays: the share of each component's Δ that it recovers, its harm on clean, its price.

    Example: rbtc defences runs/qwen3-8b-prompt runs/dedupe runs/retry
    """
    from .. import api
    from ..eval.live.record import RECORD

    if (base / RECORD).is_file():
        _live(base, runs, as_json)
        return
    with _console.working("comparing"):
        found = api.defences(base, runs)
    if as_json:
        import msgspec

        _console.json(msgspec.to_builtins(found))
        return
    names = list(dict.fromkeys(name for line in found.lines for name in line.recovered))
    columns = ("defences", *(f"{name} Δ" for name in names), "clean", "perturbed", "requests", "tokens")
    _console.out.print(_console.table(columns, (_cells(line, names) for line in found.lines), folded=columns))
    base_tokens = found.base_cost.tokens_per_right
    _console.out.print(
        "Δ: without → with, and the share recovered [95 %]. clean, perturbed: the change of accuracy. "
        "requests: an answer. tokens: a right answer"
        + ("" if base_tokens is None else f", {number(base_tokens)} without")
        + ". *: none of the others is as accurate for fewer tokens.",
        markup=False,
    )


def _live(base: Path, runs: list[Path], as_json: bool) -> None:
    """The same of live runs."""
    import msgspec

    from .. import api

    with _console.working("comparing"):
        found = api.live_defences(base, runs)
    if as_json:
        _console.json(msgspec.to_builtins(found))
        return
    for line in found.lines:
        rows = []
        for one in (*([line.harm] if line.harm else []), *line.kinds):
            change = f"{signed(one.change.value)} {interval(one.change, sign=True)}"
            rows.append((one.name, str(one.plain), str(one.defended), str(one.n), change))
        columns = ("", "without", "with", "n", "change")
        _console.out.print(_console.table(columns, rows, ", ".join(line.defences)))
        said = [f"effects repeated: {line.repeated[0]} without, {line.repeated[1]} with"]
        said += _each("requests an episode", found.base_requests_per_episode, line.requests_per_episode)
        said += _each("tokens a right episode", found.base_tokens_per_right, line.tokens_per_right)
        _console.out.print("; ".join(said), markup=False)
    _console.out.print(
        "without, with: episodes that ended as they should, of n that both runs have; change: of the share "
        "[95 %, tasks as units]. clean: below 0 is harm.",
        markup=False,
    )


def _each(name: str, without: float | None, with_: float | None) -> list[str]:
    if without is None or with_ is None:
        return []
    return [f"{name}: {without:,.1f} without, {with_:,.1f} with"]


def _cells(line: "DefenceLine", names: list[str]) -> list[str]:
    cells = [", ".join(line.defences) + (" *" if line.on_frontier else "")]
    for name in names:
        pair = line.recovered.get(name)
        if pair is None:
            cells.append("–")
            continue
        closed = pair.closed
        said = (
            ""
            if closed is None
            else f", {percent(closed.value)} [{percent(closed.low)}, {percent(closed.high)}]"
        )
        cells.append(f"{pair.a:.3f} → {pair.b:.3f}{said}")
    cells += [
        "–" if change is None else f"{signed(change.value)} [{signed(change.low)}, {signed(change.high)}]"
        for change in (line.harm, line.perturbed)
    ]
    cost = line.cost
    cells.append("–" if cost.requests_per_row is None else f"{cost.requests_per_row:.2f}")
    cells.append("–" if cost.tokens_per_right is None else number(cost.tokens_per_right))
    return cells
