"""Where a row comes from: ids, origin, generator, injected text."""

import re

from robustbench_tc import sources, taxonomy
from robustbench_tc.schema import Sample

from ..checks import DoesNotApply, check
from .base import perturbed

_GENERATOR = re.compile(
    r"(?:recorded|hand-written|[^\s+]+@v\d+)(?:\+(?:recorded|hand-written|[^\s+]+@v\d+))*"
)

_ALSO_BY_RULE = "realistic_typos"
"""The type whose texts a rule may write too (`--generator realistic_typos=rule`)."""


@check("benchmark_rows")
def asks_something(row: Sample, clean: Sample) -> None:
    """A row without a user's words asks nothing."""
    asked = any(m.role == "user" and m.content.strip() for m in row.messages)
    assert asked, "no message of a user"


@check("benchmark_rows")
def output_format_of_its_source(row: Sample, clean: Sample) -> None:
    """The prompt asks for a call in the form that the source's scorer expects."""
    source = sources.find(row.source)
    assert source and row.output_format == source.output_format, "output_format is not its source's"


@check("benchmark_rows", for_=perturbed)
def same_origin_as_clean(row: Sample, clean: Sample) -> None:
    """A row is compared with its clean row: source, category and output format are the same."""
    same = (row.source, row.category, row.output_format) == (
        clean.source,
        clean.category,
        clean.output_format,
    )
    assert same, "source, category or output_format differ from the clean row's"


@check("benchmark_rows")
def generator_is_named(row: Sample, clean: Sample) -> None:
    """Every new text says who wrote it; rule types say so too."""
    if row.type_code == taxonomy.CLEAN or taxonomy.get(row.type_code).method != "llm":
        assert row.generator == "rule", "a rule's row names another generator"
    elif row.generator != "rule" or row.type_code != _ALSO_BY_RULE:
        assert _GENERATOR.fullmatch(row.generator), "the generator of a written text is not named"


@check("benchmark_rows")
def injected_text_is_the_protocols(row: Sample, clean: Sample) -> None:
    """The injected texts are protocol constants, letter by letter, and no other row injects anything."""
    if taxonomy.known(row.type_code) and taxonomy.get(row.type_code).channel == "result":
        raise DoesNotApply  # what such a text says is `results.py`'s
    wanted = taxonomy.injected_error(row.type_code)
    assert row.injected_error == wanted, "injected_error is not the protocol's text"


@check("benchmark_rows", for_=perturbed)
def flags_are_its_types(row: Sample, clean: Sample) -> None:
    """A flag sets rows apart in reports: a row carries its clean row's and those that its type explains."""
    unknown = set(row.flags) - set(clean.flags) - set(taxonomy.get(row.type_code).flags)
    assert not unknown, f"flag {sorted(unknown)[0]!r} is not one of its type's"
