"""One question, one connection: the staging views over what was given, then a mart or SQL of your own."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval.record import open_run
from robustbench_tc.eval.verdicts import place_of
from robustbench_tc.io import marker
from robustbench_tc.io.files import atomic_file
from robustbench_tc.io.numbers import number
from robustbench_tc.shown import Line, Part, Table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FOLDER = files("robustbench_tc.sql")


class Mart(msgspec.Struct, frozen=True):
    """What `marts.yml` says of one mart."""

    group: str
    description: str
    needs: Literal["cells", "runs", "live"]
    """cells: counts per type are enough, so the paper's serve too. runs: every prediction. live: episodes."""
    columns: dict[str, str]
    """Name → meaning, in the order of the result."""
    parameters: dict[str, str] = {}


@cache
def marts() -> dict[str, Mart]:
    """The marts by name."""
    return msgspec.yaml.decode(FOLDER.joinpath("marts.yml").read_bytes(), type=dict[str, Mart])


EXAMPLES = (
    "rbtc sql table2 --run RUN",
    'rbtc sql "select type_code, error_mode, count(*) n from stg_predictions where not correct group by all" '
    "--run RUN",
    'rbtc sql "select id, query, gold_call, calls from stg_predictions join stg_release using (id) '
    'where not correct limit 5" --run RUN',
)


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the views are laid over. Folders may be local or `hf://…`."""

    runs: Sequence[str] = ()
    release: str | None = None
    paper: Path | None = None
    """The paper's cells.csv; None leaves the paper out."""
    subset: Literal["all", "paper", "verified"] = "all"
    allow_missing: bool = False
    parameters: Mapping[str, str] = {}


NO_BASELINE = (
    "no other run is of the baseline's dataset, or there is no baseline of that name: name one with "
    "--param baseline=MODEL or the run's folder"
)


class Rows(NamedTuple):
    """The rows of a query."""

    table: "pa.Table"
    out: Path | None = None
    """The file that holds them too."""
    hint: str = ""

    def shown(self) -> Iterator[Part]:
        """A row a line; a single one downwards, since twenty columns fit no terminal."""
        rows = self.table.to_pylist()
        if self.hint:
            yield Line(self.hint, aside=True)
        if self.out is not None:
            yield f"{len(rows):,} rows in {self.out}"
        elif len(rows) == 1:
            yield Table(
                ("column", "value"),
                [(name, _cell(value)) for name, value in rows[0].items()],
                folded=("value",),
            )
        else:
            texts = [
                n for n in self.table.column_names if not any(isinstance(row[n], int | float) for row in rows)
            ]
            yield Table(
                self.table.column_names,
                [[_cell(value) for value in row.values()] for row in rows],
                folded=texts,
            )
            yield f"{len(rows):,} rows"

    def json(self) -> list[dict[str, Any]]:
        """The rows as objects."""
        return self.table.to_pylist()

    def write(self, out: Path) -> None:
        """Writes a file: JSON or Parquet where its name ends so, else CSV. Raises UserError for one that is
        there."""
        import duckdb

        rows = duckdb.from_arrow(self.table)
        with atomic_file(out) as beside:
            if out.suffix == ".parquet":
                rows.write_parquet(str(beside))
            elif out.suffix == ".json":
                beside.write_bytes(msgspec.json.format(msgspec.json.encode(self.json()), indent=1) + b"\n")
            else:
                rows.write_csv(str(beside))


class Catalogue(msgspec.Struct, frozen=True):
    """What may be queried."""

    marts: dict[str, Mart]
    views: dict[str, dict[str, str]]
    """For SQL of one's own: name and type of every column, by view."""

    def shown(self) -> Iterator[Part]:
        """Three examples, the marts by group, the views."""
        yield from EXAMPLES
        needs = {"runs": ["needs --run"], "live": ["needs a live run"], "cells": []}
        for group in dict.fromkeys(mart.group for mart in self.marts.values()):
            rows = [
                (
                    name,
                    mart.description,
                    "; ".join(
                        (
                            *needs[mart.needs],
                            *(f"--param {key}=…: {one}" for key, one in mart.parameters.items()),
                        )
                    ),
                )
                for name, mart in self.marts.items()
                if mart.group == group
            ]
            yield Table(("mart", "answers", ""), rows, title=group, folded=("answers", ""))
        columns = [
            (name, ", ".join(f"{one} {kind}" for one, kind in found.items()))
            for name, found in self.views.items()
        ]
        yield Table(("view", "columns"), columns, title="views for SQL of your own", folded=("columns",))


def _cell(value: object) -> str:
    return number(value) if value is None or isinstance(value, float) else str(value)


