"""`rbtc audit golds`: from where a reader could take the golden values of a build, and a sample to read."""

import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError, unknown
from ..schema import Sample, dumps
from ..sources import in_tables
from ..taxonomy import CLEAN
from . import _console

if TYPE_CHECKING:
    from rich.table import Table

    from ..builders.answerable import Gold


def golds(
    folder: Annotated[Path, typer.Argument(metavar="BUILD", help="A build or release of the benchmark.")],
    sample: Annotated[int, typer.Option(min=0, help="Values to print; 0 prints the counts alone.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    kind: Annotated[
        str | None, typer.Option(help="Draw from this class only: nowhere, schema, convention, …")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every value as JSON.")] = False,
) -> None:
    """Print a seeded sample of the golden values with their class and the place in the dialogue.

    Golden values are shown as they are, credentials too.

    Example: rbtc audit golds robustbench-tc --kind nowhere
    """
    from ..builders import answerable
    from ..builders.rebuild import own_pool

    if kind is not None and kind not in answerable.KINDS:
        raise unknown("class of golden values", kind, answerable.KINDS)
    if not (folder / CLEAN).is_dir():
        raise UserError(f"{folder} is no build of the benchmark: name the folder that `rbtc build` wrote")
    found = [(row, gold) for row in own_pool(folder).samples for gold in answerable.golds(row)]
    wanted = [(row, gold) for row, gold in found if kind in (None, gold.finding.kind)]
    if as_json:
        _console.json([{"clean_id": row.clean_id, "gold": gold} for row, gold in wanted])
        return
    drawn = random.Random(seed).sample(range(len(wanted)), min(sample, len(wanted)))
    for at in sorted(drawn):
        for line in _lines(*wanted[at]):
            _console.echo(line)
    _console.out.print(_counts(found))


def _lines(row: Sample, gold: "Gold") -> tuple[str, str]:
    """One value: where it is asked for, what is accepted, its class, and the words that it rests on."""
    finding = gold.finding
    accepted = " or ".join(dumps(value) for value in gold.accepted)
    where = "no place in the dialogue"
    if finding.place is not None:
        message, start, end = finding.place
        passage = row.messages[message].content[start:end]
        where = f"message {message}, characters {start} to {end}: {passage[:120]!r}"
    said = finding.kind + (f" ({finding.note})" if finding.note else "")
    return f"{row.clean_id} · {gold.call}.{gold.parameter} = {accepted[:160]}", f"    {said} · {where}"


def _counts(found: list[tuple[Sample, "Gold"]]) -> "Table":
    from ..builders.answerable import KINDS

    names = [name for name in in_tables() if any(row.source == name for row, _ in found)]
    rows = []
    for kind in KINDS:
        of = [sum(g.finding.kind == kind and row.source == name for row, g in found) for name in names]
        rows.append((kind, *map(str, of), str(sum(of))))
    return _console.table(("class", *names, "all"), rows, "golden values by class and source")
