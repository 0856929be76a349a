"""How often something happens to calls that come in conversations, with a 95 % interval.

Wilson's interval with the number of calls divided by the design effect, where that is above 1: calls of one
conversation may fail together. Coverage measured over logs of known plans: docs/ground.md. The intervals of
the reports (`eval.stats.confidence.shares`), made for a few large clusters too, held such rates in 0.953 to
1.000 of the same logs: wider than what is asked for here.
"""

from collections.abc import Sequence
from math import sqrt

from robustbench_tc.eval.stats.confidence import Z


def rate(clusters: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """The interval of (met, calls) of each conversation, at least one call in all."""
    met, calls = sum(x for x, _ in clusters), sum(n for _, n in clusters)
    share = met / calls
    n, m = float(calls), len(clusters)
    if m > 1 and 0 < met < calls:
        # The variance of the share over conversations, by that of as many calls drawn alone.
        squares = sum((x - share * n) ** 2 for x, n in clusters)
        n /= max(1.0, m / (m - 1) * squares / (calls * share * (1 - share)))
    spread = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    middle, whole = share + Z * Z / (2 * n), 1 + Z * Z / n
    low = (middle - spread) / whole if met else 0.0
    high = (middle + spread) / whole if met < calls else 1.0
    return low, high
