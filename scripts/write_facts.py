"""`make facts`: what types and sources state about themselves, written to where the other rooms read it.

    src/robustbench_tc/data/taxonomy.json   the types (builders/perturb)
    src/robustbench_tc/data/sources.json    the sources (builders/sources)
    sql/heatmap.sql, sql/marts.yml          the heat map's columns, and what they mean
    docs/types.md                           every type with its golden cases
    docs/formats.md                         the formats of calls that are read (eval/parse/formats.py)

`--check` writes nothing and fails where a file is not what it would write. A fact that is missing or wrong is
named, and then nothing is written.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.audits.invariants import INVARIANTS
from robustbench_tc.audits.rows import HANDED_IN, OF_THE_PASS
from robustbench_tc.builders.perturb import REGISTRY, cases
from robustbench_tc.builders.perturb import facts as types
from robustbench_tc.builders.perturb.language import TEMPLATES
from robustbench_tc.builders.sources import READERS
from robustbench_tc.builders.sources import facts as sources
from robustbench_tc.eval.parse import FORMATS, ORDERS
from robustbench_tc.eval.score import has_scorer
from robustbench_tc.languages import LANGUAGES
from robustbench_tc.sources import Source

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    try:
        found = files()
    except ValueError as error:
        sys.exit(str(error))
    stale = [path for path, text in found.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in stale:
        if not check:
            path.write_text(found[path], "utf-8")
        print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")  # noqa: T201
    if check and stale:
        sys.exit("run `make facts`")


def files() -> dict[Path, str]:
    """Every derived file with its text. Raises ValueError with every problem, one a line."""
    known = sources.all_facts(READERS, has_scorer)
    kinds = types.all_facts(known, {*INVARIANTS, *OF_THE_PASS, *HANDED_IN})
    data = ROOT / "src" / "robustbench_tc" / "data"
    heatmap, marts = ROOT / "sql" / "heatmap.sql", ROOT / "sql" / "marts.yml"
    return {
        data / "taxonomy.json": _json(_taxonomy(kinds, known)),
        data / "sources.json": _json({"sources": known}),
        heatmap: _heatmap(heatmap.read_text("utf-8"), kinds),
        marts: _marts(marts.read_text("utf-8"), kinds),
        ROOT / "docs" / "types.md": "\n".join(_page(kinds)) + "\n",
        ROOT / "docs" / "formats.md": "\n".join(_formats()) + "\n",
    }


def _taxonomy(kinds: tuple[taxonomy.PerturbationType, ...], known: Iterable[Source]) -> dict[str, object]:
    """The types, and what types of further languages are made of: a family's facts, codes and names."""
    return {
        "types": kinds,
        "of_a_language": [types.facts(unit, known) for unit in TEMPLATES],
        "languages": [(one.code, one.name) for one in LANGUAGES.values()],
    }


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


_VALUES = {
    "JSON": "JSON",
    "Python": "Python literals",
    "schema": "the tool's schema says",
    "text": "text",
    "own": "the format says",
}


def _formats() -> Iterator[str]:
    """docs/formats.md"""
    yield from (
        "# The formats of calls that are read",
        "",
        "Written by `make facts` from the table of the reader. The code of the format stands beside every"
        " verdict (`variant`). What counts as a call, and what was measured, is in [calls.md](calls.md).",
        "",
        "| code | format | written by | marked | values are read as | a name alone is a call |",
        "|---|---|---|---|---|---|",
    )
    for one in FORMATS.values():
        shown = _VALUES[one.values] + (", XML entities decoded once" if one.entities else "")
        marked, alone = ("yes" if is_so else "" for is_so in (one.marked, one.name_alone))
        line = f"| {one.code} | {one.title} | {one.models} | {marked} | {shown} | {alone} |"
        yield line.replace("<", "&lt;")
    yield from (
        "",
        "Calls of function-calling mode have the code `fc`.",
        "",
        "## The order of each source",
        "",
        "A source's own formats are tried first; the first that finds calls decides. `A` stands for all"
        " marked formats but ReAct labels, in the order in which they appear in the reply.",
        "",
        "| source | order |",
        "|---|---|",
    )
    yield from (f"| {source} | {', '.join(order)} |" for source, order in ORDERS.items())