def query(name: str, inputs: Inputs) -> "pa.Table":
    """The rows of a mart, or of a select or .sql file of your own over the same views. Raises UserError."""
    import duckdb

    sql, where = text_of(name, inputs), _first_line(name)
    if name not in marts() and inputs.release is None and re.search(r"\bstg_release\b", sql):
        inputs = msgspec.structs.replace(inputs, release=_asked_of(inputs.runs))
    with connect(inputs) as connection:
        try:
            relation = connection.sql(sql)
            if relation is not None:
                table: pa.Table = relation.to_arrow_table()
                return table
        except duckdb.CatalogException as error:
            raise UserError(f"{where}: {_first_line(error)} (`rbtc sql` lists what may be queried)") from None
        except duckdb.Error as error:
            raise UserError(f"{where}: {_first_line(error)}") from None
    raise UserError(f"{where} gives no rows: its last statement has to be a select")


def views() -> dict[str, dict[str, str]]:
    """What a .sql file of your own may query: name and type of every column, by view."""
    with connect(Inputs()) as connection:
        found = connection.execute(
            "select table_name, list((column_name, lower(data_type)) order by ordinal_position) "
            "from information_schema.columns where table_schema = 'main' group by all order by table_name"
        ).fetchall()
    return {view: dict(columns) for view, columns in found}


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C while DuckDB is at a query is a KeyboardInterrupt: DuckDB makes a RuntimeError of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


@contextmanager
def connect(inputs: Inputs, *, check: bool = True) -> Iterator["duckdb.DuckDBPyConnection"]:
    """A connection of its own with every staging and intermediate view. Raises UserError.

    Never shared: DuckDB refuses a connection that is in use by another request. `check` looks for rows that
    were answered twice.
    """
    import duckdb

    scored = [_scored(run) for run in inputs.runs]
    if twice := [run for run, times in Counter(scored).items() if times > 1]:
        raise UserError(f"{twice[0]} is given twice")
    runs, live = ([run for run in scored if _is_live(run) is wanted] for wanted in (False, True))
    release = inputs.release
    if release is not None:
        release = _folder(release, "clean", "name a folder that `rbtc build` made")
    with _interruptible(), duckdb.connect() as connection:
        variables: dict[str, Any] = {
            **inputs.parameters,
            "taxonomy": str(files("robustbench_tc").joinpath("data/taxonomy.json")),
            "paper": str(inputs.paper),
            "runs": runs,
            "live_runs": live,
            "release": release,
            "subset": inputs.subset,
            "allow_missing": inputs.allow_missing,
        }
        for variable, value in variables.items():
            if not re.fullmatch(r"[a-z_][a-z0-9_]*", variable):
                raise UserError(f"parameter {variable!r}: a name is lower-case letters, digits and _")
            connection.execute(f"set variable {variable} = ?", [value])
        try:
            connection.execute("set variable mixtures = ?", [_mixtures(connection, runs, release)])
            files_of_views = (
                "stg_types",
                "macro_in_subset",
                "no_paper" if inputs.paper is None else "stg_paper_cells",
                *(["stg_runs", "stg_predictions"] if runs else ["no_runs"]),
                "stg_live" if live else "no_live",
                "no_release" if release is None else "stg_release",
                *("int_answers", "int_cells", "int_components", "int_pairs"),
            )
            for view in files_of_views:
                connection.execute(FOLDER.joinpath(f"{view}.sql").read_text(encoding="utf-8"))
            for view in _ASKED_OFTEN:
                connection.execute(f"create temp table {view}_rows as from {view}")
                connection.execute(f"create or replace view {view} as from {view}_rows")
            for run in (*runs, *live) if check or release is not None else ():
                _refuse(connection, run, None if run in live else release)
        except duckdb.Error as error:
            raise UserError(f"these runs cannot be read: {_first_line(error)}") from None
        yield connection


def _mixtures(connection: "duckdb.DuckDBPyConnection", runs: Sequence[str], release: str | None) -> list[str]:
    """The facts of the mixtures that no module states, of these runs and the release, as JSON; in order."""
    found: set[str] = set()
    of_release = [f"{release}/*/test-*.parquet"] if release else []
    for file in (*(f"{run}/scores.parquet" for run in runs), *of_release):
        rows = connection.execute(
            "select distinct type_code from read_parquet(?, union_by_name = true) "
            f"where starts_with(type_code, '{taxonomy.MIX}')",
            [file],
        ).fetchall()
        found.update(code for (code,) in rows)
    kinds = taxonomy.among(found - {kind.code for kind in taxonomy.types("all")})
    ordered = (msgspec.structs.replace(kind, order=kind.order + place) for place, kind in enumerate(kinds))
    return [msgspec.json.encode(kind).decode() for kind in ordered]


