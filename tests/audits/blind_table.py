"""Prints the table of what needs no reading, and writes it to docs/statistics.md: the place of its figures.

`make blind`, or python -m tests.audits.blind_table --sources ../shared/sources
"""

import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from robustbench_tc.api.building import build_release
from robustbench_tc.audits import shortcuts
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.report import Shortcut
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.io.files import atomic_file

DOCS = Path("docs/statistics.md")

PLACE = re.compile(r"(<!-- blind: [^>]*-->\n).*?(<!-- end of blind -->)", re.DOTALL)


def main(
    sources: Annotated[Path, typer.Option(help="The upstream files.")] = Path("../shared/sources"),
    docs: Annotated[Path, typer.Option(help="The page that holds the table.")] = DOCS,
) -> None:
    """Builds profile paper and writes what needs no reading in it."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "robustbench-tc"
        build_release(BuildSpec(profile="paper", sources=sources.resolve()), out)
        found = shortcuts.audit(Folder(out))[0]
    text = "\n".join(lines(found)) + "\n"
    sys.stdout.write(text)
    page, times = PLACE.subn(lambda match: match.group(1) + text + match.group(2), docs.read_text())
    assert times == 1, f"no place for the table in {docs}"
    with atomic_file(docs, replace=True) as path:
        path.write_text(page)


def lines(found: Sequence[Shortcut]) -> Iterable[str]:
    """The table: right choices, types with the same figures in one line."""
    policies = list(found[0].right)
    yield f"| type | rows | {' | '.join(policies)} | classifier | chance |"
    yield f"|---|---:|{'---:|' * (len(policies) + 2)}"
    alike: dict[str, list[str]] = {}
    for one in found:
        shown = [one.rows, *one.right.values(), one.classifier, f"{one.chance:.3f}"]
        alike.setdefault(" | ".join(map(str, shown)), []).append(one.type_code)
    yield from (f"| {', '.join(codes)} | {figures} |" for figures, codes in alike.items())


if __name__ == "__main__":
    typer.run(main)
