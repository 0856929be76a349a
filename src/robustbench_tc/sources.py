"""The sources as every room knows them: the facts of each upstream benchmark that samples come from.

A source states its facts beside its reader in `builders/sources/`; `make facts` writes them to
`data/sources.json`, which is what the other rooms read. A user's own tools and requests have no upstream, no
pins and no counts: their facts stand here, and they are no member of `sources()`.
"""

from functools import cache
from importlib.resources import files

import msgspec

from .errors import UserError, unknown
from .schema.facts import (
    OutputFormat as OutputFormat,
    Rows,
    Source as Source,
)

OWN = "own"
"""The source of rows that are built from a user's own tools and requests."""

_OWN_FACTS = Source(
    order=1_000,  # behind every source of a dataset
    name=OWN,
    output_format="tool_call_tags",
    scorer="own",
    one_call=False,
    single_gold_tool=True,
    shown_last=False,
    rows=Rows(paper=0, bundled=0, full=0),
    paper=False,
)


@cache
def sources() -> tuple[Source, ...]:
    """The sources of the published benchmark, in the order of every table."""
    text = files("robustbench_tc").joinpath("data/sources.json").read_bytes()
    try:
        return tuple(msgspec.json.decode(text, type=dict[str, tuple[Source, ...]])["sources"])
    except ValueError as error:
        raise UserError(f"data/sources.json: {error}: write it again with `make facts`") from None


@cache
def names() -> tuple[str, ...]:
    """Their names, in the order of every table."""
    return tuple(source.name for source in sources())


@cache
def in_tables() -> tuple[str, ...]:
    """The names under which rows can be counted, in the order of every table: `names()`, then OWN."""
    return (*names(), OWN)


def get(name: str) -> Source:
    """The source of that name. Raises UserError with near misses."""
    found = _by_name()
    if name not in found:
        raise unknown("source", name, found)
    return found[name]


def find(name: str) -> Source | None:
    """The source of that name, if there is one (training rows come from none of them)."""
    return _by_name().get(name)


@cache
def _by_name() -> dict[str, Source]:
    return {source.name: source for source in (*sources(), _OWN_FACTS)}
