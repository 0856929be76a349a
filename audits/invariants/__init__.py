"""What must hold for a row: one small function each, held against the row and its clean row.

The functions restate benchmark.md on their own; the builder's units have checks too, and both must agree.
"""

from . import allowed, balanced, context, gold, provenance, registry, results, reward, texts
from .base import INVARIANTS, Invariant, Verdict

__all__ = [
    "INVARIANTS",
    "Invariant",
    "Verdict",
    "allowed",
    "balanced",
    "context",
    "gold",
    "provenance",
    "registry",
    "results",
    "reward",
    "texts",
]
