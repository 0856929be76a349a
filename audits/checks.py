"""The table of checks: what must hold before anything is released, of rows of any kind.

A check is a function that asserts. What it protects is its docstring, what is wrong with a row is the message
of the assertion that the row does not meet, and the row is what it is given: a benchmark's row beside its
clean row, a live row, a training row, a prediction, or what is known of a config or a column.

    @check("benchmark_rows", for_=of("registry"))
    def my_rule(row: Sample, clean: Sample) -> None:
        \"\"\"One sentence: what would go wrong without it.\"\"\"
        assert …, "what is wrong, without quoting the row"

Each suite of Great Expectations is made from its part of the table (`expectations/gx.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

if not __debug__:
    raise RuntimeError("the gate's checks are assertions, which python -O leaves out: run it without -O")

Suite: TypeAlias = Literal[
    "benchmark_columns",
    "benchmark_configs",
    "benchmark_rows",
    "benchmark_texts",
    "live_columns",
    "live_configs",
    "live_rows",
    "live_replay",
    "training_columns",
    "training_configs",
    "training_rows",
    "prediction_columns",
    "predictions",
]
"""What a check is held against; the name of the suite too."""

Verdict: TypeAlias = str | None
"""None: does not apply to this row. "": holds. Anything else: what is wrong."""

HOLDS = ""
"""The verdict on a row that is as it should be."""

MET = "holds"
"""How a suite's column of verdicts says it."""

For: TypeAlias = Callable[[Any], bool]
"""Whether a check is for the rows of a kind: the type of a benchmark's row (None: a clean one), a live
row."""


class DoesNotApply(Exception):
    """The check is not about this row."""


def every(kind: object) -> bool:
    """For all rows."""
    return True


def by_itself(kind: object) -> bool:
    """For all rows of the benchmark, also those without a clean row: such a check is given what was read."""
    return True


class Rule(NamedTuple):
    """One check: a function, a column of verdicts, an expectation over it."""

    suite: Suite
    id: str
    """`group.name`: what a report and a waiver name."""
    protects: str
    """One sentence: what would go wrong without it."""
    for_: For = every
    holds: Callable[..., object] | None = None
    """Asserts; None where a whole pass gives the verdict, or Great Expectations does."""
    expectation: str = "ExpectColumnValuesToBeInSet"
    """The class of Great Expectations."""
    arguments: Mapping[str, Any] = MappingProxyType({})

    @property
    def name(self) -> str:
        """Of the check in its suite, and of its column."""
        return self.id.partition(".")[2]

    @property
    def shown(self) -> Mapping[str, Any]:
        """The expectation's arguments."""
        return self.arguments or {"column": self.name, "value_set": [MET]}

    @property
    def is_native(self) -> bool:
        """Whether Great Expectations looks at plain columns, instead of at verdicts."""
        return bool(self.arguments)

    def verdict(self, *row: object) -> Verdict:
        """What it says of a row; a row so odd that the question cannot be asked fails it."""
        assert self.holds is not None
        return verdict(self.holds, *row)


def verdict(holds: Callable[..., object], *row: object) -> Verdict:
    """What an asserting function says of a row."""
    try:
        holds(*row)
    except DoesNotApply:
        return None
    except AssertionError as problem:
        # pytest, of which this package has a plugin, adds what was compared.
        return str(problem).partition("\nassert ")[0] or "it does not hold"
    except Exception as error:  # rows of any shape: it fails the check, not the audit
        return f"it could not be checked: {type(error).__name__}: {str(error)[:120]}"
    return HOLDS


TABLE: dict[tuple[Suite, str], Rule] = {}
"""By suite and name, in the order of their modules."""

F = TypeVar("F", bound=Callable[..., object])


def check(suite: Suite, group: str = "rows", why: str = "", *, for_: For = every) -> Callable[[F], F]:
    """Decorator: registers an asserting function under its name, for the rows that `for_` says. `why`: its
    docstring, unless the function stands for several suites."""

    def add(holds: F) -> F:
        protects = why or " ".join((holds.__doc__ or "").split())
        _add(Rule(suite, f"{group}.{holds.__name__.rstrip('_')}", protects, for_, holds))
        return holds

    return add


def given(suite: Suite, group: str, protects: Mapping[str, str], *, for_: For = every) -> None:
    """Registers checks whose verdicts a pass over the rows gives, several at once."""
    for name, sentence in protects.items():
        _add(Rule(suite, f"{group}.{name}", sentence, for_))


def native(suite: Suite, id: str, protects: str, expectation: str, **arguments: Any) -> None:
    """Registers an expectation of Great Expectations about plain columns, by its class name."""
    _add(Rule(suite, id, protects, expectation=expectation, arguments=arguments))


def _add(rule: Rule) -> None:
    if not rule.protects or (rule.suite, rule.name) in TABLE:
        raise ValueError(f"{rule.id}: a check has one name and one sentence")
    TABLE[rule.suite, rule.name] = rule


def rules(suite: Suite) -> list[Rule]:
    """The checks of a suite."""
    return [rule for (its_suite, _), rule in TABLE.items() if its_suite == suite]


def verdicts(suite: Suite, *row: Any, kind: Any = None) -> dict[str, Verdict]:
    """What the suite's functions for rows of this kind say of a row, by name."""
    return {rule.name: rule.verdict(*row) for rule in rules(suite) if rule.holds and rule.for_(kind)}


def verdicts_of(
    names: Iterable[str], look: Callable[..., Mapping[str, Verdict]], *row: Any
) -> Mapping[str, Verdict]:
    """What one look says of a row, by check; a row that cannot be looked at fails each of `names`."""
    try:
        return look(*row)
    except Exception as error:  # rows of any shape: it fails the check, not the audit
        return dict.fromkeys(names, f"it could not be checked: {type(error).__name__}")


def columns(rows: Sequence[Mapping[str, Any]], plain: Sequence[str], *suites: Suite) -> dict[str, list[Any]]:
    """Rows as columns, the `plain` ones and one of verdicts per check. What a row lacks does not apply."""
    names = [*plain, *(rule.name for suite in suites for rule in rules(suite) if not rule.is_native)]
    return {name: [row.get(name) for row in rows] for name in names}
