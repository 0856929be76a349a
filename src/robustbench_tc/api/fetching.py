"""`data fetch`: the pinned upstream files, downloaded or checked."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..builders.sources.upstream import Fetched, Verification


def fetch(
    *,
    sources: Annotated[Path | None, options.SOURCES] = None,
    source: Annotated[Sequence[str], options.SOURCE] = (),
    check: Annotated[
        bool, Option(help="Download nothing; exit 1 if a file is missing or differs from its pin.")
    ] = False,
    mirror: Annotated[
        str | None,
        Option(help="Base URL with a raw file at BASE/owner/name/commit/path (default: GitHub's)."),
    ] = None,
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
    progress: Tell = silent,
) -> "Fetched | Verification":
    """Download the pinned upstream files, resuming an earlier download.

    Every file is checked against its sha256 before it gets its name; correct files are not downloaded again.

    Example: rbtc data fetch --sources ./sources

    Raises UserError naming the file.
    """
    from ..builders.sources.upstream import BASE_URL, default_root, fetch as download, resolve_root, verify

    only = tuple(source) or None
    if check:
        return verify(resolve_root(sources), only=only)
    return download(
        sources or default_root(),
        base_url=mirror or BASE_URL,
        only=only,
        discard_changes=discard_changes,
        progress=progress,
    )
