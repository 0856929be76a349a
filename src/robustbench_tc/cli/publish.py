"""`rbtc publish`, `yank`: a version onto the Hub, and a warning on one that is there."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from . import _console

Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that the Hub may be silent.")]


def publish(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release folder.")],
    repo: Annotated[str, typer.Argument(metavar="ORG/NAME", help="The repository on the Hub.")],
    kind: Annotated[
        str,
        typer.Option(
            help="robustbench-tc, toolrl-dr, robustbench-tc-live, or checkpoint (a model repository)."
        ),
    ] = "robustbench-tc",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, change nothing.")] = False,
    private: Annotated[bool, typer.Option("--private", help="If the repository has to be created.")] = False,
    own_data: Annotated[
        bool,
        typer.Option("--i-own-this-data", help="A dataset of own tools may leave your hands."),
    ] = False,
    timeout: Timeout = 300.0,
) -> None:
    """Put a release on the Hub: one commit, read back and compared, then tagged with its version.

    The token is HF_TOKEN's or that of `hf auth login`. Whatever breaks leaves no tag; the same command run
    again completes the upload.

    Example: rbtc publish releases/1.0.0/robustbench-tc acme/robustbench-tc --dry-run
    """
    from .. import api
    from ..io import manifest

    kept = "the tag comes last, so no half version is there; the same command completes the upload"
    with _console.status("publishing", kept) as progress:
        done = api.publish(
            folder,
            repo,
            kind=manifest.check_kind(kind),
            dry_run=dry_run,
            private=private,
            own_data=own_data,
            timeout_s=timeout,
            progress=progress,
        )
    size = sum(done.files.values())
    what = f"{len(done.files)} files, {size:,} bytes, to the {done.repo_type} {repo}, tag {done.tag}"
    for path in done.removed:
        _console.out.print(f"no longer in this version: {manifest.printable(path)}", markup=False)
    if dry_run:
        creates = "; the repository would be created" if done.creates_repo else ""
        _console.out.print(f"dry run, nothing was changed: {what}{creates}", markup=False)
        return
    _console.out.print(f"published {what}", markup=False)
    _console.out.print(
        f"commit {done.commit}; {done.read_back} files read back and found equal", markup=False
    )


def yank(
    name: Annotated[
        str, typer.Argument(metavar="DIR|ORG/NAME@VERSION", help="A release folder, or one on the Hub.")
    ],
    reason: Annotated[str | None, typer.Option(help="Why, in one sentence for whoever loads it.")] = None,
    use: Annotated[str | None, typer.Option(help="The version to take instead.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take it back.")] = False,
    kind: Annotated[
        str,
        typer.Option(
            help="What the Hub's repository is: robustbench-tc, toolrl-dr, robustbench-tc-live or checkpoint."
        ),
    ] = "robustbench-tc",
    timeout: Timeout = 300.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Withdraw a version: it stays where it is, and everybody who loads it is warned.

    On the Hub, `yanked.json` and the top of the card on main say so; no tag moves. In a folder, `yanked.json`
    does, and `rbtc publish` refuses it.

    Example: rbtc yank acme/robustbench-tc@v1.0.0 --reason "Golden answers of 12 rows are wrong." --use 1.1.0
    """
    import msgspec

    from ..io import manifest
    from ..io.hub import Hub
    from ..release.verify import parse_name
    from ..release.yank import yank as withdraw, yank_on_hub

    if undo == (reason is not None):
        raise UserError(
            "--undo takes no --reason" if undo else "--reason is missing: say why, in one sentence"
        )
    date = datetime.now(UTC).date().isoformat()
    folder = Path(name).expanduser()
    if folder.exists():
        done = withdraw(folder, reason, date=date, use=use)
        where = str(folder / manifest.YANKED)
    else:
        repo, revision = parse_name(name)
        repo_type = "model" if manifest.check_kind(kind) == "checkpoint" else "dataset"
        with _console.status("yanking") as progress:
            hub = Hub(repo, repo_type, timeout_s=timeout, progress=progress)
            done = yank_on_hub(hub, revision, reason, date=date, use=use)
        where = f"{repo}, commit {done.commit}"
    if as_json:
        _console.json(msgspec.to_builtins(done))
        return
    said = f"version {done.version} is no longer withdrawn" if undo else f"{done.yanked[-1].line}"
    _console.out.print(f"{said} ({where})", markup=False, soft_wrap=True)
