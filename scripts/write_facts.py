"""`make facts`: what types and sources state about themselves, written to where the other rooms read it.

    src/robustbench_tc/data/taxonomy.json   the types (builders/perturb)
    src/robustbench_tc/data/sources.json    the sources (builders/sources)
    sql/heatmap.sql, sql/marts.yml          the heat map's columns, and what they mean
    docs/types.md                           every type with its golden cases
    docs/packs.md                           every type beyond the core: what it asks, prior art, rows
    docs/levels.md                          every type by what it asks of an agent
    docs/formats.md                         the formats of calls that are read (eval/parse/formats.py)
    docs/live-data.md, docs/live-scores.md  the faults of live rows; the columns of their scores

`--check` writes nothing and fails where a file is not what it would write. A fact that is missing or wrong is
named, and then nothing is written.
"""

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import get_args

import msgspec

from robustbench_tc import live_types, taxonomy
from robustbench_tc.audits.expectations.live import pinned
from robustbench_tc.builders.perturb import facts as types
from robustbench_tc.builders.perturb.language import TEMPLATES
from robustbench_tc.builders.sources import READERS, base as sources
from robustbench_tc.dataset_cards.live import told_faults
from robustbench_tc.eval.live.ledger import Ledger
from robustbench_tc.eval.live.score import LiveScore
from robustbench_tc.eval.parse import FORMATS, ORDERS
from robustbench_tc.eval.score import has_scorer
from robustbench_tc.languages import LANGUAGES
from robustbench_tc.sources import Source

ROOT = Path(__file__).resolve().parents[1]
SHOWN = ROOT / "tests" / "builders" / "perturb"
"""Where the golden cases and the planted defects stand that the page shows."""


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
    kinds = types.all_facts(known)
    data = ROOT / "src" / "robustbench_tc" / "data"
    heatmap, marts = ROOT / "sql" / "heatmap.sql", ROOT / "sql" / "marts.yml"
    live_data, live_scores = ROOT / "docs" / "live-data.md", ROOT / "docs" / "live-scores.md"
    return {
        data / "taxonomy.json": _json(_taxonomy(kinds, known)),
        data / "sources.json": _json({"sources": known}),
        heatmap: _heatmap(heatmap.read_text("utf-8"), kinds),
        marts: _marts(marts.read_text("utf-8"), kinds),
        ROOT / "docs" / "types.md": "\n".join(_page(kinds)) + "\n",
        ROOT / "docs" / "packs.md": "\n".join(_packs(kinds)) + "\n",
        ROOT / "docs" / "levels.md": "\n".join(_by_level(kinds)) + "\n",
        ROOT / "docs" / "formats.md": "\n".join(_formats()) + "\n",
        live_data: _between(live_data.read_text("utf-8"), "faults", _faults()),
        live_scores: _between(live_scores.read_text("utf-8"), "columns", _columns()),
    }


def _between(page: str, name: str, lines: Iterable[str]) -> str:
    """The page with other lines between the two marks of a name."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return "\n".join((f"{before}{begin}", "", *lines, "", f"{end}{after}"))


def _faults() -> Iterator[str]:
    """The kinds of faults of docs/live-data.md."""
    profiles = ("bundled", "full", "lite")
    yield f"| kind | what happens | right | rows: {' | '.join(profiles)} |"
    yield "|---|---|---|---:|---:|---:|"
    for kind in live_types.FAULT_TYPES:
        if kind not in live_types.CASCADES:
            counts = [pinned(profile).get(live_types.type_code(kind), "–") for profile in profiles]
            yield f"| `{kind}` | {' | '.join((*told_faults()[kind], *map(str, counts)))} |"


def _columns() -> Iterator[str]:
    """The columns of docs/live-scores.md: those of a turn's ledger first."""
    yield from ("| column | definition |", "|---|---|")
    for kind in (Ledger, LiveScore):
        for name, definition in _documented(kind):
            yield f"| `{name}` | {definition} |"


