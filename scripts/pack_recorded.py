"""Packs recorded answers and judgments into the one file that ships with the package.

python scripts/pack_recorded.py ../shared/recorded
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from robustbench_tc.builders.generators.recorded import SHIPPED, pack
from robustbench_tc.io.files import atomic_file


def main(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder with generations.jsonl, judgments.jsonl, …: ../shared/recorded."),
    ],
    out: Annotated[Path, typer.Option(help="The packed file.")] = SHIPPED,
) -> None:
    """Writes the packed file; the same folder gives the same bytes."""
    data = pack(folder)
    with atomic_file(out, replace=out == SHIPPED) as path:
        path.write_bytes(data)
    Console().print(f"{out.name}: {len(data)} bytes")


if __name__ == "__main__":
    typer.run(main)
