"""Where a row comes from: ids, origin, generator, injected text."""

import re

from robustbench_tc import sources, taxonomy
from robustbench_tc.schema import Sample

from .base import HOLDS, Verdict, every, invariant, perturbed

_GENERATOR = re.compile(
    r"(?:recorded|hand-written|[^\s+]+@v\d+)(?:\+(?:recorded|hand-written|[^\s+]+@v\d+))*"
)

_ALSO_BY_RULE = "realistic_typos"
"""The type whose texts a rule may write too (`--generator realistic_typos=rule`)."""


@invariant(every)
def asks_something(row: Sample, clean: Sample) -> Verdict:
    """A row without a user's words asks nothing."""
    asked = any(m.role == "user" and m.content.strip() for m in row.messages)
    return HOLDS if asked else "no message of a user"


@invariant(every)
def output_format_of_its_source(row: Sample, clean: Sample) -> Verdict:
    """The prompt asks for a call in the form that the source's scorer expects."""
    source = sources.find(row.source)
    return (
        HOLDS if source and row.output_format == source.output_format else "output_format is not its source's"
    )


@invariant(perturbed)
def same_origin_as_clean(row: Sample, clean: Sample) -> Verdict:
    """A row is compared with its clean row: source, category and output format are the same."""
    same = (row.source, row.category, row.output_format) == (
        clean.source,
        clean.category,
        clean.output_format,
    )
    return HOLDS if same else "source, category or output_format differ from the clean row's"


@invariant(every)
def generator_is_named(row: Sample, clean: Sample) -> Verdict:
    """Every new text says who wrote it; rule types say so too."""
    if row.type_code == taxonomy.CLEAN or taxonomy.get(row.type_code).method != "llm":
        return HOLDS if row.generator == "rule" else "a rule's row names another generator"
    by_rule = row.generator == "rule" and row.type_code == _ALSO_BY_RULE
    named = by_rule or _GENERATOR.fullmatch(row.generator)
    return HOLDS if named else "the generator of a written text is not named"


@invariant(every)
def injected_text_is_the_protocols(row: Sample, clean: Sample) -> Verdict:
    """The injected texts are protocol constants, letter by letter, and no other row injects anything."""
    if taxonomy.known(row.type_code) and taxonomy.get(row.type_code).channel == "result":
        return None  # what such a text says is `results.py`'s
    wanted = taxonomy.injected_error(row.type_code)
    return HOLDS if row.injected_error == wanted else "injected_error is not the protocol's text"


@invariant(perturbed)
def flags_are_its_types(row: Sample, clean: Sample) -> Verdict:
    """A flag sets rows apart in reports: a row carries its clean row's and those that its type explains."""
    unknown = set(row.flags) - set(clean.flags) - set(taxonomy.get(row.type_code).flags)
    return f"flag {sorted(unknown)[0]!r} is not one of its type's" if unknown else HOLDS
