"""Great Expectations, as far as we need it: run a suite over a frame, get `Check`s back.

Great Expectations takes seconds to import, so nothing of it is touched before a suite runs. Verdicts of rows
are computed beforehand, once per row, and become a column (null: does not apply; `holds`; or what is wrong).
So every suite is made of expectations that Great Expectations brings: anybody can load it and run it again.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..checks import HOLDS, MET, Rule, Suite, columns, rules, verdicts
from ..report import SHOWN, Check, Failure, check

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = frozenset(("length_ratio", "description_ratio", "translation_ratio"))
"""Columns of numbers; the others hold objects."""


def expectation(rule: Rule) -> Any:
    """A check as an expectation; what it protects is what its data docs say."""
    kind = getattr(quiet().expectations, rule.expectation)
    return kind(**rule.shown, description=rule.protects, meta={"check": rule.id})


def suite_of(name: str, wanted: Sequence[Rule]) -> Any:
    """The suite of these checks."""
    quiet()
    from great_expectations.core import ExpectationSuite

    return ExpectationSuite(name, expectations=[expectation(rule) for rule in wanted])


class Validated(NamedTuple):
    """A suite that was run: what a Great Expectations project of it is made of."""

    suite: str
    table: "pd.DataFrame"
    rules: Sequence[Rule]
    checks: list[Check]
    """What Great Expectations said, one for each rule."""


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


def run_over(suite: Suite, subjects: Iterable[Any]) -> list[Check]:
    """Holds every subject against the suite's checks and validates what they say."""
    rows = [{"id": one.id, **verdicts(suite, one)} for one in subjects]
    return run(suite, columns(rows, ("id",), suite))


def run(suite: Suite, data: Mapping[str, Sequence[Any]], wanted: Sequence[Rule] | None = None) -> list[Check]:
    """Validates columns (`id` says which row failed) and gives one check per rule of the suite, or of those
    `wanted`, in their order. An expectation that raises has failed."""
    wanted = rules(suite) if wanted is None else wanted
    table = _table(data, wanted)
    result = _validated(suite, table, wanted)
    found = {one.expectation_config.meta["check"]: one for one in result.results}
    made = [_check(rule, found.get(rule.id), len(table)) for rule in wanted]
    if (keep := _collected.get()) is not None:
        keep.append(Validated(suite, table, wanted, made))
    return made


def _validated(suite: str, table: "pd.DataFrame", wanted: Sequence[Rule]) -> Any:
    """What Great Expectations says of the table.

    Which rows failed is half of the work: asked only of expectations that some row does not meet.
    """
    context = quiet().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    batch = context.data_sources.pandas_default.read_dataframe(table, asset_name=suite)
    quick = {"result_format": "BASIC", "partial_unexpected_count": SHOWN}
    result = batch.validate(suite_of(suite, wanted), result_format=quick)
    unmet = {
        one.expectation_config.meta["check"]
        for one in result.results
        if not one.success or one.result.get("unexpected_count")
    }
    if unmet:
        again = suite_of(suite, [rule for rule in wanted if rule.id in unmet])
        result.results += batch.validate(again, result_format=result_format()).results
    return result


def result_format() -> dict[str, Any]:
    """How much of a result is kept: the first failing rows by name."""
    return {
        "result_format": "SUMMARY",
        "partial_unexpected_count": SHOWN,
        "unexpected_index_column_names": ["id"],
    }


def _table(data: Mapping[str, Sequence[Any]], wanted: Sequence[Rule]) -> "pd.DataFrame":
    """The columns that the expectations look at, as text, number or null, which a CSV file can hold too."""
    import pandas as pd

    found = {"id": [_plain(one) for one in data["id"]]}
    for rule in wanted:
        if not rule.is_native:
            found[rule.name] = [MET if one == HOLDS else one for one in data[rule.name]]
        for name in rule.arguments.get("column_list", filter(None, [rule.arguments.get("column")])):
            found[name] = list(data[name]) if name in NUMBERS else [_plain(one) for one in data[name]]
    # One block of objects (`copy` joins them): each expectation takes rows out of the whole table.
    return pd.DataFrame(
        {
            name: pd.Series(column, dtype="float64" if name in NUMBERS else "object")
            for name, column in found.items()
        }
    ).copy()


def _plain(value: Any) -> Any:
    """A value as text that a CSV file gives back; null stays null."""
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str) else str(value)


def _check(rule: Rule, result: Any, rows: int) -> Check:
    """One result of Great Expectations as a check."""
    values: dict[str, Any] = {} if result is None else result.result
    if not values:
        what = "Great Expectations gave no result"
        if result is not None:
            info = result.exception_info or {}
            found = info if "exception_message" in info else next(iter(info.values()), {})
            what = f"Great Expectations could not evaluate it: {str(found.get('exception_message'))[:160]}"
        return check(rule.id, rule.protects, rows, [Failure("the suite", what)], reason=what)
    applied = int(values.get("element_count", rows)) - int(values.get("missing_count") or 0)
    if result.success:  # with `mostly`, some rows may be outside
        return check(rule.id, rule.protects, applied, [])
    failures = [_failure(entry) for entry in values.get("partial_unexpected_index_list") or []]
    if not failures:
        failures = [Failure("the suite", f"observed {str(values.get('observed_value', values))[:200]}")]
    failed = max(int(values.get("unexpected_count") or 0), 1)
    return check(rule.id, rule.protects, applied, failures, failed=failed)


def _failure(entry: dict[str, Any]) -> Failure:
    """A failing row: its id, and the verdict or the values that were compared."""
    others = {name: value for name, value in entry.items() if name != "id"}
    if len(others) == 1 and isinstance(next(iter(others.values())), str):
        what = str(next(iter(others.values())))
    else:
        what = ", ".join(f"{name} {value}" for name, value in others.items()) or "not unique"
    return Failure(str(entry.get("id")), what)


@cache
def quiet() -> Any:
    """The package, without telemetry, progress bars and log lines; whoever imports it comes here first."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    return gx
