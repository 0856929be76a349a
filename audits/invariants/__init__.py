"""What must hold of a benchmark's row: one small function each, held against the row and its clean row.

The functions restate benchmark.md on their own: of the core types, and of what all types have in common. What
is right in the types of a pack beyond that, their own unit says (`unit_finds_nothing`).
"""

from ..checks import by_itself, rules
from . import allowed, conversation, gold, registry, reward

__all__ = ["allowed", "conversation", "gold", "registry", "reward"]

INVARIANTS = {one.name: one for one in rules("benchmark_rows") if one.holds and one.for_ is not by_itself}
"""By name."""
