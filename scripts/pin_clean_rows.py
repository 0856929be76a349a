"""Writes the digests of the clean rows that ship with the package, from the pinned sources.

python scripts/pin_clean_rows.py --sources ../shared/sources
"""

import tempfile
from pathlib import Path
from typing import Annotated, get_args

import msgspec
import typer
from rich.console import Console

from robustbench_tc.api.building import build_release
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.provenance.clean_rows import PINNED, Pinned, found_digests, pinned
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.configs import VERSION
from robustbench_tc.builders.sources import Profile
from robustbench_tc.io.files import atomic_file
from robustbench_tc.sources import names


def main(
    sources: Annotated[Path, typer.Option(help="The upstream files.")],
    out: Annotated[Path, typer.Option(help="The file of digests.")] = PINNED,
) -> None:
    """Builds the clean rows of every profile; digests of other dataset versions stay as they are."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for profile in get_args(Profile):
            build = Path(scratch) / profile
            build_release(BuildSpec(profile=profile, sources=sources, codes=()), build)
            found[profile] = found_digests(Folder(build), names())
    made = Pinned(sources=names(), profiles=found)
    data = msgspec.json.format(msgspec.json.encode({**pinned(), VERSION: made}), indent=1) + b"\n"
    with atomic_file(out, replace=out == PINNED) as path:
        path.write_bytes(data)
    Console().print(f"{out.name}: {len(found)} profiles of version {VERSION}")


if __name__ == "__main__":
    typer.run(main)
