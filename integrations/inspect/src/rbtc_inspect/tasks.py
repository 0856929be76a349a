"""The benchmark with its datasets pinned."""

from inspect_ai import Task, task

from robustbench_tc.eval.adapters.inspect_task import benchmark

STATIC, STATIC_REVISION = "OWNER/robustbench-tc", "v1.3.0"
LIVE, LIVE_REVISION = "OWNER/robustbench-tc-live", "v1.1.0"


@task
def robustbench_tc(
    dataset: str = STATIC, revision: str | None = STATIC_REVISION, types: str = "", mode: str = "fc"
) -> Task:
    """Clean samples, each again under 22 perturbations of request, tools, prices and results."""
    return benchmark(dataset, types, mode=mode, revision=revision)


@task
def robustbench_tc_live(dataset: str = LIVE, revision: str | None = LIVE_REVISION, types: str = "") -> Task:
    """Episodes in simulated worlds whose tools fail in ways that are documented for real services."""
    return benchmark(dataset, types, revision=revision)
