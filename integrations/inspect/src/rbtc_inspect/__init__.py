from .tasks import robustbench_tc, robustbench_tc_live

__all__ = ["robustbench_tc", "robustbench_tc_live"]
