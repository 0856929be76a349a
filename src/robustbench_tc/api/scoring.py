"""Verdicts and what one asks of them: `score` and `sql`."""

import re
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from ..errors import UserError
from ..option import Option, Tell, silent
from ..shown import Line, Part
from . import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..eval.record import RunFolder
    from ..eval.stats.screen import Overview, Screen
    from ..sql.query import Catalogue, Rows


class Scored(NamedTuple):
    """A run with its verdicts; it shows its summary."""

    folder: "RunFolder"
    notes: tuple[str, ...] = ()
    """Lines to say before the summary."""

    @property
    def summary(self) -> "Screen":
        """What the verdicts say."""
        from ..eval.stats.screen import screen

        return screen(self.folder, allow_missing=True)

    def shown(self) -> "Iterator[Part]":
        """The notes beside, and the summary."""
        record = self.folder.record
        yield from (Line(note, aside=True) for note in self.folder.notes)
        yield from (Line(f"left out: {n} × {why}", aside=True) for why, n in record.left_out.items())
        yield from (Line(note, aside=True) for note in self.notes)
        yield Line(f"scored by reader {record.reader}: {self.folder.scores_path}", aside=True)
        yield from self.summary.shown()

    def json(self) -> "Overview":
        """The values of the summary."""
        return self.summary.json()


def score(
    run: Annotated[str | Path, options.RUN_OR_JOURNAL],
    *,
    dataset: Annotated[str | Path | None, options.DATASET] = None,
    worlds: Annotated["Sequence[str]", options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    num_proc: Annotated[int, options.NUM_PROC] = 1,
    engine: Annotated[Literal["local", "ray"], options.ENGINE] = "local",
    address: Annotated[str | None, options.ADDRESS] = None,
    out: Annotated[Path | None, options.OUT] = None,
    model: Annotated[str | None, options.MODEL] = None,
    repeat: Annotated[int | None, options.REPEAT] = None,
    progress: Tell = silent,
) -> Scored:
    """Turn a run's answers into verdicts (scores.parquet) without asking the model; print the summary.

    Episodes of a live run are replayed in their worlds.

    The journal of `rbtc proxy` becomes an ordinary run folder (docs/proxy-llm.md). Only a journal takes
    --out, --model and --repeat; they default to runs/MODEL-fc-door, the model named in most requests, and the
    number of attempts that every row has.

    Example: rbtc score runs/qwen3-8b-fc
    Example: rbtc score journal.jsonl --out runs/my-agent

    Raises UserError for a path that is neither a run nor a journal, for files that are damaged or were
    changed, and for a dataset other than the run's; earlier verdicts are then kept.

    >>> score("runs/mine").folder.scores_path  # doctest: +SKIP
    """
    from ..eval import verdicts

    place = None if dataset is None else str(dataset)
    if Path(run).is_file():
        from ..proxy import scored

        made = scored.score(
            Path(run), dataset=place, model=model, repeat=repeat, out=None if out is None else Path(out)
        )
        failed = [f"without an answer: {n} × {why}" for why, n in made.failures.items()]
        return Scored(made.folder, (*failed, f"{made.predictions} predictions in {made.folder.path}"))
    if (out, model, repeat) != (None, None, None):
        raise UserError("--out, --model and --repeat are for the journal of a door, and this is not one")
    workers = options.workers_of(num_proc, engine, address)
    progress(f"reading {run}")
    return Scored(
        verdicts.score(run, dataset=place, workers=workers, worlds=worlds, world_python=world_python)
    )


def _parameters(words: Sequence[str]) -> dict[str, str]:
    """`name=value` each. Raises UserError."""
    found = [re.fullmatch(r"(?s)([a-z_][a-z0-9_]*)=(.*)", word) for word in words]
    if None in found:
        raise UserError(f"{words[found.index(None)]!r}: write it as name=value")
    return {one[1]: one[2] for one in found if one}


def sql(
    query: Annotated[str | None, Option(help="A mart, a select, or a .sql file. Default: list them.")] = None,
    *,
    run: Annotated[
        Sequence[str | Path], Option(help="Scored run folder, local or hf://. Repeatable.", read=tuple)
    ] = (),
    dataset: Annotated[str | Path | None, options.DATASET] = None,
    paper: Annotated[
        bool, Option(help="Add the paper's counts to the runs'; without --run, use them alone.")
    ] = False,
    parameters: Annotated[
        "Mapping[str, str]",
        Option(name="param", help="NAME=VALUE: a mart's parameter. Repeatable.", read=_parameters),
    ] = MappingProxyType({}),
    subset: Annotated[Literal["all", "paper", "verified"], options.SUBSET] = "all",
    allow_missing: Annotated[bool, options.ALLOW_MISSING] = False,
    out: Annotated[Path | None, options.OUT] = None,
) -> "Rows | Catalogue":
    """Query runs and datasets: a mart such as table2, by_type or flips, or SQL of your own.

    --out writes the rows as CSV, or to a .json or .parquet file. A select over stg_release reads the run's
    dataset; a mart reads the one that --dataset names. Both may be hf:// addresses.

    Example: rbtc sql "select type_code, avg(score) from stg_predictions group by all" --run runs/qwen3-8b-fc

    Raises UserError for runs without scores, and for a query that DuckDB refuses.

    >>> sql("by_type", run=["runs/mine"]).table  # doctest: +SKIP
    """
    from ..eval import paper as papers
    from ..io.files import check_file
    from ..sql import query as marts

    if query is None:
        return marts.Catalogue(marts.marts(), marts.views())
    if out is not None:
        check_file(out)
    runs = tuple(map(str, [run] if isinstance(run, str | Path) else run))
    inputs = marts.Inputs(
        runs=runs,
        release=None if dataset is None else str(dataset),
        paper=papers.CELLS if paper or not runs else None,
        subset=subset,
        allow_missing=allow_missing,
        parameters=parameters,
    )
    found = marts.Rows(marts.query(query, inputs), out)
    if out is not None:
        found.write(out)
    if query == "gap_closure" and not found.table.num_rows:
        found = found._replace(hint=marts.NO_BASELINE)
    return found
