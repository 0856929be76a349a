"""The mutants of the mutation run: one changed place of an area's code each, drawn with a fixed seed."""

import ast
import difflib
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]

INTERNING = {f"core/ReplaceComparisonOperator_{a}_{b}" for a in ("Eq", "NotEq") for b in ("Is", "IsNot")}
"""`==` as `is`: whether it changes anything depends on what the interpreter interns."""


class Area(NamedTuple):
    """What is mutated, and the tests that have to notice."""

    code: tuple[str, ...]
    tests: tuple[str, ...]


AREAS = {
    "perturb": Area(("builders/perturb",), ("tests/builders",)),
    "score": Area(
        ("eval/score",),
        (
            *("tests/eval/test_score_*.py", "tests/eval/test_vectors.py", "tests/eval/test_stages.py"),
            *("tests/eval/test_abstention.py", "tests/eval/test_context.py", "tests/eval/test_language.py"),
            "tests/eval/test_registry_pack.py",
        ),
    ),
    "parse": Area(
        ("eval/parse",),
        ("tests/eval/test_parse_*.py", "tests/eval/test_replies*.py", "tests/eval/test_vectors.py"),
    ),
    "stats": Area(
        ("eval/stats",),
        (
            *("tests/eval/test_stats_*.py", "tests/eval/test_compare.py"),
            *("tests/eval/test_blind.py", "tests/eval/test_overview.py"),
            *("tests/eval/test_levels.py", "tests/eval/test_losses.py", "tests/eval/test_stages.py"),
            *("tests/eval/test_mixed.py", "tests/eval/test_severity.py", "tests/eval/test_packs.py"),
            *("tests/eval/test_language.py", "tests/eval/test_offers_pack.py"),
            *("tests/eval/test_registry_pack.py", "tests/eval/test_context.py"),
            *("tests/eval/test_abstention.py", "tests/eval/test_headline_alone.py"),
            *("tests/eval/test_gate.py", "tests/eval/test_ranks.py", "tests/eval/test_unreviewed.py"),
            *("tests/eval/test_case_units.py", "tests/eval/test_same_digits.py", "tests/eval/test_defend.py"),
            *("tests/eval/live/test_live_stats.py", "tests/eval/live/test_live_defences.py"),
        ),
    ),
    "audits": Area(("audits",), ("tests/audits",)),
}


class Mutant(NamedTuple):
    """One changed place of one file."""

    area: str
    path: str
    line: int
    operator: str
    source: str
    """The whole mutated file."""
    before: str
    after: str
    """The changed lines, white space trimmed."""

    @property
    def key(self) -> tuple[str, str, str]:
        """How the list of equivalent mutants names it: line numbers would not last."""
        return self.path, self.before, self.after

    @property
    def digest(self) -> str:
        """Names the mutant in the file of verdicts: its path and its whole text."""
        return hashlib.sha256(f"{self.path}\n{self.source}".encode()).hexdigest()[:20]


def drawn(area: str, number: int, seed: int) -> list[Mutant]:
    """`number` different mutants of the area's code, in the order of the draw."""
    rng = random.Random(f"{seed}|{area}")
    places: dict[tuple[str, int, int], list[tuple[str, int]]] = {}
    for path in (p for folder in AREAS[area].code for p in sorted((ROOT / folder).rglob("*.py"))):
        name = path.relative_to(ROOT).as_posix()
        for line, column, operator, occurrence in _possible(path.read_text("utf-8")):
            places.setdefault((name, line, column), []).append((operator, occurrence))
    chosen: list[Mutant] = []
    for place in rng.sample(sorted(places), len(places)):
        if len(chosen) == number:
            break
        made = _made(area, place, rng.choice(places[place]))
        if made is not None:
            chosen.append(made)
    return chosen


def _possible(code: str) -> Iterator[tuple[int, int, str, int]]:
    """Line, column, operator and occurrence of every change that can be made, annotations left out."""
    tree = get_ast(code)
    hints = _annotations(code)
    for name in sorted(operator_names()):
        kind = get_operator(name)
        if kind.arguments() or name in INTERNING:
            continue
        operator = kind()
        found = (at for node in ast_nodes(tree) for at in operator.mutation_positions(node))
        for occurrence, ((line, column), _) in enumerate(found):
            if not any(start <= (line, column) < end for start, end in hints):
                yield line, column, name, occurrence


def _annotations(code: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations and docstrings stand, as spans of (line, column)."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(code)):
        hints = (getattr(node, "annotation", None), getattr(node, "returns", None))
        found += [hint for hint in hints if isinstance(hint, ast.expr)]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.append(node.value)
    return [((e.lineno, e.col_offset), (e.end_lineno or 0, e.end_col_offset or 0)) for e in found]


def _made(area: str, place: tuple[str, int, int], change: tuple[str, int]) -> Mutant | None:
    path, line, _ = place
    operator, occurrence = change
    code = (ROOT / path).read_text("utf-8")
    source = mutate_code(code, get_operator(operator)(), occurrence)
    if source is None or source == code:
        return None
    try:
        compile(source, path, "exec")
    except SyntaxError:  # `*` of a parameter list, say: not a mutant
        return None
    lines = list(difflib.unified_diff(code.splitlines(), source.splitlines(), lineterm="", n=0))[2:]
    before = " ".join(one[1:].strip() for one in lines if one.startswith("-"))
    after = " ".join(one[1:].strip() for one in lines if one.startswith("+"))
    return Mutant(area, path, line, operator.removeprefix("core/"), source, before, after)
