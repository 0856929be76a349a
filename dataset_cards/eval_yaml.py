"""`eval.yaml`: the release as a benchmark on the Hub, where models have a leaderboard for each of its tasks.

The form is the Hub's (its page *Evaluation Results*) and inspect_ai's, which runs the tasks as
`inspect eval hf/ORG/NAME`. That asks in other words than `rbtc eval` and scores otherwise: docs/harnesses.md.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from robustbench_tc.builders.configs import combined
from robustbench_tc.taxonomy import CLEAN

NAME = "eval.yaml"

ASKED = (
    "Answer with the calls that the user needs and with nothing else. Write a call as in Python, with every "
    "argument named: name(argument='value', other=2). Separate calls by '; '. The tools, as a JSON list with "
    "the JSON Schema of their arguments:\n{tools}"
)
"""The tools cannot be given as tools: nothing in `eval.yaml` reads them from a column."""


def eval_yaml(name: str, description: str, configs: Collection[str]) -> bytes:
    """A task for the clean rows, for all perturbed ones and for each component, called as its config.

    `configs`: those that the release has files of.
    """
    asked: dict[str, Any] = {
        "split": "test",
        "field_spec": {
            "input": "messages",
            "target": "gold_call",
            "metadata": ["id", "clean_id", "type_code", "tools"],
        },
        "solvers": [{"name": "system_message", "args": {"template": ASKED}}, {"name": "generate"}],
        # Letter by letter: a looser matcher takes any reply where no call is right (an empty target).
        "scorers": [{"name": "match", "args": {"location": "exact", "ignore_case": False}}],
    }
    return msgspec.yaml.encode(
        {
            "name": name,
            "description": description,
            "evaluation_framework": "inspect-ai",
            "tasks": [{"id": task, "config": task, **asked} for task in (CLEAN, *combined(configs))],
        }
    )
