"""`eval.yaml` has the fields of the Hub's page *Evaluation Results* (hub docs, docs/hub/eval-results.md of
2026-08-22, read on 2026-11-27). inspect_ai's own model of it: tests/eval/adapters/test_inspect.py."""

import msgspec
import yaml

from robustbench_tc import taxonomy
from robustbench_tc.builders.configs import CONFIGS, TABLES
from robustbench_tc.dataset_cards.eval_yaml import eval_yaml
from robustbench_tc.schema import PublishedSample

OF_A_BENCHMARK = {"name", "description", "evaluation_framework", "tasks"}
OF_A_TASK = {"id", "config", "split"}
OF_INSPECT_AI = {"field_spec", "solvers", "scorers"}
"""The page's list calls the last `scores`; its example and inspect_ai call it `scorers`."""


def test_it_has_the_fields_of_the_page_and_no_other() -> None:
    data = eval_yaml("RobustBench-TC", "Tool calling", (*CONFIGS, *TABLES))
    found = yaml.safe_load(data)
    assert set(found) == OF_A_BENCHMARK and found["evaluation_framework"] == "inspect-ai"
    assert (found["name"], found["description"]) == ("RobustBench-TC", "Tool calling")
    tasks = found["tasks"]
    assert [task["id"] for task in tasks] == ["clean", "perturbed", *taxonomy.COMPONENTS]
    for task in tasks:
        assert set(task) == OF_A_TASK | OF_INSPECT_AI
        assert task["config"] == task["id"] and task["split"] == "test"
        spec = task["field_spec"]
        columns = {spec["input"], spec["target"], *spec["metadata"]}
        assert columns <= set(PublishedSample.__struct_fields__)
        assert all(set(one) <= {"name", "args"} for one in task["solvers"] + task["scorers"])
    assert data == msgspec.yaml.encode(found) and b"&id" not in data


def test_a_component_without_rows_has_no_task() -> None:
    found = yaml.safe_load(eval_yaml("x", "y", ("clean", "CD_AB", "language_de", "taxonomy")))
    assert [task["id"] for task in found["tasks"]] == ["clean", "perturbed", "reward"]
