"""The gate inside pytest: `pytest --rbtc DATASET --rbtc-callable agent:answer` adds a test per component.

Does nothing, and imports nothing, unless `--rbtc` is given.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .eval.stats.gate import Line, Verdict

_OPTIONS = (
    ("--rbtc-callable", "MODULE:FUNCTION", "the agent: a Python function of one task"),
    ("--rbtc-command", "'PROGRAM ARG…'", "the agent: a program"),
    ("--rbtc-agent", "NAME", "a reference agent"),
    ("--rbtc-model", "MODEL", "a model of an OpenAI-compatible server"),
    ("--rbtc-base-url", "URL", "where the model is asked"),
    ("--rbtc-out", "RUN", "run folder, where the same tests go on; after a code change name a new one"),
    ("--rbtc-against", "BASE", "a scored run or a saved baseline; default: its own clean rows"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, none of which does anything without `--rbtc`."""
    group = parser.getgroup("rbtc", "robustness of a tool-calling agent")
    group.addoption("--rbtc", metavar="DATASET", help="evaluate an agent on this dataset and gate the run")
    for name, metavar, text in _OPTIONS:
        group.addoption(name, metavar=metavar, help=text)
    group.addoption("--rbtc-max-drop", type=float, default=0.05, help="largest drop that passes (0.05)")
    group.addoption("--rbtc-limit", type=int, help="at most so many rows")
    allow = "--rbtc-allow-inconclusive"
    group.addoption(allow, action="store_true", help="skip a component with too few cases to tell")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[Any]) -> None:
    """Adds the gate's tests behind all others."""
    if config.getoption("--rbtc") is None:
        return
    from . import taxonomy

    lines = [*taxonomy.COMPONENTS, *([taxonomy.CLEAN] if config.getoption("--rbtc-against") else [])]
    gate = _Gate.from_parent(session, name="rbtc")
    items.extend(_Component.from_parent(gate, name=name) for name in lines)


class _Gate(pytest.Collector):
    """One run, evaluated when its first test asks for it."""

    _verdict: "Verdict | Exception | None" = None

    def collect(self) -> Iterable[pytest.Item]:
        return ()

    def line(self, name: str) -> "Line | None":
        """The gate's line of a component; None where the run has no row of it."""
        if self._verdict is None:
            try:
                self._verdict = self._judged()
            except Exception as error:  # every test says it: none of them can be judged
                self._verdict = error
        if isinstance(self._verdict, Exception):
            raise self._verdict
        if self._verdict.faults:
            raise _Dropped(self._verdict.faults[0])
        return next((line for line in self._verdict.lines if line.name == name), None)

    def _judged(self) -> "Verdict":
        from . import api
        from .errors import UserError

        option = self.config.getoption
        agents = ("--rbtc-callable", "--rbtc-command", "--rbtc-agent", "--rbtc-model")
        if not any(map(option, agents)):
            raise UserError(f"no agent to ask: name one with {', '.join(agents[:3])} or {agents[3]}")
        run = api.evaluate(
            option("--rbtc"),
            callable=option("--rbtc-callable"),
            command=option("--rbtc-command"),
            agent=option("--rbtc-agent"),
            model=option("--rbtc-model"),
            base_url=option("--rbtc-base-url") or (),
            limit=option("--rbtc-limit"),
            out=option("--rbtc-out"),
        )
        return api.gate(run.folder.path, option("--rbtc-against"), max_drop=option("--rbtc-max-drop"))


class _Component(pytest.Item):
    def runtest(self) -> None:
        from .eval.stats.gate_forms import describe

        assert isinstance(self.parent, _Gate)
        line = self.parent.line(self.name)
        if line is None:
            pytest.skip(f"the run has no pair of rows for {self.name}")
        if line.outcome == "inconclusive" and self.config.getoption("--rbtc-allow-inconclusive"):
            pytest.skip(describe(line))
        if line.outcome != "pass":
            raise _Dropped(describe(line))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A line for what the gate found, and for what a user can put right."""
        from .errors import UserError

        if isinstance(excinfo.value, _Dropped | UserError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[str, None, str]:
        return str(self.config.getoption("--rbtc")), None, f"rbtc gate: {self.name}"


class _Dropped(Exception):
    """A component that does not pass."""
