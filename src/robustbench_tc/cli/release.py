"""`rbtc release`, `verify`, `diff`, `publish`: from a build to a version that anybody can load."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from . import _console

if TYPE_CHECKING:
    from ..freeze import Facts

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A release folder.")]
KindOption = Annotated[
    str | None,
    typer.Option(help="robustbench-tc, toolrl-dr or checkpoint; default: what the folder holds."),
]


def release(
    build: Annotated[Path, typer.Argument(metavar="BUILD", help="A build folder with a green audit.")],
    version: Annotated[str, typer.Option(help="Semantic, such as 1.0.0.")],
    out: Annotated[Path, typer.Option(help="The release folder; it must not exist.")],
    kind: KindOption = None,
) -> None:
    """Freeze an audited build: cards with its own numbers, croissant.json, and a manifest of every file.

    Example: rbtc release robustbench-tc --version 1.0.0 --out releases/1.0.0/robustbench-tc
    """
    from .. import freeze, manifest

    with _console.status("freezing"):
        frozen = freeze.release(
            build,
            out,
            version=version,
            created_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            render=render,
            kind=None if kind is None else manifest.check_kind(kind),
        )
    _console.out.print(f"{frozen.kind} {frozen.version}: {len(frozen.files)} files in {out}", markup=False)
    _console.out.print(f"sha256 of the data: {frozen.data_sha256}", markup=False)


def verify(folder: Folder) -> None:
    """Compare every file of a release with its manifest: one line per bad, missing or surplus file.

    Exit code 1 if there is one. Example: rbtc verify releases/1.0.0/robustbench-tc
    """
    from .. import manifest

    found = manifest.problems(folder)
    for line in found:
        typer.echo(line)
    if found:
        raise typer.Exit(1)
    frozen = manifest.read(folder)
    typer.echo(f"{folder}: {frozen.kind} {frozen.version}, all {len(frozen.files)} files as released")


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A folder, or org/name@REVISION on the Hub.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The same, of another version.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything, row by row, as JSON.")] = False,
) -> None:
    """Show added, removed and changed rows per config, and which changes can move scores.

    Example: rbtc diff releases/1.0.0/robustbench-tc acme/robustbench-tc@v1.0.1
    """
    import json

    from rich.table import Table

    from ..diff import diff as compare

    found = compare(_dataset(a), _dataset(b))
    if as_json:
        typer.echo(json.dumps(found.plain(), indent=1))
        return
    if found.is_equal:
        typer.echo(f"{a} and {b} hold the same rows")
        return
    table = Table()
    for column in ("config", "A", "B", "added", "removed", "changed", "fields", "can move scores"):
        table.add_column(column, justify="left" if column in ("config", "fields") else "right")
    for config in found.configs:
        if config.is_equal:
            continue
        fields = dict.fromkeys(field for change in config.changed for field in change.fields)
        moving = sum(change.moves_scores for change in config.changed) + len(config.reanchored)
        moving += 0 if config.table else len(config.added) + len(config.removed)
        counts = (config.before, config.after, len(config.added), len(config.removed), len(config.changed))
        table.add_row(config.config, *map(str, counts), ", ".join(fields), str(moving))
    _console.out.print(table)
    reanchored = sum(len(config.reanchored) for config in found.configs)
    if reanchored:
        typer.echo(f"{reanchored} equal rows are judged against a clean row whose tools changed")
    equal = sum(config.is_equal for config in found.configs)
    verdict = "can move scores" if found.moves_scores else "no change can move a score"
    typer.echo(f"{verdict}; {equal} of {len(found.configs)} configs are equal")


def publish(
    folder: Folder,
    repo: Annotated[str, typer.Argument(metavar="ORG/NAME", help="The repository on the Hub.")],
    kind: Annotated[
        str, typer.Option(help="robustbench-tc, toolrl-dr, or checkpoint (a model repository).")
    ] = "robustbench-tc",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, change nothing.")] = False,
    private: Annotated[bool, typer.Option("--private", help="If the repository has to be created.")] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that the Hub may be silent.")] = 300.0,
) -> None:
    """Put a release on the Hub: one commit, read back and compared, then tagged with its version.

    The token is HF_TOKEN's or that of `hf auth login`. Whatever breaks leaves no tag; the same command run
    again completes the upload.

    Example: rbtc publish releases/1.0.0/robustbench-tc acme/robustbench-tc --dry-run
    """
    import datasets
    from huggingface_hub.utils import logging
    from huggingface_hub.utils.tqdm import disable_progress_bars

    from .. import manifest
    from ..publish import publish as upload

    # What the clients say about their retries is not the message; ours names the step and the mend.
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    disable_progress_bars()
    datasets.utils.logging.set_verbosity_error()
    with _console.status("publishing") as progress:
        done = upload(
            folder,
            repo,
            kind=manifest.check_kind(kind),
            dry_run=dry_run,
            private=private,
            timeout_s=timeout,
            progress=progress,
        )
    size = sum(done.files.values())
    what = f"{len(done.files)} files, {size:,} bytes, to the {done.repo_type} {repo}, tag {done.tag}"
    for path in done.removed:
        _console.out.print(f"no longer in this version: {path}", markup=False)
    if dry_run:
        creates = "; the repository would be created" if done.creates_repo else ""
        _console.out.print(f"dry run, nothing was changed: {what}{creates}", markup=False)
        return
    _console.out.print(f"published {what}", markup=False)
    _console.out.print(
        f"commit {done.commit}; {done.read_back} files read back and found equal", markup=False
    )


def render(folder: Path, facts: "Facts") -> Mapping[str, bytes]:
    """The files of a release that are made anew: cards and reports with its version, croissant.json."""
    import msgspec

    from ..builders.report import BuildReport
    from ..builders.sources.pins import pins
    from ..builders.toolrl_report import TrainingReport
    from ..dataset_cards.checkpoint import checkpoint_card
    from ..dataset_cards.croissant import croissant
    from ..dataset_cards.facts import release_facts
    from ..dataset_cards.render import benchmark_card
    from ..dataset_cards.training import training_card

    if facts.kind == "checkpoint":
        return {"README.md": checkpoint_card(facts.build, facts.version).encode()}
    benchmark = facts.kind == "robustbench-tc"
    told = {**facts.build, "dataset_version": facts.version}
    report: BuildReport | TrainingReport
    try:
        report = msgspec.convert(told, BuildReport) if benchmark else msgspec.convert(told, TrainingReport)
    except msgspec.ValidationError as error:
        raise UserError(f"build_report.json is not of this package's version: {error}") from None
    read = {row["source"] for row in facts.build.get("pins", ())} if benchmark else {"toolrl"}
    sha256 = {path: entry.sha256 for path, entry in facts.files.items()}
    release = release_facts(
        folder,
        version=facts.version,
        sha256=sha256,
        audit=facts.audit or {},
        citations={name: origin.citation for name, origin in pins().sources.items() if name in read},
    )
    card = (
        benchmark_card(report, release) if isinstance(report, BuildReport) else training_card(report, release)
    )
    metadata = croissant(
        folder,
        name=facts.kind,
        version=facts.version,
        description="Tool calling under deployment noise" if benchmark else "Training rows for tool calling",
        sha256=sha256,
        cite_as="arXiv:2605.11928",
        keywords=("tool calling", "robustness"),
    )
    return {
        "README.md": card.encode(),
        "build_report.json": report.json(),
        "build_report.md": report.markdown().encode(),
        "croissant.json": metadata,
    }


def _dataset(name: str) -> Path:
    """A folder, or the Hub's `org/name@revision`."""
    from .. import manifest

    if Path(name).exists():
        return Path(name)
    repo, _, revision = name.partition("@")
    return manifest.resolve_dataset(repo, revision or None, patterns=["*/*.parquet", manifest.NAME])
