"""Can a training set teach to read prices? What rules that read nothing would earn on its priced rows.

    python -m robustbench_tc.train_recipes.prices toolrl-dr [toolrl-dr-balanced …]

A row is priced where its registry offers the golden tool's function twice. A rule answers it rightly where it
picks the golden name among these offers. One that reads nothing and is always right is what may be learnt.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from robustbench_tc.errors import UserError

from .dataset import locate, read_rows

Offers = Mapping[str, float]

RULES: dict[str, Callable[[Offers], str]] = {
    "shorter name": lambda offers: min(offers, key=len),
    "listed first": lambda offers: next(iter(offers)),
    "best offer": lambda offers: min(offers, key=lambda name: offers[name]),
}
"""Of the offers of one function (name → dollars or milliseconds, in the registry's order) the one to call."""


class Priced(NamedTuple):
    """The golden tool's offers in a row."""

    gold: str
    offers: Offers


def priced(shards: Sequence[Path]) -> tuple[list[Priced], int]:
    """The priced rows, and how many rows there are."""
    found, rows = [], 0
    for row in read_rows(shards, ["reward_model", "extra_info"]):
        rows += 1
        calls = row["reward_model"]["ground_truth"].partition("<tool_call>\n")[2].partition("\n")[0]
        if calls:
            name = json.loads(calls)["name"]
            groups = row["extra_info"].get("offers") or ()
            found += [Priced(name, group) for group in groups if name in group and len(group) > 1]
    return found, rows


def shares(found: Sequence[Priced]) -> dict[str, float]:
    """Rule → share of the priced rows that it answers rightly."""
    return {
        name: sum(rule(one.offers) == one.gold for one in found) / len(found) for name, rule in RULES.items()
    }


def table(datasets: Sequence[str], configs: Sequence[str] = ("full", "mixed")) -> str:
    """A line for each dataset and config, as Markdown."""
    lines = ["| data | priced of all rows | " + " | ".join(RULES) + " |", "|---|---:|" + "---:|" * len(RULES)]
    for dataset in datasets:
        for config in configs:
            found, rows = priced(locate(dataset, config).train)
            values = [f"{share:.3f}" for share in shares(found).values()] if found else ["–"] * len(RULES)
            lines.append(
                f"| {Path(dataset).name}, {config} | {len(found)} of {rows} | {' | '.join(values)} |"
            )
    return "\n".join(lines)


def main(words: Sequence[str]) -> None:
    """The command line."""
    if not words or words[0].startswith("-"):
        raise UserError("usage: python -m robustbench_tc.train_recipes.prices DATASET [DATASET …]")
    sys.stdout.write(table(words) + "\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(str(error))
