"""What the cards say of each type, from the types' own facts: how it is made, its flags, the paper's rows."""

from robustbench_tc import sources, taxonomy
from robustbench_tc.schema import GOLD_NOT_STATED


class _HowMade(dict[str, str]):
    def __missing__(self, code: str) -> str:
        return taxonomy.get(code).how_made


HOW_MADE: dict[str, str] = _HowMade(
    {
        taxonomy.CLEAN: "The sample as upstream has it, read into the common columns.",
        **{kind.code: kind.how_made for kind in taxonomy.types("known")},
    }
)
"""How each type's rows are made; mixtures that no module states are found by their codes."""

FLAGS: dict[str, str] = {
    GOLD_NOT_STATED: "no accepted answer can be inferred from what is stated, defined or known",
    **{flag: words for kind in taxonomy.types("known") for flag, words in kind.flags.items()},
}

PAPER_ROWS: dict[str, int] = {
    taxonomy.CLEAN: sum(source.rows.paper for source in sources.sources()),
    **{kind.code: kind.paper_rows for kind in taxonomy.types() if kind.paper_rows is not None},
}
"""Rows of the paper's own release (arXiv:2605.11928, appendix), for comparison only."""

PAPER_SOURCES: dict[str, tuple[int, float]] = {
    "bfcl_v3": (505, 2.8),
    "apibank": (1646, 3.1),
    "rotbench": (479, 7.8),
    "toolalpaca": (479, 3.5),
    "tooleyes": (612, 6.3),
}
"""Its Table 3: rows of each source, clean ones included, and the mean number of tools of a clean row."""
