"""What the command line does, as functions: a verb of `rbtc` here takes what the command takes.

`build`, `audit`, `release`, `publish`, `evaluate`, `score`, `report`, `compare` and `serve` print nothing and
end no process: they return what was made, tell how far they are to a function that they are given, and raise
`UserError` with one line for whatever the caller can put right.

This is also the one package that knows all rooms: what one room needs of another is handed over here, as a
function.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..compute.parallel import Workers
    from ..errors import UserError
    from ..eval.callables.task import Reply, Task
    from ..eval.evaluate import Evaluated, evaluate
    from ..eval.leaderboard.entry import Submission
    from ..eval.leaderboard.space import serve
    from ..eval.leaderboard.submit import Submitted, submit
    from ..eval.live.after import score_live, show_episode
    from ..eval.live.evaluate import Played, run_live
    from ..eval.report.live import report_live
    from ..eval.verdicts import score
    from ..release.publish import Published, publish
    from .amending import Amended, amend
    from .auditing import audit, audit_predictions
    from .building import build, build_training
    from .comparing import compare, compare_with_paper, defences, gate
    from .live import build_live, live_defences
    from .own import draft_cases, import_cases, init, lint
    from .proxy import ground, proxy_llm, proxy_run, score_journal, summarise_journal
    from .releasing import release
    from .reporting import report
    from .starting import Quickstart, quickstart

__all__ = [
    "Amended",
    "Evaluated",
    "Played",
    "Published",
    "Quickstart",
    "Reply",
    "Submission",
    "Submitted",
    "Task",
    "UserError",
    "Workers",
    "amend",
    "audit",
    "audit_predictions",
    "build",
    "build_live",
    "build_training",
    "compare",
    "compare_with_paper",
    "defences",
    "draft_cases",
    "evaluate",
    "gate",
    "ground",
    "import_cases",
    "init",
    "lint",
    "live_defences",
    "probe",
    "proxy_llm",
    "proxy_run",
    "publish",
    "quickstart",
    "release",
    "report",
    "report_live",
    "run_live",
    "score",
    "score_journal",
    "score_live",
    "serve",
    "show_episode",
    "submit",
    "summarise_journal",
]
"""The verbs, and what they take and give; the rest of this package is for other modules of ours."""

_HOMES = {
    ".amending": "Amended amend",
    ".auditing": "audit audit_predictions",
    ".building": "build build_training",
    ".comparing": "compare compare_with_paper defences gate",
    ".live": "build_live live_defences",
    ".own": "draft_cases import_cases init lint",
    ".probing": "probe",
    ".proxy": "ground proxy_llm proxy_run score_journal summarise_journal",
    ".releasing": "release",
    ".reporting": "report",
    ".starting": "Quickstart quickstart",
    "..compute.parallel": "Workers",
    "..errors": "UserError",
    "..eval.callables.task": "Reply Task",
    "..eval.evaluate": "Evaluated evaluate",
    "..eval.leaderboard.space": "serve",
    "..eval.leaderboard.entry": "Submission",
    "..eval.leaderboard.submit": "Submitted submit",
    "..eval.live.after": "score_live show_episode",
    "..eval.live.evaluate": "Played run_live",
    "..eval.live.report": "report_live",
    "..eval.verdicts": "score",
    "..release.publish": "Published publish",
}
"""Modules, each with the names of `__all__` that it holds. They are imported when a name is first asked for:
no verb waits for the rooms of the others."""


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            found = globals()[name] = getattr(import_module(home, __name__), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
