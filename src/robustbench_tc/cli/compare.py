"""`rbtc compare`: two runs, or one beside the paper."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from ..errors import UserError
from ..io.numbers import interval, number, p_value, percent, signed
from . import _console
from ._console import styled
from ._words import LogKeys, Subset

if TYPE_CHECKING:
    from ..eval.stats.compare import Comparison, PaperLine
    from ..eval.stats.paired import Pair


Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="Scored run folder, or log of inspect_ai: the baseline.")
    ],
    b: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="Scored run folder or log to set against it.")
    ] = None,
    vs: Annotated[
        str | None, typer.Option("--vs", help="paper:MODEL: A beside one of the paper's models, unpaired.")
    ] = None,
    subset: Subset = "all",
    log_key: LogKeys = None,
    as_json: Json = False,
) -> None:
    """Compare two runs on the rows that both answered, with paired tests.

    Example: rbtc compare runs/base runs/tuned
    Example: rbtc compare logs/base.eval logs/tuned.eval
    """
    from .. import api
    from ..eval.adapters.logs import opened
    from ..eval.stats.compare import UNPAIRED

    if b is None and vs is None:
        raise UserError("nothing to compare with: name a second run, or --vs paper:MODEL")
    with _console.status("comparing", "compare writes nothing; run the same command again") as progress:
        paired = beside = None
        name = ""
        if b is not None:
            paired = api.compare(a, b, subset=subset, log_keys=log_key or (), progress=progress)
        if vs is not None:
            with opened([str(a)], log_key or ()) as given:
                run = given[0].read()
            name, beside = run.model, api.compare_with_paper(run, _paper_model(vs), subset=subset)
    if as_json:
        found = {"paired": paired, "paper": beside, "paper_note": UNPAIRED if beside else None}
        _console.json(found)
        return
    if paired is not None:
        _print_comparison(paired)
    if beside is not None:
        _print_beside(name, vs or "", beside, UNPAIRED)


def _paper_model(vs: str) -> str:
    head, colon, model = vs.partition(":")
    if head != "paper" or not colon or not model:
        raise UserError(f"--vs {vs!r}: write it as paper:MODEL, for example paper:o4-mini")
    return model


def _print_comparison(found: "Comparison") -> None:
    echo = _console.out.print
    version = f", dataset {found.dataset_version}" if found.dataset_version else ""
    echo(styled(f"A = {found.a}, B = {found.b}{version}", style="bold"))
    echo(styled(found.verdict))
    for name, sentence in zip((found.a, found.b), found.sentences, strict=True):
        echo(styled(f"{name}: {sentence}"))
    for line in found.servers:
        echo(styled(line))
    echo()
    table = _table("accuracy", "A", "B", "B − A", "95 %", "pairs", "only A", "only B", "p", "p (Holm)")
    for name, pair in found.overall.items():
        table.add_row(name, *_pair_cells(pair), p_value(pair.p), p_value(found.overall_holm.get(name)))
    echo(table)
    if found.deltas:
        table = _table("Δ (a loss)", "A", "B", "A − B", "95 %", "p (Holm)", "closed by B", "95 %")
        for name, delta in found.deltas.items():
            closed = delta.closed
            table.add_row(
                name,
                number(delta.a),
                number(delta.b),
                signed(delta.difference.value),
                interval(delta.difference, sign=True),
                p_value(found.deltas_holm.get(name)),
                "not defined" if closed is None else percent(closed.value),
                "" if closed is None else interval(closed, sign=True),
            )
        echo(table)
    table = _table("type", "A", "B", "B − A", "95 %", "pairs", "only A", "only B", "p", "p (Holm)")
    for one in sorted(found.types, key=lambda one: (one.p_holm, one.pair.p)):
        table.add_row(one.type_code, *_pair_cells(one.pair), p_value(one.pair.p), p_value(one.p_holm))
    echo(table)
    echo(
        styled(
            "Intervals take whole clean_ids as units, both runs together. p is exact and paired; p (Holm) is "
            "corrected for all lines of its table. The verdict is one test, that of the perturbed rows.",
            style="dim",
        )
    )
    if found.power is not None:
        echo(styled(found.power.line))
    for note in found.notes:
        echo(styled(f"gap: {note}", style="yellow"))
    for line in found.unreviewed or ():
        echo(styled(f"not reviewed: {line}", style="yellow"))


def _table(*names: str) -> Table:
    table = Table()
    table.add_column(names[0], no_wrap=True)
    for name in names[1:]:
        table.add_column(name, justify="right")
    return table


def _pair_cells(pair: "Pair") -> Iterable[str]:
    found = pair.difference
    return (
        number(pair.a),
        number(pair.b),
        signed(found.value),
        interval(found, sign=True),
        str(pair.n),
        str(pair.only_a),
        str(pair.only_b),
    )


def _print_beside(model: str, vs: str, lines: "Iterable[PaperLine]", note: str) -> None:
    echo = _console.out.print
    echo(styled(f"{model} beside {vs}", style="bold"))
    echo(styled(note, style="yellow"))
    table = _table("", "ours", "n", "paper", "n", "difference", "95 %", "p (Fisher)")
    for line in lines:
        table.add_row(
            line.name,
            number(line.accuracy),
            str(line.n),
            number(line.paper_accuracy),
            str(line.paper_n),
            signed(line.ours.value),
            interval(line.ours, sign=True),
            p_value(line.p),
        )
    echo(table)
