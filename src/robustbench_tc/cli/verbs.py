"""Every verb: the words behind `rbtc`, its function, and where `rbtc --help` lists it."""

from ..api import leaderboard
from ..api.comparing import gate
from ..api.proxy import proxy, proxy_run, summarise_journal
from ..api.reporting import failures, summary
from ..api.scoring import score, sql
from ..api.verifying import diff, verify
from ..option import Verb

START = ()
"""quickstart, init, lint, probe."""

BUILD = (Verb(name="data diff", function=diff, panel="Build"),)
"""build, build live, build toolrl-dr, cases …, list, data …."""

EVALUATE = (
    Verb(
        name="score",
        function=score,
        panel="Evaluate",
        doing="scoring",
        kept="what it was given was not touched, nor earlier scores; score again",
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
        kept="{journal} is whole, run the same command again",
    ),
    Verb(name="proxy explain", function=summarise_journal, panel="Evaluate"),
)
"""eval, score, import, export, proxy …, live …."""

ANSWERS = (
    Verb(name="summary", function=summary, panel="Answers"),
    Verb(name="failures", function=failures, panel="Answers"),
    Verb(name="gate", function=gate, panel="Answers"),
    Verb(name="sql", function=sql, panel="Answers"),
)
"""summary, report, compare, failures, show, sql, gate."""

RELEASE = (Verb(name="verify", function=verify, panel="Release", doing="verifying"),)
"""audit, release, publish, verify."""

TRAIN = ()

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
