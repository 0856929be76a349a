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
    from ..eval.leaderboard.submit import Submitted
    from .auditing import audit
    from .building import build, build_live, build_training
    from .comparing import compare, gate
    from .drilling import drill
    from .evaluated import Evaluated
    from .evaluating import evaluate, probe
    from .exchanging import export, export_hub, export_requests, import_predictions
    from .fetching import fetch
    from .leaderboard import serve, submit
    from .listing import (
        list_defences,
        list_faults,
        list_inspect,
        list_lm_eval,
        list_models,
        list_sources,
        list_types,
        list_verifiers,
    )
    from .own import draft_cases, import_cases, init, lint, review_cases
    from .proxy import explain_plan, ground, proxied, proxy_run
    from .releasing import amend, publish, release
    from .reporting import failures, report, summary
    from .scoring import Scored, score, sql
    from .showing import show
    from .starting import Quickstart, quickstart
    from .sweeping import sweep
    from .training import train_check
    from .verifying import diff, verify

__all__ = [
    "Evaluated",
    "Quickstart",
    "Reply",
    "Scored",
    "Submitted",
    "Task",
    "UserError",
    "Workers",
    "amend",
    "audit",
    "build",
    "build_live",
    "build_training",
    "compare",
    "diff",
    "draft_cases",
    "drill",
    "evaluate",
    "explain_plan",
    "export",
    "export_hub",
    "export_requests",
    "failures",
    "fetch",
    "gate",
    "ground",
    "import_cases",
    "import_predictions",
    "init",
    "lint",
    "list_defences",
    "list_faults",
    "list_inspect",
    "list_lm_eval",
    "list_models",
    "list_sources",
    "list_types",
    "list_verifiers",
    "probe",
    "proxied",
    "proxy_run",
    "publish",
    "quickstart",
    "release",
    "report",
    "review_cases",
    "score",
    "serve",
    "show",
    "sql",
    "submit",
    "summary",
    "sweep",
    "train_check",
    "verify",
]
"""The verbs, and what they take and give; the rest of this package is for other modules of ours."""

_HOMES = {
    ".auditing": "audit",
    ".building": "build build_live build_training",
    ".comparing": "compare gate",
    ".drilling": "drill",
    ".evaluated": "Evaluated",
    ".evaluating": "evaluate probe",
    ".exchanging": "export export_hub export_requests import_predictions",
    ".fetching": "fetch",
    ".leaderboard": "serve submit",
    ".listing": "list_defences list_faults list_inspect list_lm_eval list_models list_sources list_types "
    "list_verifiers",
    ".own": "draft_cases import_cases init lint review_cases",
    ".proxy": "ground proxied proxy_run explain_plan",
    ".releasing": "amend publish release",
    ".scoring": "Scored score sql",
    ".showing": "show",
    ".reporting": "failures report summary",
    ".starting": "Quickstart quickstart",
    ".sweeping": "sweep",
    ".training": "train_check",
    ".verifying": "diff verify",
    "..compute.parallel": "Workers",
    "..errors": "UserError",
    "..eval.callables.task": "Reply Task",
    "..eval.leaderboard.submit": "Submitted",
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
