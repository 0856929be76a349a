"""Every verb: the words behind `rbtc`, its function, and where `rbtc --help` lists it."""

from ..api.comparing import gate
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
)
"""eval, score, import, export, proxy …, live …."""

ANSWERS = (
    Verb(name="gate", function=gate, panel="Answers"),
    Verb(name="sql", function=sql, panel="Answers"),
)
"""summary, report, compare, failures, show, sql, gate."""

RELEASE = (Verb(name="verify", function=verify, panel="Release", doing="verifying"),)
"""audit, release, publish, verify."""

TRAIN = ()

BOARD = ()
"""leaderboard …."""

VERBS: tuple[Verb, ...] = (*START, *BUILD, *EVALUATE, *ANSWERS, *RELEASE, *TRAIN, *BOARD)
"""In the order of `rbtc --help`."""
