"""A reply to calls: reasoning and invented turns are split off, the final answer is read.

Marked calls (tags, tokens, XML, ReAct labels) count wherever they stand there; bare ones where they are the
reply's act. Every source tries its own family of formats first and then the others; the first that finds calls
wins and is recorded. Model text is never evaluated, nothing is raised on any text, and the work is bounded.
"""

from .formats import FORMATS, ORDERS, Format
from .reader import READER_VERSION, Parsed, parse
from .segments import Segment

__all__ = ["FORMATS", "ORDERS", "READER_VERSION", "Format", "Parsed", "Segment", "parse"]
