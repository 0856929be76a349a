"""Every verb: the words behind `rbtc`, its function, and where `rbtc --help` lists it."""

from ..api.comparing import gate
from ..option import Verb

VERBS = (Verb(name="gate", function=gate, panel="Answers"),)
"""In the order of `rbtc --help`."""
