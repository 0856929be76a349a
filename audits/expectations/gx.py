"""Great Expectations, as far as we need it: run a suite over a frame, get `Check`s back.

Great Expectations takes seconds to import, so nothing of it is touched before a suite runs. Verdicts of rows
are computed beforehand, once per row, and become a column (null: does not apply; `holds`; or what is wrong).
So every suite is made of expectations that Great Expectations brings: anybody can load it and run it again.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from ..report import SHOWN, Check, Failure, check

if TYPE_CHECKING:
    import pandas as pd

Compare = Callable[["pd.DataFrame"], "pd.Series[bool]"]

HOLDS = "holds"
"""What a column of verdicts says of a row that is as it must be."""


class Expectation(NamedTuple):
    """One expectation of a suite."""

    id: str
    """The check's id, `group.name`."""
    protects: str
    """One sentence: what would go wrong without it."""
    kind: str
    """The class of Great Expectations."""
    arguments: dict[str, Any]
    compares: tuple[tuple[str, ...], Compare] | None = None
    """Columns and what must be true of them, from which the column of verdicts is made."""

    def make(self) -> Any:
        """The instance; what it protects is what its data docs say."""
        kind = getattr(quiet().expectations, self.kind)
        return kind(**self.arguments, description=self.protects, meta={"check": self.id})


def holds(group: str, name: str, protects: str) -> Expectation:
    """Column `name` holds verdicts, and none says that something is wrong."""
    expected = {"column": name, "value_set": [HOLDS]}
    return Expectation(f"{group}.{name}", protects, "ExpectColumnValuesToBeInSet", expected)


def all_hold(group: str, protects: Mapping[str, str]) -> list[Expectation]:
    """The same of several columns, each with what it protects."""
    return [holds(group, name, sentence) for name, sentence in protects.items()]


def compares(group: str, name: str, protects: str, columns: Sequence[str], test: Compare) -> Expectation:
    """`test` is true for every row of the frame of `columns`."""
    return holds(group, name, protects)._replace(compares=(tuple(columns), test))


def native(group: str, name: str, protects: str, brought: str, **arguments: Any) -> Expectation:
    """An expectation about plain columns, by its class name."""
    return Expectation(f"{group}.{name}", protects, brought, arguments)


NUMBERS = frozenset(
    "length_ratio description_ratio translation_ratio rows built stated floor reported gold_tool_index "
    "tools".split()
)
"""Columns of numbers; the others hold objects."""


