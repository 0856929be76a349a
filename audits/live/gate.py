"""The verdict on a live build, from everything that must hold of it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from robustbench_tc.worlds.handle import WorldType

from .. import provenance
from ..folder import Folder, unreadable
from ..hygiene.files import audit as other_files
from ..provenance import Provenance, Rebuild
from ..report import Check
from .scan import LiveScan, scan

if TYPE_CHECKING:
    from ..expectations.gx import Validated


def checks(
    build: Folder,
    *,
    rebuild: Rebuild | None,
    types: Mapping[str, WorldType],
    allowed: frozenset[str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> "tuple[list[Check], list[Validated], Provenance, LiveScan]":
    """The checks but for waivers, the suites that were run, where the build comes from, and the pass.

    `types`: the worlds that may be opened, by name. A row's own word for its world opens nothing else.
    """
    from ..expectations import gx, live

    progress("comparing with the sources")
    origin = provenance.audit(build, rebuild)
    progress("reading every row and replaying gold")
    found = asyncio.run(scan(build, types, allowed))
    progress("validating")
    with gx.collected() as validated:
        made = [*origin.checks, *live.suites(build, found)]
    made += other_files(build)
    made.append(unreadable(build))
    return made, validated, origin, found
