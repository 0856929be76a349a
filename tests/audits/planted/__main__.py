"""Prints the two tables of docs/audits.md, and writes them there.

python -m tests.audits.planted --sources ../shared/sources --recorded ../shared/recorded
"""

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from robustbench_tc.builders.rebuild import sources_at_hand
from robustbench_tc.errors import UserError
from robustbench_tc.io.files import atomic_file

from .build import EDITS
from .table import HEAD, PASSED, Verdicts, verdicts
from .variations import VARIATIONS, Found, found

DOCS = Path("docs/audits.md")

CASES = ("as planted, with sources", "as planted, without", "resealed, with sources", "resealed, without")


def main(
    sources: Annotated[Path, typer.Option(help="The upstream files.")] = Path("../shared/sources"),
    recorded: Annotated[Path, typer.Option(help="A folder with generations.jsonl.")] = Path(
        "../shared/recorded"
    ),
    docs: Annotated[Path, typer.Option(help="The page that holds the tables.")] = DOCS,
) -> None:
    """Plants every edit and builds every variation; ends with 1 if an edit or a variation surprises."""
    try:
        sources_at_hand(sources, "paper")
    except UserError as error:
        raise typer.BadParameter(str(error), param_hint="--sources") from None
    sources, recorded = sources.resolve(), recorded.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        edits, variations = Path(scratch) / "edits", Path(scratch) / "variations"
        edits.mkdir()
        variations.mkdir()
        planted = [_printed(one) for one in verdicts(sources, edits, EDITS)]
        varied = [_printed(one) for one in found(sources, recorded, variations, VARIATIONS, whole=True)]
    text = docs.read_text()
    varied_lines = ["| build | compared with | gate |", "|---|---|---|", *(one.line for one in varied)]
    for name, lines in (("edits", edit_lines(planted)), ("variations", varied_lines)):
        text = between(name, "\n".join(lines), text)
    with atomic_file(docs, replace=True) as path:
        path.write_text(text)
    surprises = [one for one in planted if not allowed(one)]
    odd = [one for one in varied if not one.as_it_should]
    sys.stdout.write("\n".join(["", *summary(planted), f"surprises: {len(surprises)}, {len(odd)}", ""]))
    raise typer.Exit(1 if surprises or odd else 0)


T = TypeVar("T", Verdicts, Found)


def _printed(one: T) -> T:
    sys.stdout.write(one.line + "\n")
    sys.stdout.flush()
    return one


def allowed(one: Verdicts) -> bool:
    """Caught; resealed and without sources, an edit of perturbed rows alone may pass."""
    *others, last = one.caught
    return PASSED not in others and (last != PASSED or not one.edit.clean)


def summary(planted: Iterable[Verdicts]) -> list[str]:
    """How many edits are caught in each case."""
    rows = list(planted)
    missed = Counter(
        case for one in rows for case, check in zip(CASES, one.caught, strict=True) if check == PASSED
    )
    return [f"- {case}: {len(rows) - missed[case]} of {len(rows)} caught" for case in CASES]


def edit_lines(planted: Iterable[Verdicts]) -> list[str]:
    rows = list(planted)
    return [*summary(rows), "", *HEAD.splitlines(), *(one.line for one in rows)]


def between(name: str, content: str, text: str) -> str:
    """The page with `content` between the markers `name`."""
    pattern = rf"(<!-- {name}: [^>]*-->\n).*?(<!-- end of {name} -->)"
    changed, times = re.subn(pattern, lambda m: f"{m.group(1)}{content}\n{m.group(2)}", text, flags=re.DOTALL)
    assert times == 1, f"no markers for {name}"
    return changed


if __name__ == "__main__":
    typer.run(main)
