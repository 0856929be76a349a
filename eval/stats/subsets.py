"""Which rows a number is over: the subsets that a table can be asked for."""

from collections.abc import Collection, Iterable
from typing import Literal

from robustbench_tc import taxonomy

Subset = Literal["all", "paper", "verified"]
"""Every row; the kinds of rows that the paper's release has; the rows that somebody could answer."""


def kept(
    pairs: Iterable[tuple[str, str]], subset: Subset, unstated: Collection[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Those of (clean_id, type code) in the subset; `unstated`: those that nobody could answer."""
    if subset == "paper":
        return {pair for pair in pairs if in_paper_subset(*pair)}
    return {pair for pair in pairs if subset == "all" or pair not in unstated}


_PRICED = frozenset({"CD", "TD", "CD_NT", "TD_NT"})


def in_paper_subset(clean_id: str, type_code: str) -> bool:
    """Whether the paper's release has a row of this kind (benchmark.md §7): `--subset paper`.

    It has CD, TD, CD_NT and TD_NT without BFCL and API-Bank level 3, the same-name types without BFCL, and no
    extension.
    """
    bfcl = clean_id.startswith("bfcl_v3__")
    if type_code.startswith("same_name_"):
        return not bfcl
    if type_code in _PRICED:
        return not bfcl and not clean_id.startswith("apibank__level3_")
    return type_code == taxonomy.CLEAN or type_code in taxonomy.codes()