_ASKED_OFTEN = ("stg_types", "int_cells")
"""Small views that most marts ask several times: their rows are computed once a connection."""


def _is_live(run: str) -> bool:
    """Whether a folder is a live run. A remote one is taken by its name: `…/live/…`, as `rbtc eval` names
    them."""
    if re.match(r"[a-z0-9]+://", run):
        return "live" in run.split("/")[:-1]
    return (Path(run) / "episodes.parquet").exists()


def text_of(name: str, inputs: Inputs) -> str:
    """The query of a mart or a .sql file; what holds a space is a query itself. Raises UserError where the
    inputs do not fit it."""
    if name.endswith(".sql"):
        if not Path(name).is_file():
            raise UserError(f"no SQL file at {name}")
        return Path(name).read_text(encoding="utf-8")
    if re.search(r"\s", name.strip()):
        return name
    if name not in marts():
        raise unknown("mart", name, marts())
    mart = marts()[name]
    live = {_is_live(run) for run in inputs.runs}
    if mart.needs == "live" and live != {True}:
        raise UserError(f"{name} looks at live episodes: name live runs with --run, and no other")
    if mart.needs != "live" and True in live:
        of_live = ", ".join(one for one, about in marts().items() if about.needs == "live")
        raise UserError(f"{name} has no rows for live runs; {of_live} have them")
    if mart.needs == "runs" and not inputs.runs:
        raise UserError(
            f"{name} looks at single predictions: name a run with --run (the paper printed counts)"
        )
    for parameter in inputs.parameters:
        if parameter not in mart.parameters:
            if not mart.parameters:
                raise UserError(f"{name} takes no parameters, so no {parameter!r}")
            raise unknown(f"parameter of {name}", parameter, mart.parameters)
    return FOLDER.joinpath(f"{name}.sql").read_text(encoding="utf-8")


def _asked_of(runs: Sequence[str]) -> str:
    """The folder of the dataset that these runs were asked, where their records say it lies.

    Raises UserError where it is not there or another one is: a join with it would give no rows.
    """
    found = [open_run(Path(run)) for run in runs]
    asked = {one.record.settings.fingerprint for one in found}
    if len(asked) != 1:
        raise UserError("stg_release is one dataset: name runs of one with --run, or itself with --dataset")
    folder = place_of(found[0])
    report = folder / marker.BUILD
    if report.is_file() and msgspec.json.decode(report.read_bytes()).get("fingerprint") not in asked:
        raise UserError(f"{folder} is not what {runs[0]} was asked on any more: name that with --dataset")
    return str(folder)


def _folder(path: str, inside: str, hint: str) -> str:
    """The folder without a slash at its end; a local one is looked at, a remote one is not."""
    folder = path.rstrip("/") or "/"
    if glob := re.search(r"[*?\[\]]", folder):
        raise UserError(f"{path}: DuckDB takes {glob[0]} in a path as a pattern: rename the folder")
    if not re.match(r"[a-z0-9]+://", folder) and not (Path(folder) / inside).exists():
        raise UserError(f"{path} has no {inside}: {hint}")
    return folder


def _scored(run: str) -> str:
    """As `_folder`, for the folder of a scored run."""
    is_run = (Path(run) / "run.json").exists()
    hints = "name the folder of a run, as `rbtc eval` makes one", "run `rbtc score` on it first"
    return _folder(run, "scores.parquet", hints[is_run])


def _refuse(connection: "duckdb.DuckDBPyConnection", run: str, release: str | None) -> None:
    """UserError for a row that was answered twice, which would be averaged over, and for a release with no
    sample of the run: every row of it would count as missing. One run at a time: bounded memory."""
    scores = f"{run}/scores.parquet"
    doubled = connection.execute(
        "select id, repeat, count(*) from read_parquet(?) "
        "group by id, repeat having count(*) > 1 order by id limit 1",
        [scores],
    ).fetchall()
    for row, repeat, times in doubled:
        raise UserError(
            f"{run} holds predictions more than once, the first {row!r} repeat {repeat} "
            f"{times} times: score the run again or remove the copies"
        )
    if release is None:
        return
    [(rows, known)] = connection.execute(
        "select count(*), count(*) filter (where clean_id in (select clean_id from read_parquet(?))) "
        "from read_parquet(?)",
        [f"{release}/clean/test-*.parquet", scores],
    ).fetchall()
    if rows and not known:
        raise UserError(f"{release} has no sample of {run}: name the release that the run was asked")


def _first_line(text: object) -> str:
    return str(text).strip().splitlines()[0]
