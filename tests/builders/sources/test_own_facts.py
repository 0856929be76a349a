"""A user's own tools are a source that no published dataset, prompt version or pin knows."""

from robustbench_tc import schema, sources
from robustbench_tc.builders.sources import READERS

from ...refusals import refuses


def test_own_tools_are_a_source_beside_the_published_ones() -> None:
    own = sources.get(sources.OWN)
    assert (own.order, own.scorer, own.output_format) == (6, "own", "tool_call_tags")
    assert own.single_gold_tool and not own.one_call and not own.paper
    assert own.order > max(source.order for source in sources.sources())
    assert sources.OWN not in {*sources.names(), *schema.SOURCES, *(reader.source for reader in READERS)}


def test_tables_count_own_rows_last() -> None:
    assert sources.in_tables() == (*sources.names(), sources.OWN)


def test_a_near_miss_of_the_name_is_named() -> None:
    refuses(r"'ownn'.*own", sources.get, "ownn")
