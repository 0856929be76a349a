"""Defences: remedies between a run's rows and its model (`rbtc eval --defend`); docs/defences.md.

Who adds one writes a class (`base.Defence`) and lists it here.
"""

from collections.abc import Sequence

from robustbench_tc.errors import UserError, unknown

from .again import Retry, Schema, Strict, Vote
from .base import Defence
from .chain import budget
from .texts import Clarify, Hint, Spotlight
from .tools import Dedupe, Namespace, Offers

DEFENCES: dict[str, type[Defence]] = {
    one.code: one
    for one in (Dedupe, Namespace, Offers, Schema, Strict, Retry, Hint, Vote, Clarify, Spotlight)
}
"""Every defence by its code."""

MOST = 64
"""Requests for one pass of a row: a chain that may take more is refused."""


def parse(words: Sequence[str]) -> tuple[Defence, ...]:
    """The chain of these names (`dedupe`, `vote:5`), the first in front. Raises UserError."""
    chain = tuple(map(_defence, words))
    codes = [one.code for one in chain]
    if twice := next((code for code in codes if codes.count(code) > 1), None):
        raise UserError(f"--defend: {twice} is named twice")
    if budget(chain) > MOST:
        raise UserError(
            f"--defend {','.join(words)}: up to {budget(chain)} requests for one answer; at most {MOST} are"
            " made"
        )
    return chain


def _defence(word: str) -> Defence:
    code, colon, argument = word.partition(":")
    if code not in DEFENCES:
        raise unknown("defence", code, DEFENCES)
    kind = DEFENCES[code]
    if code == "vote":
        return kind(argument)
    if colon and argument not in kind.arguments:
        if not kind.arguments:
            raise UserError(f"--defend {word}: {code} takes nothing behind a colon")
        raise unknown(f"way of {code}", argument, kind.arguments)
    return kind(argument or next(iter(kind.arguments), ""))


def names(chain: Sequence[Defence]) -> tuple[str, ...]:
    """The chain in words, each with its argument: equal for equal chains."""
    return tuple(f"{one.code}:{one.argument}" if one.argument else one.code for one in chain)