def _documented(kind: type) -> Iterator[tuple[str, str]]:
    """The fields that a class declares, with the docstrings behind them."""
    (declared,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(declared, ast.ClassDef)
    for pair in pairwise(declared.body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split()).replace("|", "\\|")


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
    yield "| type | paper's name | component | level | pack | channel | method | may change |"
    yield "|---|---|---|---|---|---|---|---|"
    for kind in kinds:
        changes = ", ".join(kind.may_change) or "nothing"
        yield (
            f"| [{kind.code}](#{kind.code.lower()}) {kind.label} | {kind.display_name} | {kind.component} "
            f"| {kind.level} | {kind.pack} | {kind.channel} | {kind.method} | {changes} |"
        )
    yield from _levels()
    cases, defects = (
        msgspec.yaml.decode((SHOWN / name).read_bytes()) for name in ("golden.yaml", "defects.yaml")
    )
    for kind in kinds:
        yield from ("", f"## {kind.code}", "", kind.how_made, "")
        rows = f"Rows: {kind.rows.paper} in profile paper, {kind.rows.bundled} in bundled"
        paper = "" if kind.paper_rows is None else f"; the paper's own release has {kind.paper_rows}"
        yield f"{rows}{paper}. Sources: {', '.join(kind.sources)}."
        checks = [
            f"`rows.{one['check']}`"
            for one in defects
            if any(fnmatchcase(kind.code, t) for t in one["types"])
        ]
        one = len(checks) == 1
        yield f"{'A planted defect is' if one else 'Planted defects are'} caught by {' and '.join(checks)}."
        if kind.prior_art:
            yield f"Prior art: {kind.prior_art}."
        if kind.solved_without_reading:
            yield f"Solved without reading the request (docs/statistics.md). {kind.solved_without_reading}"
        for case in cases.get(kind.code, ()):
            yield from ("", f"On the sample `{case['clean']}`:", "", "```diff", case["reads"], "```")


def _levels() -> Iterator[str]:
    yield ""
    yield (
        "The levels are what of an agent a type tries: *perception* is reading what it is given, "
        "*interaction* is acting with the tools that are there, *reasoning* is weighing them against each "
        "other, *internalization* is knowing when not to call. No type of the core tries the last."
    )


def _packs(kinds: tuple[taxonomy.PerturbationType, ...]) -> Iterator[str]:
    """docs/packs.md"""
    yield from (
        "# Packs: types beyond the core",
        "",
        "Written by `make facts` from what the types state about themselves (docs/extending.md).",
        "",
        "The 22 types of the paper are the pack `core`. The packs here test more. They are built only on "
        "request, by pack, level, component or code, and never change the core scores: their numbers have "
        "tables of their own in `rbtc summary --full`, the report and a model's page on the board, also by "
        "level ([levels.md](levels.md)).",
        "",
        "```sh",
        f"rbtc build --types {','.join(['core', *_names(kinds)[:1]])} --out robustbench-tc",
        "```",
        "",
        "Row counts are those of the profiles paper (199 samples), bundled and full, where they are known "
        "before a build (–: texts by a model decide). The build report lists every skipped sample with its "
        "reason.",
        "",
        "```{toctree}",
        ":maxdepth: 1",
        ":glob:",
        "packs/*",
        "```",
    )
    for pack in _names(kinds):
        yield from (
            "",
            f"## {pack}",
            "",
            "| type | level | what it asks | prior art | rows: paper | bundled | full |",
            "|---|---|---|---|---:|---:|---:|",
        )
        for kind in kinds:
            if kind.pack == pack:
                rows = (kind.rows.paper, kind.rows.bundled, kind.rows.full)
                counts = " | ".join("–" if one is None else str(one) for one in rows)
                asks = kind.what_is_modified.replace("|", "\\|")
                prior = kind.prior_art.replace("|", "\\|")
                link = f"[{kind.code}](types.md#{kind.code.lower()})"
                yield f"| {link} | {kind.level} | {asks} | {prior} | {counts} |"


def _names(kinds: tuple[taxonomy.PerturbationType, ...]) -> list[str]:
    """The packs beyond the core that have a type."""
    return [pack for pack in get_args(taxonomy.Pack)[1:] if any(kind.pack == pack for kind in kinds)]


_ASKED = {
    "perception": "to read what it is given: the request and the definitions, through noise and other words",
    "interaction": "to act with the tools that are there: to find the one that is meant, to go on after "
    "an error",
    "reasoning": "to weigh tools that would all serve: by cost, by speed, by what is preferred",
    "internalization": "to know when not to call, and what it cannot do",
}


def _by_level(kinds: tuple[taxonomy.PerturbationType, ...]) -> Iterator[str]:
    """docs/levels.md"""
    yield from (
        "# Levels: what a type asks of an agent",
        "",
        "Written by `make facts` from what the types state about themselves (docs/extending.md).",
        "",
        "A component says where a type acts, a level what it asks of an agent. Every type has one of each.",
        "",
        "| level | asks an agent | core | packs |",
        "|---|---|---|---|",
    )
    for level, asked in _ASKED.items():
        core = [kind.code for kind in kinds if kind.level == level and kind.pack == "core"]
        packs = [
            f"{pack}: {', '.join(codes)}"
            for pack in _names(kinds)
            if (codes := [kind.code for kind in kinds if (kind.level, kind.pack) == (level, pack)])
        ]
        yield f"| {level} | {asked} | {', '.join(core) or 'none'} | {'; '.join(packs) or 'none'} |"
    yield from (
        "",
        "```sh",
        "rbtc summary runs/qwen3-8b-fc --full",
        "rbtc sql by_level --run runs/qwen3-8b-fc",
        "```",
        "",
        "`rbtc summary --full` has a table by level; the report has the section "
        "*By level*, a model's page on the board the same table, and the board ranks by a level on request. "
        "A level has a line for the core's types, "
        "one for each pack that the run holds, and where there are several one for `all`. A line of the "
        "core needs every core type of the level; a line of a pack is over the types that the run was "
        "asked. The intervals are those of the other tables ([statistics.md](statistics.md)), by samples. "
        "Compare runs by the lines of the core: what `all` is made of depends on the packs that were "
        "asked. No level is a headline number.",
        "",
        "## Where the levels are from",
        "",
        "The four names are the tiers of the open-world sandbox paper (*Can Agents Generalize to the Open "
        "World?*, arXiv:2607.01084): perception, interaction, reasoning, internalization. Which type is "
        "of which level is our reading, by the table above. Perception, interaction and reasoning have "
        "types in the core. Internalization has no counterpart in the core: every core row has a call "
        "that is right. Packs fill it in one sense only, knowing when not to call. What that paper also "
        "moves, the domain (agents trained in one set of tools are asked in another), has no counterpart "
        "here at any level: a run asks one model as it is, nothing is trained, and each request stays in "
        "its own domain. Nor do the single-reply rows here hold its sandbox's episodes of many steps.",
    )


if __name__ == "__main__":
    main()
