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
    later: str
    """The user shall try again later: the reply gives up."""
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
