"""What the cards say of types: how each is made, its flags, the paper's rows, sentences on those in use."""

from collections.abc import Collection, Iterator

from robustbench_tc import sources, taxonomy
from robustbench_tc.languages import LANGUAGES
from robustbench_tc.schema import GOLD_NOT_STATED
from robustbench_tc.taxonomy import PerturbationType


def language_codes(codes: Collection[str]) -> list[str]:
    """Of everything that users say in the rows of these types, English first."""
    spoken = dict.fromkeys(str(t.traits["language"]) for t in _known(codes) if "language" in t.traits)
    return ["en", *spoken]


def languages(codes: Collection[str]) -> str:
    """Which languages are spoken, and where."""
    others = [LANGUAGES[code].name for code in language_codes(codes)[1:]]
    if not others:
        return "English only."
    kinds = [t.code for t in _known(codes) if "language" in t.traits]
    return f"English, but for the requests of {_listed(kinds)}, which are in {_listed(others)}."


def turns(codes: Collection[str]) -> str:
    """How many replies a row asks for, and what stands before the request."""
    said = "One reply is scored in each row, to the request that ends its conversation."
    longer = [t for t in _known(codes) if "tokens" in t.traits]
    if longer:
        most = max(int(str(t.traits["tokens"])) for t in longer)
        names = _listed([t.code for t in longer])
        said += f" In {names} earlier exchanges precede it, up to {most:,} tokens."
    return said


def errors(codes: Collection[str]) -> str:
    """Which calls are answered, with what, before the scored reply."""
    answered = [t for t in _known(codes) if t.answered_calls]
    if not answered:
        return "No call is answered: nothing is injected at run time."
    results = [t.code for t in answered if t.channel == "result"]
    failed = [t for t in answered if t.channel != "result"]
    said = []
    if any(t.answered_calls == 1 for t in failed):
        said.append("One injected error a row, always at the first call.")
    if more := [f"{t.code} {t.answered_calls}" for t in failed if t.answered_calls > 1]:
        said.append(f"As many calls in a row meet the same error: {_listed(more)}.")
    if results:
        said.append(f"In {_listed(results)} the first call is answered with a result.")
    return " ".join(said)


def schemas(codes: Collection[str]) -> str:
    """By which tool's schema a call is judged."""
    own = [t.code for t in _known(codes) if "parameter schemas" in t.may_change]
    said = "Scorers judge a call against the clean tool's schema"
    return f"{said}, in {_listed(own)} against the row's own." if own else f"{said}."


def adversary(codes: Collection[str]) -> str:
    """Whether somebody attacks."""
    attacks = [t.code for t in _known(codes) if t.traits.get("instructed")]
    if not attacks:
        return "It has no adversary: every perturbation is an accident of deployment."
    return (
        f"Only {_listed(attacks)} contains injected instructions: few, plain, not adapted to a model. "
        "Every other perturbation is an accident of deployment."
    )


def further_requests(rows: dict[str, int]) -> int:
    """How many requests beyond one a row its answered calls can take, given the rows by type."""
    return sum(rows[t.code] * t.answered_calls for t in _known(rows))


def _known(codes: Collection[str]) -> Iterator[PerturbationType]:
    return (kind for kind in taxonomy.known_with(codes) if kind.code in codes)


def _listed(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


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
