"""What must hold of a benchmark's row: one small function each, held against the row and its clean row.

The functions restate benchmark.md on their own; the builder's units have checks too, and both must agree.
"""

from ..checks import by_itself, rules
from . import allowed, balanced, context, gold, provenance, registry, results, reward, texts

__all__ = ["allowed", "balanced", "context", "gold", "provenance", "registry", "results", "reward", "texts"]

INVARIANTS = {one.name: one for one in rules("benchmark_rows") if one.holds and one.for_ is not by_itself}
"""By name."""
