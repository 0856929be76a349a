"""Every verb: the words behind `rbtc`, its function, and where `rbtc --help` lists it."""

from ..api import leaderboard
from ..api.auditing import audit
from ..api.building import build, build_live, build_training
from ..api.comparing import compare, gate
from ..api.drilling import drill
from ..api.evaluating import evaluate, probe
from ..api.exchanging import export, export_hub, export_requests, import_predictions
from ..api.fetching import fetch
from ..api.listing import (
    list_defences,
    list_faults,
    list_inspect,
    list_lm_eval,
    list_models,
    list_sources,
    list_types,
    list_verifiers,
)
from ..api.own import draft_cases, import_cases, init, lint, review_cases
from ..api.proxy import explain_plan, proxy, proxy_run
from ..api.releasing import amend, publish, release
from ..api.reporting import failures, report, summary
from ..api.scoring import score, sql
from ..api.showing import show
from ..api.starting import quickstart
from ..api.sweeping import sweep
from ..api.training import train_check
from ..api.verifying import diff, verify
from ..option import Verb
from ._asking import asking

START = (
    Verb(
        name="quickstart",
        function=quickstart,
        panel="Start",
        doing="building",
        kept="{out} contains only complete files; run it again",
        as_json=False,
    ),
    Verb(name="init", function=init, panel="Start"),
    Verb(name="lint", function=lint, panel="Start", behind_dashes="mcp_command"),
    Verb(name="probe", function=probe, panel="Start"),
)
"""quickstart, init, lint, probe."""

_NOTHING = "nothing was written to {out}; run the same command again"
_ANSWERS = (
    "nothing was written to {out}; answers of endpoints are kept in {store}; run the same command again"
)

BUILD = (
    Verb(
        name="build",
        function=build,
        panel="Build",
        doing="building",
        kept=_ANSWERS,
        behind_dashes="mcp_command",
    ),
    Verb(name="build live", function=build_live, panel="Build", doing="building", kept=_NOTHING),
    Verb(name="build toolrl-dr", function=build_training, panel="Build", doing="building", kept=_ANSWERS),
    Verb(name="cases import", function=import_cases, panel="Build", doing="importing", kept=_NOTHING),
    Verb(name="cases draft", function=draft_cases, panel="Build", doing="drafting", kept=_NOTHING),
    Verb(
        name="cases review",
        function=review_cases,
        panel="Build",
        kept="decisions are saved beside {cases}; run the same command again",
    ),
    Verb(name="list types", function=list_types, panel="Build"),
    Verb(name="list faults", function=list_faults, panel="Build"),
    Verb(name="list sources", function=list_sources, panel="Build"),
    Verb(name="list models", function=list_models, panel="Build"),
    Verb(name="list defences", function=list_defences, panel="Build"),
    Verb(name="list inspect", function=list_inspect, panel="Build", as_json=False),
    Verb(name="list lm-eval", function=list_lm_eval, panel="Build", as_json=False),
    Verb(name="list verifiers", function=list_verifiers, panel="Build", as_json=False),
    Verb(
        name="data fetch",
        function=fetch,
        panel="Build",
        doing="fetching",
        kept="downloads are kept, partial files too; run the same command again to resume",
    ),
    Verb(name="data diff", function=diff, panel="Build"),
    Verb(name="data amend", function=amend, panel="Build", doing="amending"),
)
"""build, build live, build toolrl-dr, cases …, list, data …."""

