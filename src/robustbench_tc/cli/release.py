"""`rbtc release`, `amend`: from a build to a version."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError
from . import _console
from ._worlds import World, WorldPython

KindOption = Annotated[
    str | None,
    typer.Option(
        help="robustbench-tc, toolrl-dr, robustbench-tc-live or checkpoint; default: what the folder holds."
    ),
]
Sources = Annotated[
    Path | None, typer.Option(help="Upstream files (default: RBTC_SOURCES, else the fetched ones).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def release(
    build: Annotated[Path, typer.Argument(metavar="BUILD", help="What `rbtc build` wrote.")],
    version: Annotated[str, typer.Option(help="Semantic, such as 1.0.0.")],
    out: Annotated[Path, typer.Option(help="The release folder; it must not exist.")],
    kind: KindOption = None,
    previous: Annotated[
        str | None,
        typer.Option(help="The version before, a folder or org/name@v1.0.0: --version must be high enough."),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(help="An ed25519 private key, OpenSSH or PEM, that signs the manifest.")
    ] = None,
    repo: Annotated[
        str | None, typer.Option(help="Where it will be published, org/name: the address in its citation.")
    ] = None,
    doi: Annotated[str | None, typer.Option(help="The DOI that was reserved for this version.")] = None,
    sources: Sources = None,
    benchmark: Annotated[
        Path | None, typer.Option(help="For training data: the benchmark that they must not hold.")
    ] = None,
    training: Annotated[
        Path | None, typer.Option(help="A training build that must not ask what this benchmark asks.")
    ] = None,
    world: World = None,
    world_python: WorldPython = None,
    trial: Annotated[
        bool, typer.Option("--trial", help="Let the starter samples through, to try the commands.")
    ] = False,
    own_data: Annotated[
        bool,
        typer.Option("--i-own-this-data", help="A dataset of own tools may leave your hands."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Audit a build and freeze it: cards with its own numbers, croissant.json, a manifest of every file.

    The audit is run here, on the files that are released; a report in the build is not read. Texts that a
    judge has not scored refuse the release.

    Example: rbtc release robustbench-tc --version 1.0.0 --out releases/1.0.0/robustbench-tc
    Example: rbtc release robustbench-tc --version 1.1.0 --out releases/1.1.0/robustbench-tc \\
    --previous acme/robustbench-tc@v1.0.0 --sign ~/.ssh/releases --repo acme/robustbench-tc
    """
    from .. import api
    from ..io import manifest
    from ..release.sign import ask_passphrase, private_key

    key = None
    if sign is not None:
        key = private_key(sign, warn=_console.warn, passphrase=ask_passphrase())
    with _console.status("releasing", _console.written_whole(out)) as progress:
        frozen = api.release(
            build,
            out,
            version=version,
            created_at=_now().isoformat(timespec="seconds").replace("+00:00", "Z"),
            kind=None if kind is None else manifest.check_kind(kind),
            previous=previous,
            repo=repo,
            doi=doi,
            trial=trial,
            own_data=own_data,
            key=key,
            sources=sources,
            benchmark=benchmark,
            training=training,
            worlds=tuple(world or ()),
            world_python=world_python,
            progress=progress,
        )
    if as_json:
        return _console.json(frozen.json())
    counted = f"{len(frozen.files) + 1} files in {out}"  # with the manifest, as `rbtc verify` counts
    _console.out.print(f"{frozen.kind} {frozen.version}: {counted}", markup=False)
    if frozen.gate is not None:
        waived = f", {len(frozen.gate.waived)} waived" if frozen.gate.waived else ""
        _console.out.print(f"the gate is green: {frozen.gate.checks} checks{waived}", markup=False)
    _console.out.print(f"sha256 of the data: {frozen.data_sha256}", markup=False)
    if key is not None:
        _console.out.print(f"signed: {out / manifest.SIGNATURE}", markup=False)


def amend(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release folder of the benchmark.")],
    clean_id: Annotated[str, typer.Option(help="The sample whose golden answers are wrong.")],
    answers: Annotated[
        Path, typer.Option(help="JSON file: the right golden answers, as the column golden_answers has them.")
    ],
    reason: Annotated[str, typer.Option(help="What was wrong, in one sentence; the card shows it.")],
    out: Annotated[Path, typer.Option(help="The new build; it must not exist.")],
    sources: Sources = None,
    as_json: AsJson = False,
) -> None:
    """Correct a golden answer: build the release again with an erratum, and show what that changes.

    The new build passes the gate like any other before it becomes a version. Every row of the sample follows
    the new answers: a list of answers, each a list of calls with a name and, per parameter, the list of its
    accepted values.

    Example: rbtc amend releases/1.0.0/robustbench-tc --clean-id bfcl_v3__simple_7 --answers right.json \\
    --reason "The unit is kilometres." --out robustbench-tc
    """
    from .. import api
    from ..io.errata import read_answers

    reason = " ".join(reason.split())
    if not reason:
        raise UserError("--reason is empty: say in one sentence what was wrong")
    with _console.status("amending", _console.written_whole(out)) as progress:
        done = api.amend(
            folder,
            out,
            clean_id=clean_id,
            answers=read_answers(answers),
            reason=reason,
            date=_now().date().isoformat(),
            sources=sources,
            progress=progress,
        )
    others = sorted(
        {
            change.id
            for config in done.diff.configs
            for change in config.changed
            if change.moves_scores and not change.id.startswith(f"{clean_id}::")
        }
    )
    if as_json:
        import msgspec

        plain = {
            "erratum": msgspec.to_builtins(done.erratum),
            "next_version": done.next_version,
            "other_rows": others,
            "diff": done.diff.plain(),
        }
        _console.json(plain)
        return
    _console.show(done.diff)
    if others:
        _console.echo(f"{len(others)} rows of other samples differ too, the first {others[0]}")
    _console.echo(f"{done.diff.step} step: release it as {done.next_version} or more")
    _console.echo(f"next: rbtc audit {out}")
    _console.echo(f"then: rbtc release {out} --version {done.next_version} --previous {folder} --out …")


def _now() -> datetime:
    return datetime.now(UTC)
