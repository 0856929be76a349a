"""What a language's table of cues holds."""

from typing import NamedTuple


class Cues(NamedTuple):
    """The cues of one language."""

    announced: str
    """The first person makes the call now, or makes it again."""
    reported: str
    """The call was made before."""
    refused: str
    """The call is not made."""
    supposed: str
    """The call could or would be made."""
    deferred: str
    """The call is for later, for when something has happened, or for the user to make."""
    label: str
    """A whole clause without a verb that names a call of the past, or one that is put aside."""
    example: str
    """The call is an example."""
    asked: str
    """A question, or a request for leave, whether to make the call."""
    described: str
    """The tool is the subject: documentation."""
    does: str
    """Verbs of what a tool does, right behind its name."""
    outcome: str
    """What came of a call."""
    gives_up: str
    """The reply ends here without a result, or the user shall try again later."""
    conditional: str
    """The clause speaks of what may happen."""
    earlier: str
    """The clause speaks of a call before this one."""
    correction: str
    """What was written last was wrong."""
    this_call: str
    """A call is pointed at."""
    soon: str
    """Adverbs of time, and politeness, that may follow an announced call."""
    it: str
    """A call is meant."""
    contrast: str
    """Words that a clause begins with which takes a call back or gives a reason."""
    so: str
    """Words that begin what is done because of what stands in front of them."""
    turn: str = "(?!)"
    """Words that begin another clause of the first person."""
    cause: str = "(?!)"
    """A clause that gives the reason of the one behind it."""
    past: str = "(?!)"
    """In front of a colon: something happened, or was done."""
