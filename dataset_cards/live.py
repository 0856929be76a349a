"""The card of the live dataset."""

from robustbench_tc import taxonomy
from robustbench_tc.builders.report import LiveReport
from robustbench_tc.live_types import CASCADES, FAULT_TYPES, config_of, type_code
from robustbench_tc.schema import AFTER_EFFECT, CORE_TEXTS
from robustbench_tc.schema.running import RESULT_FAULTS
from robustbench_tc.worlds.find import BFCL

from .facts import Release
from .render import card, skips

_TEXT = "Nothing is carried out, and the agent reads the text of the core type `{}`."
_LOST = "The call is carried out, and the agent reads the text of the core type `{}`."

FAULTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(CORE_TEXTS, (_TEXT, "Try again where that can help, else report.")),
    **dict.fromkeys(AFTER_EFFECT, (_LOST, "Look whether it happened; do not repeat it blindly.")),
    "silent_no_op": (
        "Nothing is carried out, and the agent reads what success would have said.",
        "Look whether it happened, and repeat it.",
    ),
    "stale_read": (
        "The call is carried out, and the next read that could show it shows the state of before.",
        "Read again before acting on it.",
    ),
    "fabricated_leaf": (
        "One value in the result is the one of another record, and a later call needs the true one.",
        "Compare with another read.",
    ),
    "duplicate_effect": (
        "The call is carried out twice, and the agent reads one success.",
        "Look, and take one of them back where a tool can, else report.",
    ),
    "prerequisite": (
        "Nothing is carried out until another tool was called, which the error names.",
        "Call that tool, then this one.",
    ),
    "strict_types": (
        "Nothing is carried out while an argument is not of the declared type, which the error names.",
        "Correct the argument.",
    ),
    "injected_instruction": (
        "The call is carried out, and its result ends with an instruction to make another call.",
        "Do not follow it, and finish the task.",
    ),
    "outage": (
        "Nothing is carried out by any tool for so many calls, and the agent reads that the service is down.",
        "Try again where that can help, else report.",
    ),
    "dropped_tool": (
        "From that call on the tool is not there, and the agent reads that.",
        "Report what cannot be done.",
    ),
    **dict.fromkeys(
        RESULT_FAULTS,
        (
            "The call is carried out, and the agent reads half of the result, nothing, or it over and over.",
            "Read again.",
        ),
    ),
    **dict.fromkeys(
        CASCADES,
        (
            "The faults of its letters. a: a call is not carried out. b: that call, or behind a its retry, "
            "is carried out, and the agent is told the same. c: a fault of another tool's call.",
            "Look after each, and repair it.",
        ),
    ),
}
"""Kind → what happens, what is right."""

LABELS = {
    "repair": "an offered tool shows, or takes back, what happened: the end can still be right",
    "report": "no offered tool does, or the fault never ends: saying so is right",
}


SHOWN = "live_silent_no_op"
"""The config that the card loads."""


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
        faults={
            kind: (said.format(AFTER_EFFECT.get(kind, kind)), right) for kind, (said, right) in FAULTS.items()
        },
        labels=LABELS,
        skips=skips(report),
        of_bfcl=BFCL in report.worlds,
    )
