"""Prints the table of docs/defences.md: `scripts/defence_table.py DATASET`."""

import sys

from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.defend.reference import table

if len(sys.argv) != 2:
    sys.exit("usage: scripts/defence_table.py DATASET")
try:
    print(table(inputs.load(sys.argv[1])))  # noqa: T201
except UserError as error:
    sys.exit(str(error))
