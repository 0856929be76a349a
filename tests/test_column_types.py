"""Columns stated once are the same for Arrow and for `datasets`, and Arrow's need no `datasets`."""

import subprocess
import sys

import pytest

from robustbench_tc import live
from robustbench_tc.builders.configs import CONFIGS, TABLES, columns_of
from robustbench_tc.column_types import ColumnTypes, arrow_schema, features, in_struct
from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.schema import fine_tuning_columns, prediction_columns, training_columns

EVERY: dict[str, ColumnTypes] = {
    **{config: columns_of(config) for config in (CONFIGS[0], *TABLES)},
    "live": in_struct(live.LiveRow),
    "live scores": in_struct(LiveScore),
    "predictions": prediction_columns(scored=True),
    "training": training_columns(),
    "conversations": fine_tuning_columns(),
    "nested": {
        "turns": [{"role": "string", "content": "string"}],
        "facts": {"right": "bool", "score": "float64", "places": ["int32"]},
        "anything": "json",
        "n": "int64",
    },
}


@pytest.mark.parametrize("columns", EVERY.values(), ids=EVERY)
def test_both_say_the_same_to_the_byte(columns: ColumnTypes) -> None:
    assert arrow_schema(columns).equals(features(columns).arrow_schema, check_metadata=True)
    assert arrow_schema(columns).metadata == features(columns).arrow_schema.metadata


def test_a_build_and_the_reading_of_a_run_import_no_datasets() -> None:
    """A second at every start, for a schema; who reads a run does without pandas too."""
    code = (
        "import sys; from robustbench_tc import api, column_types, schema; "
        "from robustbench_tc.builders import build; from robustbench_tc.builders.live import build as live; "
        "from robustbench_tc.eval.stats import runs; from robustbench_tc.eval.live import score; "
        "column_types.arrow_schema(schema.sample_columns()); "
        "print([m for m in ('datasets', 'pandas', 'duckdb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
