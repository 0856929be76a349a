"""The golden answer: in the registry, at its index, and unchanged but where its type says so.

Beside it where a row comes from: its origin, generator and injected text.
"""

import re
from operator import attrgetter

from robustbench_tc import sources, taxonomy
from robustbench_tc.schema import Call, Sample

from ..checks import DoesNotApply, check
from .base import (
    BALANCED,
    EQUAL_OFFERS,
    abbreviated,
    accepted_names,
    design,
    first_answer_names,
    no_call,
    perturbed,
    shortened,
)


@check("benchmark_rows")
def gold_is_there(row: Sample, clean: Sample) -> None:
    """A sample without a golden answer cannot be scored; one without calls is for types that say so."""
    assert row.golden_answers, "there is no accepted answer"
    worth, empty = no_call(row), [not golden for golden in row.golden_answers]
    several = row.source == sources.OWN  # of one's own cases more than one answer may hold no call
    if worth == "right":
        fits = all(empty) and (len(empty) == 1 or several)
        assert fits, "an answer is accepted beside that without calls"
    elif worth == "wrong":
        assert not any(empty), "an accepted answer holds no call"
    else:
        fits = any(empty) and not all(empty) and (sum(empty) == 1 or several)
        assert fits, "not one accepted answer is without calls, beside one with calls"


@check("benchmark_rows")
def gold_in_registry(row: Sample, clean: Sample) -> None:
    """A model can only call what it is offered: every accepted tool is in the registry."""
    missing = accepted_names(row) - {tool.name for tool in row.tools}
    assert not missing, f"{len(missing)} accepted tools are not in the registry"


@check("benchmark_rows")
def gold_at_its_index(row: Sample, clean: Sample) -> None:
    """With equal names only `gold_tool_index` says which tool is meant."""
    names = first_answer_names(row)
    index = row.gold_tool_index
    if no_call(row) == "right" or (row.source == sources.OWN and not names):
        assert index is None, "gold_tool_index points at a tool, and none is right"
    else:
        assert index is not None and 0 <= index < len(row.tools) and names, (
            "gold_tool_index points at no tool"
        )
        assert names and row.tools[index].name == names[0], "gold_tool_index points at another name"


@check("benchmark_rows", for_=perturbed)
def gold_index_means_the_clean_tool(row: Sample, clean: Sample) -> None:
    """The gold tool stays the gold tool: the index never comes to mean a distractor."""
    if no_call(row) == "right":
        return  # there is none: `gold_at_its_index`
    if row.gold_tool_index is None and clean.gold_tool_index is None:
        return  # a step of a mixture in which a part before it left no call that is right
    assert row.gold_tool_index is not None and clean.gold_tool_index is not None, "no gold_tool_index"
    assert 0 <= row.gold_tool_index < len(row.tools) and 0 <= clean.gold_tool_index < len(clean.tools), (
        "gold_tool_index points at no tool"
    )
    kind = taxonomy.get(row.type_code)
    if BALANCED(kind) or (kind.channel == "registry" and kind.ground_truth_changes):
        raise DoesNotApply  # which tool is meant is the unit's own to check
    new, old = row.tools[row.gold_tool_index], clean.tools[clean.gold_tool_index]
    if row.component == "action":
        assert new == old, "the indexed tool is not the clean gold tool"
    elif row.component == "reward":
        assert new.parameters == old.parameters, "the indexed tool has other parameters"
    else:
        assert row.gold_tool_index == clean.gold_tool_index, "the index changed, the registry did not"


@check("benchmark_rows", for_=perturbed)
def gold_is_the_clean_gold(row: Sample, clean: Sample) -> None:
    """The meaning stays, so does the answer: only renamed (AB types) or reduced to treated tools (reward)."""
    kind = taxonomy.get(row.type_code)
    if not EQUAL_OFFERS(kind):
        if kind.ground_truth_changes:
            raise DoesNotApply  # how it may is the unit's own to check
        assert row.golden_answers == clean.golden_answers, "the golden answers changed"
        return
    treated = set(first_answer_names(clean))
    expected = tuple(a for a in clean.golden_answers if {call.name for call in a} <= treated)
    if abbreviated(kind) or design(kind):
        old, new = first_answer_names(clean), first_answer_names(row)
        assert len(new) == len(old), "the golden answer calls another number of tools"
        names = dict(zip(old, new, strict=True))
        expected = tuple(
            tuple(Call(names.get(c.name, c.name), c.parameters) for c in answer) for answer in expected
        )
    assert row.golden_answers == expected, "it is not the clean gold of the treated tools"


@check("benchmark_rows", for_=abbreviated)
def gold_name_is_an_abbreviation(row: Sample, clean: Sample) -> None:
    """The gold tool's name lost its readability and nothing else: letters were cut, none were added."""
    for old, new in zip(first_answer_names(clean), first_answer_names(row), strict=False):
        assert shortened(new, old), "the gold tool's name is not an abbreviation of its old one"


@check("benchmark_rows", for_=lambda kind: abbreviated(kind) or bool(design(kind)))
def telling_history_is_flagged(row: Sample, clean: Sample) -> None:
    """A transcript that calls the gold tool by its old name points at the distractor: it is flagged."""
    blocks = (
        b for m in row.messages for b in re.findall(r"<tool_call>(.*?)</tool_call>", m.content, re.DOTALL)
    )
    called = {name for block in blocks for name in re.findall(r'"name"\s*:\s*"([^"]+)"', block)}
    telling = called & (set(first_answer_names(clean)) - set(first_answer_names(row)))
    if "history_names_distractor" in row.flags:
        assert telling, "it is flagged without a cause"
    else:
        assert not telling, "it is not flagged"


_GENERATOR = re.compile(
    r"(?:recorded|hand-written|[^\s+]+@v\d+)(?:\+(?:recorded|hand-written|[^\s+]+@v\d+))*"
)

_ORIGIN = attrgetter("source", "category", "output_format")

_ALSO_BY_RULE = "realistic_typos"
"""The type whose texts a rule may write too (`--generator realistic_typos=rule`)."""


@check("benchmark_rows")
def asks_something(row: Sample, clean: Sample) -> None:
    """A row without a user's words asks nothing."""
    assert any(m.role == "user" and m.content.strip() for m in row.messages), "no message of a user"


@check("benchmark_rows")
def output_format_of_its_source(row: Sample, clean: Sample) -> None:
    """The prompt asks for a call in the form that the source's scorer expects."""
    source = sources.find(row.source)
    assert source and row.output_format == source.output_format, "output_format is not its source's"


@check("benchmark_rows", for_=perturbed)
def same_origin_as_clean(row: Sample, clean: Sample) -> None:
    """A row is compared with its clean row: source, category and output format are the same."""
    assert _ORIGIN(row) == _ORIGIN(clean), "source, category or output_format differ from the clean row's"


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
