"""Writes the digests that ship with the package, of everything that this package builds: `make digests`.

python scripts/pin_digests.py --sources DIR --world-python PYTHON
"""

import tempfile
from pathlib import Path
from typing import Annotated, get_args

import msgspec
import typer
from rich.console import Console

from robustbench_tc import schema
from robustbench_tc.api.building import build_release, build_training
from robustbench_tc.audits.folder import Folder, type_name
from robustbench_tc.audits.provenance.shipped import PINNED, Pinned, build_of, found_digests, task_digests
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.configs import VERSION
from robustbench_tc.builders.live import build as live
from robustbench_tc.builders.sources import Profile
from robustbench_tc.io import parquet
from robustbench_tc.io.files import atomic_file
from robustbench_tc.schema import LiveRow, arrow_schema
from robustbench_tc.sources import names


def main(
    sources: Annotated[Path, typer.Option(help="The upstream files, ToolRL's among them.")],
    world_python: Annotated[Path, typer.Option(help="The Python that has BFCL's classes (make env-live).")],
    out: Annotated[Path, typer.Option(help="The file of digests.")] = PINNED,
) -> None:
    """Builds clean rows, live tasks and training rows of every profile, and writes their digests."""
    with tempfile.TemporaryDirectory() as scratch:
        made = {
            "benchmark": Pinned(VERSION, benchmark(sources, Path(scratch)), names()),
            "live": Pinned(live.VERSION, tasks(sources, str(world_python))),
            "training": Pinned(VERSION, training(sources, Path(scratch))),
        }
    data = msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
    with atomic_file(out, replace=out == PINNED) as path:
        path.write_bytes(data)
    builds = ", ".join(f"{kind} {one.version}: {len(one.builds)}" for kind, one in made.items())
    Console().print(f"{out.name}: {builds}")


def benchmark(sources: Path, scratch: Path) -> dict[str, dict[str, str]]:
    """Profile → table → digest."""
    found = {}
    for profile in get_args(Profile):
        build_release(BuildSpec(profile=profile, sources=sources, codes=()), scratch / profile)
        found[profile] = found_digests(Folder(scratch / profile))
    return found


def tasks(sources: Path, python: str) -> dict[str, dict[str, str]]:
    """Profile → world → digest."""
    found = {}
    wanted = arrow_schema(LiveRow)
    columns = [(field.name, type_name(field.type)) for field in wanted]
    for profile in get_args(live.Profile):
        spec = live.LiveSpec(profile=profile, sources=sources, python=python)
        parts = parquet.batches(live.rows_of("clean", live.prepared(spec, probe=False)), live.TABLE_ROWS)
        tables = (schema.arrow_table(part, LiveRow) for part in parts)
        found[profile] = task_digests(columns, (row for table in tables for row in table.to_pylist()))
    return found


def training(sources: Path, scratch: Path) -> dict[str, dict[str, str]]:
    """Settings → split or file → digest, of the build that `rbtc build toolrl-dr` makes of these sources."""
    folder = scratch / "toolrl-dr"
    build_training(folder, rlla=sources, sources=sources)
    return {build_of(Folder(folder)): found_digests(Folder(folder))}


if __name__ == "__main__":
    typer.run(main)