_COLUMNS = re.compile(r"(as clean,\n).*?(?=\n    from )", re.DOTALL)


def _heatmap(text: str, kinds: tuple[taxonomy.PerturbationType, ...]) -> str:
    """The query with one column for each type, after `clean`."""
    names = ((k.code, k.code if k.code.islower() else f'"{k.code}"') for k in kinds)
    lines = (f"        max(accuracy) filter (where type_code = '{code}') as {name}" for code, name in names)
    return _replaced(_COLUMNS, text, ",\n".join(lines), "sql/heatmap.sql")


_MEANINGS = re.compile(r'(\nheatmap:\n.*?\n    clean: "Accuracy on clean\."\n).*?(?=\n\n)', re.DOTALL)


def _marts(text: str, kinds: tuple[taxonomy.PerturbationType, ...]) -> str:
    """The marts' columns, with those of the heat map after `clean`."""
    lines = (f'    {k.code}: "Accuracy on {k.display_name} ({k.component})."' for k in kinds)
    return _replaced(_MEANINGS, text, "\n".join(lines), "sql/marts.yml")


def _replaced(place: re.Pattern[str], text: str, lines: str, name: str) -> str:
    """The text with `lines` where the types' lines stood. Raises ValueError where there is no such place."""
    found, times = place.subn(lambda match: match.group(1) + lines, text)
    if times != 1:
        raise ValueError(f"{name}: no place for the types' columns")
    return found


def _page(kinds: tuple[taxonomy.PerturbationType, ...]) -> Iterator[str]:
    """docs/types.md"""
    yield "# The perturbation types"
    yield ""
    yield "Written by `make facts` from what the types state about themselves (docs/extending.md)."
    yield ""
    yield "| code | paper's name | component | level | pack | channel | method | may change |"
    yield "|---|---|---|---|---|---|---|---|"
    for kind in kinds:
        changes = ", ".join(kind.may_change) or "nothing"
        yield (
            f"| [{kind.code}](#{kind.code.lower()}) | {kind.display_name} | {kind.component} | {kind.level} "
            f"| {kind.pack} | {kind.channel} | {kind.method} | {changes} |"
        )
    yield from _levels()
    for kind in kinds:
        yield from ("", f"## {kind.code}", "", kind.how_made, "")
        rows = f"Rows: {kind.rows.paper} in profile paper, {kind.rows.bundled} in bundled"
        paper = "" if kind.paper_rows is None else f"; the paper's own release has {kind.paper_rows}"
        yield f"{rows}{paper}. Sources: {', '.join(kind.sources)}."
        checks = [f"`rows.{check}`" for check, _ in cases.defects(REGISTRY[kind.code])]
        one = len(checks) == 1
        yield f"{'A planted defect is' if one else 'Planted defects are'} caught by {' and '.join(checks)}."
        if kind.prior_art:
            yield f"Prior art: {kind.prior_art}."
        if kind.solved_without_reading:
            yield f"Solved without reading the request (docs/statistics.md). {kind.solved_without_reading}"
        for case in REGISTRY[kind.code].golden:
            yield from ("", f"On the sample `{case.clean}`:", "", "```diff", cases.reads(case), "```")


def _levels() -> Iterator[str]:
    yield ""
    yield (
        "The levels are what of an agent a type tries: *perception* is reading what it is given, "
        "*interaction* is acting with the tools that are there, *reasoning* is weighing them against each "
        "other, *internalization* is knowing when not to call. No type of the core tries the last."
    )


if __name__ == "__main__":
    main()
