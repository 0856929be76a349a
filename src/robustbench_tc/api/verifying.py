"""Releases held against what they should be, and against each other: `verify` and `diff`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors import UserError
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..release.diff import Differing
    from ..release.verify import Verified


def verify(
    release: Annotated[
        str | Path, Option(help="A release folder, or org/name@VERSION on the Hub.", typed=str)
    ],
    *,
    key: Annotated[
        Path | None, Option(help="The ed25519 public key that must have signed it, OpenSSH or PEM.")
    ] = None,
    against: Annotated[str | None, options.AGAINST] = None,
    kind: Annotated[
        Literal["robustbench-tc", "toolrl-dr", "robustbench-tc-live", "checkpoint"], options.KIND
    ] = "robustbench-tc",
    progress: Tell = silent,
) -> "Verified":
    """Compare every file of a release with its manifest; list bad, missing and surplus files, and links.

    Exits 1 if there is one. A folder alone shows damage but no forgery: whoever changes a file can change the
    manifest too. --key checks the maintainers' signature; org/name@v1.0.0, or --against for a local folder,
    compares with the Hub.

    Example: rbtc verify releases/1.0.0/robustbench-tc --key maintainers.pub
    Example: rbtc verify acme/robustbench-tc@v1.0.0

    Raises UserError if there is no release.

    >>> verify("releases/1.0.0/robustbench-tc").intact  # doctest: +SKIP
    """
    from ..release import verify as verifying
    from ..release.hub import Hub

    folder = Path(release).expanduser()
    if against is None and folder.exists():
        return verifying.verify(folder, key=key)
    if against is not None and not folder.exists():
        raise UserError(f"no folder at {release}: --against compares a local folder with one on the Hub")
    repo, revision = verifying.parse_name(against or str(release))
    hub = Hub(repo, "model" if kind == "checkpoint" else "dataset", progress=progress)
    return verifying.verify(None if against is None else folder, key=key, hub=hub, revision=revision)


def diff(
    a: Annotated[str | Path, Option(help="A folder, or org/name@REVISION on the Hub.", typed=str)],
    b: Annotated[str | Path, Option(help="Another version: a folder, or org/name@REVISION.", typed=str)],
) -> "Differing":
    """Show added, removed and changed rows per config, which of them can change scores, and the version step.

    Example: rbtc data diff releases/1.0.0/robustbench-tc acme/robustbench-tc@v1.0.1

    Raises UserError for a folder without a config.

    >>> diff("releases/1.0.0/robustbench-tc", "robustbench-tc").diff.step  # doctest: +SKIP
    """
    from ..io import manifest
    from ..io.resolve import dataset_folder
    from ..release.diff import Differing, diff as compare
    from ..release.versions import next_version

    folder = dataset_folder(str(a))
    found = compare(folder, dataset_folder(str(b)))
    version = None
    if (folder / manifest.NAME).is_file():
        version = next_version(manifest.read_manifest(folder).version, found.step)
    return Differing(str(a), str(b), found, version)
