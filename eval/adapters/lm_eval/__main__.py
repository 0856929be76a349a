"""Prints the folder for lm-eval's `--include_path`."""

import sys
from pathlib import Path

sys.stdout.write(f"{Path(__file__).resolve().parent}\n")
