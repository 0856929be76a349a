"""Every verb: the words behind `rbtc`, its function, and where `rbtc --help` lists it."""

from ..api.comparing import compare, gate
from ..api.reporting import failures, summary
from ..option import Verb

START = ()
"""quickstart, init, lint, probe."""

BUILD = ()
"""build, build live, build toolrl-dr, cases …, list, data …."""

EVALUATE = ()
"""eval, score, import, export, proxy …, live …."""

ANSWERS = (
    Verb(name="summary", function=summary, panel="Answers"),
    Verb(name="compare", function=compare, panel="Answers", doing="comparing"),
    Verb(name="failures", function=failures, panel="Answers"),
    Verb(name="gate", function=gate, panel="Answers"),
)
"""summary, report, compare, failures, show, sql, gate."""

RELEASE = ()
"""audit, release, publish, verify."""

TRAIN = ()

BOARD = ()
"""leaderboard …."""

VERBS: tuple[Verb, ...] = (*START, *BUILD, *EVALUATE, *ANSWERS, *RELEASE, *TRAIN, *BOARD)
"""In the order of `rbtc --help`."""
