"""What a language's table of cues holds."""

from typing import Generic, NamedTuple, TypeVar

Pattern = TypeVar("Pattern")
NEVER = "(?!)"
"""What is found nowhere."""


class Cues(NamedTuple, Generic[Pattern]):
    """The cues of one language as texts, or of several, compiled."""

    announced: Pattern
    """The first person makes the call now, or makes it again."""
    reported: Pattern
    """The call was made before."""
    refused: Pattern
    """The call is not made."""
    negated: Pattern
    """A negation, with what it governs: of the main clause alone."""
    aside: Pattern
    """Words that begin a clause about what is announced, or about its reason."""
    supposed: Pattern
    """The call could or would be made."""
    deferred: Pattern
    """The call is for later, for when something has happened, or for the user to make."""
    label: Pattern
    """A whole clause without a verb that names a call of the past, or one that is put aside."""
    named: Pattern
    """A whole clause without a verb that names neither a call nor what comes of a request."""
    example: Pattern
    """The call is an example."""
    asked: Pattern
    """A question, or a request for leave, whether to make the call."""
    described: Pattern
    """The tool is the subject: documentation."""
    does: Pattern
    """Verbs of what a tool does, right behind its name."""
    outcome: Pattern
    """What came of a call."""
    gives_up: Pattern
    """The reply ends here without a result, or the user shall try again later."""
    conditional: Pattern
    """The clause speaks of what may happen."""
    earlier: Pattern
    """The clause speaks of a call before this one."""
    correction: Pattern
    """What was written last was wrong."""
    this_call: Pattern
    """A call is pointed at."""
    soon: Pattern
    """Adverbs of time, and politeness, that may follow an announced call."""
    so: Pattern
    """Words that begin what is done because of what stands in front of them."""
    turn: Pattern
    """Words that begin another clause of the first person."""
    cause: Pattern
    """A clause that gives the reason of the one behind it."""
    past: Pattern
    """In front of a colon: something happened, or was done."""
