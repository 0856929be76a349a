"""`rbtc release`, `diff`, `amend`: from a build to a version, and in what versions differ."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from . import _console
from ._worlds import World, WorldPython

if TYPE_CHECKING:
    from ..release.diff import Diff

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


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A folder, or org/name@REVISION on the Hub.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The same, of another version.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything, row by row, as JSON.")] = False,
) -> None:
    """Show added, removed and changed rows per config, which can move scores, and the step of the version.

    Example: rbtc diff releases/1.0.0/robustbench-tc acme/robustbench-tc@v1.0.1
    """

    from ..api.at_hand import dataset_folder
    from ..io import manifest
    from ..release.diff import diff as compare
    from ..release.versions import next_version

    folder = dataset_folder(a)
    found = compare(folder, dataset_folder(b))
    after = None
    if (folder / manifest.NAME).is_file():
        after = next_version(manifest.read(folder).version, found.step)
    if as_json:
        _console.json({**found.plain(), "next_version": after})
        return
    if found.is_equal:
        _console.echo(f"{a} and {b} hold the same rows")
        return
    print_diff(found)
    if after is not None:
        _console.echo(f"{found.step} step: B follows A as version {after} or higher")
    else:
        _console.echo(f"{found.step} step")


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
    print_diff(done.diff)
    if others:
        _console.echo(f"{len(others)} rows of other samples differ too, the first {others[0]}")
    _console.echo(f"{done.diff.step} step: release it as {done.next_version} or more")
    _console.echo(f"next: rbtc audit {out}")
    _console.echo(f"then: rbtc release {out} --version {done.next_version} --previous {folder} --out …")


def print_diff(found: "Diff") -> None:
    """The configs that differ as a table, and the verdict."""
    from rich.table import Table

    table = Table()
    words = ("config", "step", "fields")
    numbers = ("A", "B", "added", "removed", "changed", "can move scores", "to ask again")
    for column in (*words, *numbers):
        table.add_column(column, justify="left" if column in words else "right")
    for config in found.configs:
        if config.is_equal:
            continue
        fields = dict.fromkeys(field for change in config.changed for field in change.fields)
        moving = sum(change.moves_scores for change in config.changed) + len(config.reanchored)
        moving += 0 if config.table else len(config.added) + len(config.removed)
        counts = (config.before, config.after, len(config.added), len(config.removed), len(config.changed))
        counted = map(str, (*counts, moving, config.asked_again or 0))
        table.add_row(config.config, config.step, ", ".join(fields), *counted)
    _console.out.print(table)
    for config in found.configs:
        if config.dropped:
            _console.echo(f"{config.config} is gone")
        elif config.redefined:
            _console.echo(f"{config.config} changes its meaning: {', '.join(config.redefined)}")
    reanchored = sum(len(config.reanchored) for config in found.configs)
    if reanchored:
        _console.echo(f"{reanchored} equal rows are judged against a clean row whose tools changed")
    equal = sum(config.is_equal for config in found.configs)
    verdict = "can move scores" if found.moves_scores else "no change can move a score"
    _console.echo(f"{verdict}; {equal} of {len(found.configs)} configs are equal")
    for step, configs in found.moved.items():
        _console.echo(f"{step}: {', '.join(configs)}")
    if found.rows:
        _console.echo(f"a run has to ask {found.asked_again} of {found.rows} rows again{_carried(found)}")


def _carried(found: "Diff") -> str:
    """Where the other answers go: a live run is another one on another dataset, and is played whole."""
    from ..schema import TASKS

    is_live = any(config.config == TASKS for config in found.configs)
    return (
        " (a live run carries no answers over)" if is_live else " (rbtc eval --reuse carries the others over)"
    )


def _now() -> datetime:
    return datetime.now(UTC)
