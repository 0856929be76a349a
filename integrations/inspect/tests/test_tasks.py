"""End to end, beside a local dataset: rbtc build --profile bundled --out robustbench-tc"""

import inspect_ai
from rbtc_inspect import robustbench_tc


def test_a_clean_row_is_asked_and_scored() -> None:
    [log] = inspect_ai.eval(
        robustbench_tc("robustbench-tc", None, "clean", "prompt"), "mockllm/model", limit=1
    )
    assert log.status == "success" and log.results.completed_samples == 1