def frame(data: dict[str, list[Any]]) -> "pd.DataFrame":
    """Columns as a frame."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: pd.Series(values, dtype="float64" if name in NUMBERS else "object")
            for name, values in data.items()
        }
    )


def frame_of(names: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> "pd.DataFrame":
    """Rows as a frame; what a row does not say is null."""
    return frame({name: [row.get(name) for row in rows] for name in names})


def same_columns(
    suite: str, protects: str, places: Iterable[tuple[str, Sequence[str], Sequence[str]]]
) -> list[Check]:
    """Whether every place (its name, the wanted columns, those found) has the wanted columns in order."""
    rows = [
        {"id": f"{place}.{number}", "expected": expected, "found": there}
        for place, wanted, found in places
        for number, (expected, there) in enumerate(zip_longest(wanted, found, fillvalue="(none)"))
    ]
    names = ("expected", "found")
    held = compares("columns", "are_the_contracts", protects, names, lambda f: f["expected"] == f["found"])
    return run(suite, frame_of(("id", *names), rows), (held,))


class Validated(NamedTuple):
    """A suite that was run: what a Great Expectations project of it is made of."""

    suite: str
    table: "pd.DataFrame"
    expectations: tuple[Expectation, ...]
    checks: list[Check]
    """What Great Expectations said, one for each expectation."""


_collected: ContextVar[list[Validated] | None] = ContextVar("collected", default=None)


@contextmanager
def collected() -> Iterator[list[Validated]]:
    """Every suite that is run in the block, in order."""
    found: list[Validated] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def run(suite: str, data: "pd.DataFrame", wanted: Sequence[Expectation], index: str = "id") -> list[Check]:
    """Validates `data` and gives one check per expectation, in their order.

    `index` names the column that says which row failed. An expectation that raises has failed.
    """
    table = _table(data, wanted, index)
    result = _validated(suite, table, wanted, index)
    found = {one.expectation_config.meta["check"]: one for one in result.results}
    checks = [_check(expectation, found.get(expectation.id), len(data), index) for expectation in wanted]
    if (keep := _collected.get()) is not None:
        keep.append(Validated(suite, table, tuple(wanted), checks))
    return checks


def _validated(suite: str, table: "pd.DataFrame", wanted: Sequence[Expectation], index: str) -> Any:
    """What Great Expectations says of the table.

    Which rows failed is half of the work: asked only of expectations that some row does not meet.
    """
    gx = quiet()
    from great_expectations.core import ExpectationSuite

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    batch = context.data_sources.pandas_default.read_dataframe(table, asset_name=suite)

    def validate(expectations: Sequence[Expectation], result_format: dict[str, Any]) -> Any:
        made = ExpectationSuite(suite, expectations=[expectation.make() for expectation in expectations])
        return batch.validate(made, result_format=result_format)

    result = validate(wanted, {"result_format": "BASIC", "partial_unexpected_count": SHOWN})
    unmet = {
        one.expectation_config.meta["check"]
        for one in result.results
        if not one.success or one.result.get("unexpected_count")
    }
    if unmet:
        named = validate([one for one in wanted if one.id in unmet], result_format(index))
        by_id = {one.expectation_config.meta["check"]: one for one in named.results}
        result.results = [by_id.get(one.expectation_config.meta["check"], one) for one in result.results]
    return result


def result_format(index: str = "id") -> dict[str, Any]:
    """How much of a result is kept: the first failing rows by name."""
    return {
        "result_format": "SUMMARY",
        "partial_unexpected_count": SHOWN,
        "unexpected_index_column_names": [index],
    }


def _table(data: "pd.DataFrame", wanted: Sequence[Expectation], index: str) -> "pd.DataFrame":
    """The columns that the expectations look at, as text, number or null, which a CSV file can hold too."""
    import pandas as pd

    columns: dict[str, Any] = {index: data[index].map(_plain)}
    for expectation in wanted:
        arguments = expectation.arguments
        if expectation.compares is not None:
            columns[arguments["column"]] = _compared(data, *expectation.compares)
        elif arguments.get("value_set") == [HOLDS]:
            columns[arguments["column"]] = data[arguments["column"]].map(
                lambda verdict: HOLDS if verdict == "" else _plain(verdict), na_action="ignore"
            )
        else:
            for name in arguments.get("column_list", (arguments.get("column"),)):
                columns[name] = data[name] if name in NUMBERS else data[name].map(_plain)
    # One block of objects (`copy` joins them): each expectation takes rows out of the whole table.
    objects = {name: object for name in columns if name not in NUMBERS}
    return pd.DataFrame(columns).astype(objects).copy()


def _compared(data: "pd.DataFrame", names: tuple[str, ...], test: Compare) -> "pd.Series[Any]":
    """A column of verdicts: what stands in the columns where `test` is not true; null where all are null."""
    import pandas as pd

    chosen = data[list(names)]
    try:
        true = test(chosen).fillna(False).astype(bool)
    except Exception as error:
        what = f"it could not be compared: {type(error).__name__}: {str(error)[:120]}"
        return pd.Series([what] * len(data), index=data.index, dtype="object")
    said = [
        HOLDS
        if holds
        else None
        if all(pd.isna(value) for value in values)
        else ", ".join(
            f"{name} {_plain(int(v) if isinstance(v, float) and v.is_integer() else v)}"
            for name, v in zip(names, values, strict=True)
        )
        for holds, values in zip(true, chosen.itertuples(index=False), strict=True)
    ]
    missing = chosen.isna().all(axis=1)
    return pd.Series(said, index=data.index, dtype="object").mask(missing)


def _plain(value: Any) -> Any:
    """A value as text that a CSV file gives back; null stays null."""
    if value is None or value != value:
        return None
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, str) else str(value)


def _check(expectation: Expectation, result: Any, rows: int, index: str) -> Check:
    """One result of Great Expectations as a check."""
    values: dict[str, Any] = {} if result is None else result.result
    if not values:
        what = "Great Expectations gave no result"
        if result is not None:
            info = result.exception_info or {}
            found = info if "exception_message" in info else next(iter(info.values()), {})
            what = f"Great Expectations could not evaluate it: {str(found.get('exception_message'))[:160]}"
        return check(expectation.id, expectation.protects, rows, [Failure("the suite", what)], reason=what)
    applied = int(values.get("element_count", rows)) - int(values.get("missing_count") or 0)
    failures = [_failure(entry, index) for entry in values.get("partial_unexpected_index_list") or []]
    failed = int(values.get("unexpected_count") or 0)
    if result.success:  # with `mostly`, some rows may be outside
        failed, failures = 0, []
    elif not failures:
        failures = [Failure("the suite", f"observed {str(values.get('observed_value', values))[:200]}")]
    return check(
        expectation.id,
        expectation.protects,
        applied,
        failures,
        failed=0 if result.success else max(failed, 1),
    )


def _failure(entry: dict[str, Any], index: str) -> Failure:
    """A failing row: its id, and the verdict or the values that were compared."""
    others = {name: value for name, value in entry.items() if name != index}
    if len(others) == 1 and isinstance(next(iter(others.values())), str):
        what = str(next(iter(others.values())))
    else:
        what = ", ".join(f"{name} {value}" for name, value in others.items()) or "not unique"
    return Failure(str(entry.get(index)), what)


@cache
def quiet() -> Any:
    """The package, without telemetry, progress bars and log lines; whoever imports it comes here first."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    return gx
