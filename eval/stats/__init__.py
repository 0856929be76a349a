"""Numbers one can trust: exact intervals and tests over counts per (clean_id, type). See docs/statistics.md.

`runs` reads scored runs into counts, `summary` makes the tables of one model, `intervals` and `significance`
hold the statistics, `lattice` the exact distributions behind them.
"""
