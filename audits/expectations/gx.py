"""Great Expectations, as far as we need it: run a suite over a frame, get `Check`s back.

Great Expectations takes seconds to import, so nothing of it is touched before a suite runs. Verdicts of rows
are computed beforehand, once per row; an expectation looks at its column of verdicts (null: does not apply;
"": holds; else what is wrong) or compares plain columns.
"""

import logging
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..report import SHOWN, Check, Failure, check

if TYPE_CHECKING:
    import pandas as pd

Compare = Callable[["pd.DataFrame"], "pd.Series[bool]"]


class Expectation(NamedTuple):
    """One expectation of a suite."""

    id: str
    """The check's id, `group.name`."""
    protects: str
    """One sentence: what would go wrong without it."""
    make: Callable[[], Any]
    """The Great Expectations instance, made when the suite runs."""


class Suites(NamedTuple):
    """Makes the expectations of one kind of dataset.

    Great Expectations keeps classes and metrics by name for the whole process, so the kind is in their names.
    """

    kind: str

    def holds(self, group: str, name: str, protects: str) -> Expectation:
        """Column `name` holds verdicts, and none says that something is wrong."""
        id = f"{group}.{name}"
        return Expectation(id, protects, lambda: _verdict_class(self.kind, id, protects)(column=name))

    def compares(
        self, group: str, name: str, protects: str, columns: Sequence[str], test: Compare
    ) -> Expectation:
        """`test` is true for every row of the frame of `columns`."""
        id = f"{group}.{name}"
        return Expectation(
            id, protects, lambda: _compare_class(self.kind, id, protects, test)(column_list=list(columns))
        )

    def native(self, group: str, name: str, protects: str, brought: str, **arguments: Any) -> Expectation:
        """An expectation that Great Expectations brings, by its class name."""

        def make() -> Any:
            import great_expectations.expectations as gxe

            return getattr(gxe, brought)(**arguments)

        return Expectation(f"{group}.{name}", protects, make)


NUMBERS = frozenset("length_ratio description_ratio rows pinned floor reported gold_tool_index tools".split())
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


def run(suite: str, data: "pd.DataFrame", wanted: Sequence[Expectation], index: str = "id") -> list[Check]:
    """Validates `data` and gives one check per expectation, in their order.

    `index` names the column that says which row failed. An expectation that raises has failed.
    """
    gx = _quiet()
    from great_expectations.core import ExpectationSuite, ValidationDefinition

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset(suite)
    batch = asset.add_batch_definition_whole_dataframe("whole")
    made = []
    for expectation in wanted:
        instance = expectation.make()
        instance.meta = {"check": expectation.id}
        made.append(instance)
    definition = context.validation_definitions.add(
        ValidationDefinition(
            name=suite, data=batch, suite=context.suites.add(ExpectationSuite(suite, expectations=made))
        )
    )
    results = definition.run(
        batch_parameters={"dataframe": data},
        result_format={
            "result_format": "SUMMARY",
            "partial_unexpected_count": SHOWN,
            "unexpected_index_column_names": [index],
        },
    ).results
    found = {result.expectation_config.meta["check"]: result for result in results}
    return [_check(expectation, found.get(expectation.id), len(data), index) for expectation in wanted]


def _check(expectation: Expectation, result: Any, rows: int, index: str) -> Check:
    """One result of Great Expectations as a check."""
    values: dict[str, Any] = {} if result is None else result.result
    if not values:
        what = "Great Expectations gave no result" if result is None else _exception(result)
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


def _exception(result: Any) -> str:
    info = result.exception_info or {}
    found = info if "exception_message" in info else next(iter(info.values()), {})
    return f"Great Expectations could not evaluate it: {str(found.get('exception_message'))[:160]}"


@cache
def _quiet() -> Any:
    """The package, without telemetry, progress bars and log lines."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    return gx


def _names(kind: str, id: str) -> tuple[str, str]:
    """Class and metric name of an expectation of ours."""
    words = f"{kind}_{id}".replace(".", "_")
    return "Expect" + "".join(word.capitalize() for word in words.split("_")), words


@cache
def _verdict_class(kind: str, id: str, protects: str) -> Any:
    """A column-map expectation over a column of verdicts."""
    from great_expectations.execution_engine import PandasExecutionEngine
    from great_expectations.expectations.expectation import ColumnMapExpectation
    from great_expectations.expectations.metrics import ColumnMapMetricProvider, column_condition_partial

    name, words = _names(kind, id)
    metric = f"column_values.{words}"

    @column_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def condition(cls: Any, column: Any, **_: Any) -> Any:
        return column == ""

    type(name + "Metric", (ColumnMapMetricProvider,), {"condition_metric_name": metric, "_pandas": condition})
    return type(
        name, (ColumnMapExpectation,), {"__doc__": protects, "__module__": __name__, "map_metric": metric}
    )


@cache
def _compare_class(kind: str, id: str, protects: str, test: Compare) -> Any:
    """A multi-column-map expectation that compares columns."""
    from great_expectations.execution_engine import PandasExecutionEngine
    from great_expectations.expectations.expectation import MulticolumnMapExpectation
    from great_expectations.expectations.metrics.map_metric_provider import (
        MulticolumnMapMetricProvider,
        multicolumn_condition_partial,
    )

    name, words = _names(kind, id)
    metric = f"multicolumn_values.{words}"

    @multicolumn_condition_partial(engine=PandasExecutionEngine)  # type: ignore[untyped-decorator]
    def condition(cls: Any, frame: Any, **_: Any) -> Any:
        return test(frame)

    type(
        name + "Metric",
        (MulticolumnMapMetricProvider,),
        {"condition_metric_name": metric, "_pandas": condition},
    )
    return type(
        name,
        (MulticolumnMapExpectation,),
        {"__doc__": protects, "__module__": __name__, "map_metric": metric},
    )