EVALUATE = (
    Verb(name="eval", function=evaluate, panel="Evaluate", rest="extra_body", around=asking),
    Verb(
        name="sweep",
        function=sweep,
        panel="Evaluate",
        doing="sweeping",
        kept="the server is stopped, and answers so far are kept in {out}; run the same command again "
        "to resume",
    ),
    Verb(name="export", function=export, panel="Evaluate", as_json=False),
    Verb(
        name="export hub",
        function=export_hub,
        panel="Evaluate",
        doing="exporting",
        kept="nothing was written to {out}; the same command finds a pull request that it has opened",
    ),
    Verb(name="export requests", function=export_requests, panel="Evaluate", as_json=False),
    Verb(name="import", function=import_predictions, panel="Evaluate", as_json=False),
    Verb(
        name="score",
        function=score,
        panel="Evaluate",
        doing="scoring",
        kept="the answers and earlier scores were not changed; score again",
    ),
    Verb(
        name="drill",
        function=drill,
        panel="Evaluate",
        doing="drilling",
        behind_dashes="mcp_command",
        kept="the server has ended, and what it wrote is not undone; a drill starts again from its "
        "first trial",
    ),
    Verb(
        name="proxy",
        function=proxy,
        panel="Evaluate",
        as_json=False,
        behind_dashes="server",
        kept="the door is closed; its journal is {journal}",
    ),
    Verb(
        name="proxy run",
        function=proxy_run,
        panel="Evaluate",
        doing="running the program",
        as_json=False,
        kept="{journal} is complete up to here; run the same command again",
    ),
    Verb(name="proxy explain", function=explain_plan, panel="Evaluate"),
)
"""eval, sweep, score, import, export …, drill, proxy …."""

ANSWERS = (
    Verb(name="summary", function=summary, panel="Answers"),
    Verb(
        name="report",
        function=report,
        panel="Answers",
        doing="counting",
        kept="the files in {out} are those of before; run the same command again",
    ),
    Verb(name="compare", function=compare, panel="Answers", doing="comparing"),
    Verb(name="failures", function=failures, panel="Answers"),
    Verb(name="gate", function=gate, panel="Answers"),
    Verb(name="sql", function=sql, panel="Answers"),
    Verb(name="show", function=show, panel="Answers", kept="stopped; nothing was saved"),
)
"""summary, report, compare, failures, show, sql, gate."""

RELEASE = (
    Verb(
        name="audit",
        function=audit,
        panel="Release",
        doing="auditing",
        kept="nothing was written to {folder}; answers of a live judge are kept in {store}; run it again",
    ),
    Verb(name="release", function=release, panel="Release", doing="releasing", kept=_NOTHING),
    Verb(
        name="publish",
        function=publish,
        panel="Release",
        doing="publishing",
        kept="the tag comes last, so no partial version exists; run the same command again to complete "
        "the upload",
    ),
    Verb(name="verify", function=verify, panel="Release", doing="verifying"),
)
"""audit, release, publish, verify."""

TRAIN = (Verb(name="train check", function=train_check, panel="Train", doing="checking"),)

BOARD = (
    Verb(name="leaderboard init", function=leaderboard.init, panel="Answers", as_json=False),
    Verb(
        name="leaderboard submit",
        function=leaderboard.submit,
        panel="Answers",
        kept="the same command finds what it has sent",
    ),
    Verb(
        name="leaderboard check",
        function=leaderboard.check,
        panel="Answers",
        kept="entries so far are kept; the same command goes on",
    ),
    Verb(
        name="leaderboard build",
        function=leaderboard.build,
        panel="Answers",
        kept="the files in {out} are those of before; run the same command again",
    ),
    Verb(name="leaderboard space", function=leaderboard.space, panel="Answers", as_json=False),
    Verb(
        name="leaderboard serve",
        function=leaderboard.serve,
        panel="Answers",
        as_json=False,
        kept="the server has stopped; runs and entries are kept in {place}",
    ),
    Verb(
        name="leaderboard verify",
        function=leaderboard.verify,
        panel="Answers",
        kept="answers so far are kept; the same command goes on",
    ),
)
"""leaderboard …."""

VERBS: tuple[Verb, ...] = (*START, *BUILD, *EVALUATE, *ANSWERS, *RELEASE, *TRAIN, *BOARD)
"""In the order of `rbtc --help`."""
