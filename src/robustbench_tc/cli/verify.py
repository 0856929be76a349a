"""`rbtc verify`: is this what was released?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from . import _console

if TYPE_CHECKING:
    from ..release.verify import Verified


def verify(
    name: Annotated[
        str, typer.Argument(metavar="DIR|ORG/NAME@VERSION", help="A release folder, or one on the Hub.")
    ],
    key: Annotated[
        Path | None, typer.Option(help="The ed25519 public key that must have signed it, OpenSSH or PEM.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="ORG/NAME@VERSION", help="Compare the folder with this commit on the Hub."),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            help="What the Hub's repository is: robustbench-tc, toolrl-dr, robustbench-tc-live or checkpoint."
        ),
    ] = "robustbench-tc",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compare every file of a release with its manifest: a line per bad, missing or surplus file, and link.

    Exit code 1 if there is one. A folder alone shows damage, no forgery: whoever changes a file can change
    the manifest too. --key asks the maintainers' signature, org/name@v1.0.0 and --against ask the Hub.

    Example: rbtc verify releases/1.0.0/robustbench-tc --key maintainers.pub
    Example: rbtc verify acme/robustbench-tc@v1.0.0
    """
    from ..io import manifest
    from ..release import verify as verifying

    _console.quiet_clients()
    folder = Path(name).expanduser()
    is_local = folder.exists()
    if is_local and against is None:
        found = verifying.verify(folder, key=key)
    else:
        if not is_local and against is not None:
            raise UserError(f"no folder at {name}: --against compares a folder here with one on the Hub")
        repo, revision = verifying.parse_name(against if is_local and against else name)
        from ..io.hub import Hub

        repo_type = "model" if manifest.check_kind(kind) == "checkpoint" else "dataset"
        with _console.status("verifying") as progress:
            hub = Hub(repo, repo_type, progress=progress)
            if is_local:
                found = verifying.verify(folder, key=key, hub=hub, revision=revision)
            else:
                found = verifying.verify_on_hub(hub, revision, key=key)
    if as_json:
        _console.json(_verified(found))
    else:
        _print_verified(found, name)
    if not found.intact:
        raise typer.Exit(1)


def _print_verified(found: "Verified", name: str) -> None:
    from ..io import manifest

    for problem in found.problems:
        _console.echo(str(problem))
    if found.yanked:
        _console.warn(f"{name}: {found.yanked}")
    if not found.intact:
        return
    if found.tolerated:
        shown = ", ".join(manifest.printable(path) for path in found.tolerated[:5])
        more = f" and {len(found.tolerated) - 5} more" if len(found.tolerated) > 5 else ""
        _console.echo(f"not looked into: {shown}{more}")
    what = f"{name}: {found.kind} {found.version}, all {found.files} files"
    if found.witness == "none":
        _console.echo(f"{what} are as its manifest says")
        _console.echo(
            "integrity only: a folder cannot vouch for itself; --key or --against ask somebody else"
        )
        return
    signed, listed = (
        "are as the holder of the key signed them",
        f"are those of the Hub's commit {found.commit}",
    )
    vouched = {"key": signed, "hub": listed, "key and hub": f"{signed}, and {listed}"}[found.witness]
    _console.echo(f"{what} {vouched}")


def _verified(found: "Verified") -> dict[str, object]:
    import msgspec

    from ..io.manifest import printable

    plain: dict[str, object] = msgspec.to_builtins(found)
    plain["intact"] = found.intact
    plain["problems"] = [
        {"kind": problem.kind, "path": printable(problem.path), "what": problem.what}
        for problem in found.problems
    ]
    plain["tolerated"] = [printable(path) for path in found.tolerated]
    return plain
