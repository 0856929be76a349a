"""Every verb: the words behind `rbtc`, its function, and where `rbtc --help` lists it."""

from ..api.comparing import gate
from ..api.evaluating import evaluate, probe
from ..api.exchanging import export, import_predictions
from ..api.playing import report_live, run_live, score_live, summary_live
from ..api.reporting import failures, summary
from ..api.showing import show
from ..option import Verb
from ._asking import asking

START = (Verb(name="probe", function=probe, panel="Start"),)
"""quickstart, init, lint, probe."""

BUILD = ()
"""build, build live, build toolrl-dr, cases …, list, data …."""

EVALUATE = (
    Verb(name="eval", function=evaluate, panel="Evaluate", rest="extra_body", around=asking),
    Verb(name="export", function=export, panel="Evaluate", as_json=False),
    Verb(name="import", function=import_predictions, panel="Evaluate", as_json=False),
    Verb(
        name="live run", function=run_live, panel="Evaluate", rest="extra_body", around=asking,
    ),
    Verb(
        name="live score", function=score_live, panel="Evaluate",
        kept="the scores were not written; run the same command again",
    ),
    Verb(name="live summary", function=summary_live, panel="Evaluate"),
    Verb(
        name="live report", function=report_live, panel="Evaluate", doing="replaying", as_json=False,
        kept="the files in {out} are those of before; run it again",
    ),
)  # fmt: skip
"""eval, score, import, export, proxy …, live …."""

ANSWERS = (
    Verb(name="summary", function=summary, panel="Answers"),
    Verb(name="failures", function=failures, panel="Answers"),
    Verb(name="gate", function=gate, panel="Answers"),
    Verb(name="show", function=show, panel="Answers", kept="stopped; nothing was kept"),
)
"""summary, report, compare, failures, show, sql, gate."""

RELEASE = ()
"""audit, release, publish, verify."""

TRAIN = ()

BOARD = ()
"""leaderboard …."""

VERBS: tuple[Verb, ...] = (*START, *BUILD, *EVALUATE, *ANSWERS, *RELEASE, *TRAIN, *BOARD)
"""In the order of `rbtc --help`."""
