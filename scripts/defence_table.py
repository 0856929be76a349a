"""Prints a table of docs/defences.md: `scripts/defence_table.py DATASET`, of the benchmark or a live one."""

import sys
from pathlib import Path

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.defend import reference
from robustbench_tc.eval.live import defence_table, inputs as live_inputs

if len(sys.argv) != 2:
    sys.exit("usage: scripts/defence_table.py DATASET")
name = sys.argv[1]
try:
    if (Path(name) / schema.TASKS).is_dir():
        print(defence_table.table(live_inputs.load(name)))  # noqa: T201
    else:
        print(reference.table(inputs.load(name)))  # noqa: T201
except UserError as error:
    sys.exit(str(error))
