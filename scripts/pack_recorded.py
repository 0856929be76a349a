"""Packs recorded answers and judgments into the files that ship with the package.

python scripts/pack_recorded.py ../shared/recorded
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from robustbench_tc.builders.generators.recorded import SHIPPED, pack
from robustbench_tc.builders.perturb import abstention_recorded
from robustbench_tc.io.files import atomic_file


def main(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder with generations.jsonl, judgments.jsonl, …: ../shared/recorded."),
    ],
    out: Annotated[Path, typer.Option(help="The packed file.")] = SHIPPED,
) -> None:
    """Writes the packed file, and that of the abstention pack beside it; the same folder gives the same
    bytes."""
    beside = out.with_name(abstention_recorded.SHIPPED.name)
    for place, data in ((out, pack(folder)), (beside, abstention_recorded.pack(folder))):
        with atomic_file(place, replace=out == SHIPPED) as path:
            path.write_bytes(data)
        Console().print(f"{place.name}: {len(data)} bytes")


if __name__ == "__main__":
    typer.run(main)
