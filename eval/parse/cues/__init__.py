"""Words in the prose around a call that say whether the reply makes it: six languages, one table each.

Every field is a regular expression, empty where a language needs none; all languages are searched at once, since
a reply's language is not declared and models mix them.
"""

import re
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


class Compiled(NamedTuple):
    """The same for all languages at once."""

    announced: re.Pattern[str]
    reported: re.Pattern[str]
    refused: re.Pattern[str]
    supposed: re.Pattern[str]
    example: re.Pattern[str]
    asked: re.Pattern[str]
    described: re.Pattern[str]
    does: re.Pattern[str]
    outcome: re.Pattern[str]
    later: re.Pattern[str]
    conditional: re.Pattern[str]
    earlier: re.Pattern[str]
    correction: re.Pattern[str]
    this_call: re.Pattern[str]
    soon: re.Pattern[str]


def _compiled() -> Compiled:
    from . import arabic, chinese, english, hindi, spanish, swahili

    tables = [module.CUES for module in (english, chinese, hindi, spanish, arabic, swahili)]
    patterns = {}
    for field in Cues._fields:
        parts = [part for table in tables if (part := getattr(table, field))]
        patterns[field] = re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)
    return Compiled(**patterns)


CUES = _compiled()
