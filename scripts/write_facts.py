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

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import get_args

import jinja2
import msgspec
import typer

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


PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(ROOT / "scripts" / "facts"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)

_VALUES = {
    "JSON": "JSON",
    "Python": "Python literals",
    "schema": "the tool's schema says",
    "text": "text",
    "own": "the format says",
}

_ASKED = {
    "perception": "to read what it is given: the request and the definitions, through noise and other words",
    "interaction": "to act with the tools that are there: to find the one that is meant, to go on after "
    "an error",
    "reasoning": "to weigh tools that would all serve: by cost, by speed, by what is preferred",
    "internalization": "to know when not to call, and what it cannot do",
}


def main(check: bool = False) -> None:
    """Write what is out of date, or with --check fail where something is."""
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
        **_pages(kinds),
        live_data: _between(live_data.read_text("utf-8"), "faults", _faults()),
        live_scores: _between(live_scores.read_text("utf-8"), "columns", _columns()),
    }


def _between(page: str, name: str, lines: Iterable[str]) -> str:
    """The page with other lines between the two marks of a name."""
    place = re.compile(rf"(<!-- {name} -->\n\n).*?(?=\n\n<!-- /{name} -->)", re.DOTALL)
    return _replaced(place, page, "\n".join(lines), name)


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


def _heatmap(text: str, kinds: tuple[taxonomy.PerturbationType, ...]) -> str:
    """The query with one column for each type, after `clean`."""
    names = ((k.code, k.code if k.code.islower() else f'"{k.code}"') for k in kinds)
    lines = (f"        max(accuracy) filter (where type_code = '{code}') as {name}" for code, name in names)
    place = re.compile(r"(as clean,\n).*?(?=\n    from )", re.DOTALL)
    return _replaced(place, text, ",\n".join(lines), "sql/heatmap.sql")


def _marts(text: str, kinds: tuple[taxonomy.PerturbationType, ...]) -> str:
    """The marts' columns, with those of the heat map after `clean`."""
    lines = (f'    {k.code}: "Accuracy on {k.display_name} ({k.component})."' for k in kinds)
    place = re.compile(r'(\nheatmap:\n.*?\n    clean: "Accuracy on clean\."\n).*?(?=\n\n)', re.DOTALL)
    return _replaced(place, text, "\n".join(lines), "sql/marts.yml")


def _replaced(place: re.Pattern[str], text: str, lines: str, name: str) -> str:
    """The text with `lines` where the earlier ones stood. Raises ValueError where there is no such place."""
    found, times = place.subn(lambda match: match.group(1) + lines, text)
    if times != 1:
        raise ValueError(f"{name}: no place for what is derived")
    return found


def _pages(kinds: tuple[taxonomy.PerturbationType, ...]) -> dict[Path, str]:
    """The pages under docs/."""
    cases, defects = (
        msgspec.yaml.decode((SHOWN / name).read_bytes()) for name in ("golden.yaml", "defects.yaml")
    )
    caught = {
        kind.code: [
            f"`rows.{one['check']}`"
            for one in defects
            if any(fnmatchcase(kind.code, pattern) for pattern in one["types"])
        ]
        for kind in kinds
    }
    packs = {pack: [kind for kind in kinds if kind.pack == pack] for pack in get_args(taxonomy.Pack)}
    said = {
        "kinds": kinds,
        "cases": cases,
        "caught": caught,
        "packs": {pack: its for pack, its in packs.items() if its and pack != "core"},
        "levels": _ASKED,
        "of_level": {
            level: {pack: [kind.code for kind in its if kind.level == level] for pack, its in packs.items()}
            for level in _ASKED
        },
        "formats": FORMATS.values(),
        "values": _VALUES,
        "orders": ORDERS,
    }
    pages = ("types.md", "packs.md", "levels.md", "formats.md")
    return {ROOT / "docs" / name: PAGES.get_template(f"{name}.j2").render(said) for name in pages}


if __name__ == "__main__":
    typer.run(main)
