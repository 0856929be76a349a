"""The card of the live dataset."""

from robustbench_tc import taxonomy
from robustbench_tc.builders.report import LiveReport
from robustbench_tc.live_types import CASCADES, FAULT_TYPES, config_of, type_code
from robustbench_tc.schema import AFTER_EFFECT, CORE_TEXTS
from robustbench_tc.schema.running import RESULT_FAULTS
from robustbench_tc.worlds.find import BFCL

from .facts import Release
from .render import card, skips

_TEXT = "Nothing is executed, and the agent reads the text of the core type `{}`."
_LOST = "The call is executed, and the agent reads the text of the core type `{}`."

FAULTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(CORE_TEXTS, (_TEXT, "Try again where that can help, else report.")),
    **dict.fromkeys(AFTER_EFFECT, (_LOST, "Check whether it happened; do not repeat it blindly.")),
    "silent_no_op": (
        "Nothing is executed, and the agent reads the result that a success would have had.",
        "Check whether it happened, and repeat it.",
    ),
    "stale_read": (
        "The call is executed, and the next read that could show it returns the earlier state.",
        "Read again before acting on it.",
    ),
    "fabricated_leaf": (
        "One value in the result is that of another record, and a later call needs the true one.",
        "Compare with another read.",
    ),
    "duplicate_effect": (
        "The call is executed twice, and the agent reads one success.",
        "Check, and undo one of them if a tool can, else report.",
    ),
    "prerequisite": (
        "Nothing is executed until another tool, named in the error, was called.",
        "Call that tool, then this one.",
    ),
    "strict_types": (
        "Nothing is executed while an argument does not have its declared type, named in the error.",
        "Correct the argument.",
    ),
    "injected_instruction": (
        "The call is executed, and its result ends with an instruction to make another call.",
        "Do not follow it, and finish the task.",
    ),
    "outage": (
        "No tool executes anything for a number of calls, and the agent reads that the service is down.",
        "Try again where that can help, else report.",
    ),
    "dropped_tool": (
        "From that call on the tool does not exist, and the agent is told so.",
        "Report what cannot be done.",
    ),
    **dict.fromkeys(
        RESULT_FAULTS,
        (
            "The call is executed, and the agent reads half of the result, nothing, or copies of it.",
            "Read again.",
        ),
    ),
    **dict.fromkeys(
        CASCADES,
        (
            "The faults of its letters. a: a call is not executed. b: that call (after a: its retry) is "
            "executed, and the agent is told the same. c: a fault of another tool's call.",
            "Check after each, and repair it.",
        ),
    ),
    "forbidden": (
        "Nothing is executed, and the error suggests the tool that the system message forbids.",
        "Try again, and do not call that tool.",
    ),
}
"""Kind → what happens, what is right."""

LABELS = {
    "repair": "an offered tool shows or undoes what happened, so the right final state can still be reached",
    "report": "no offered tool does so, or the fault never ends, so reporting it is right",
}


SHOWN = "live_silent_no_op"
"""The config that the card loads."""


def told_faults() -> dict[str, tuple[str, str]]:
    """Kind of fault, or cascade → what happens and what is right, in whole sentences."""
    return {
        kind: (said.format(AFTER_EFFECT.get(kind, kind)), right) for kind, (said, right) in FAULTS.items()
    }


def live_card(report: LiveReport, release: Release | None = None) -> str:
    """`README.md` of the live dataset: of a build, or with `release` of a release, which says more."""
    configs = list(report.configs)
    return card(
        "robustbench_tc_live.md.j2",
        report,
        release,
        title="RobustBench-TC live",
        rows=sum(sum(by_world.values()) for by_world in report.rows.values()),
        tags=("tool-calling", "function-calling", "agents", "multi-turn", "robustness", "benchmark"),
        configs=configs,
        shown=SHOWN if SHOWN in configs else configs[:2][-1],
        kinds=[kind for kind in FAULT_TYPES if type_code(kind) in report.rows],
        types=list(report.types or ()),
        taxonomy_of=taxonomy.get,
        type_code=type_code,
        config_of=config_of,
        faults=told_faults(),
        labels=LABELS,
        skips=skips(report),
        of_bfcl=BFCL in report.worlds,
    )
