"""`release`: audits a copy of the build and freezes it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .at_hand import dataset_folder
from .auditing import audit
from .judges import replayed_judge
from .progress import Progress
from .rendering import render

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from ..io.manifest import Kind, Manifest, Previous


def release(
    build_folder: Path,
    out: Path,
    *,
    version: str,
    created_at: str,
    kind: "Kind | None" = None,
    previous: str | None = None,
    repo: str | None = None,
    doi: str | None = None,
    trial: bool = False,
    own_data: bool = False,
    key: "Ed25519PrivateKey | None" = None,
    sources: Path | None = None,
    benchmark: Path | None = None,
    training: Path | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
    progress: Progress = lambda line: None,
) -> "Manifest":
    """`rbtc release`: audits the build, replaying its stored judgments, and freezes what passed.

    `previous`: a folder or `org/name@v1.0.0` that this version follows; a version that says less than the
    data have changed is refused. `key` signs the manifest. `sources`, `benchmark`, `training`, `worlds` and
    `world_python`: as for `audit`. `own_data`: a dataset of own tools may leave your hands. Raises UserError.
    """
    from ..io import manifest
    from ..release import freeze

    version = manifest.check_version(version)
    followed = None if previous is None else _follows(build_folder, version, previous)

    def gate(folder: Path) -> None:
        given = {"sources": sources, "benchmark": benchmark, "training": training}
        _audit_copy(build_folder, folder, progress, **given, worlds=worlds, world_python=world_python)

    return freeze.release(
        build_folder,
        out,
        version=version,
        created_at=created_at,
        render=render,
        audit=gate,
        kind=kind,
        previous=followed,
        repo=repo,
        doi=doi,
        trial=trial,
        own_data=own_data,
        key=key,
    )


def _follows(build_folder: Path, version: str, previous: str) -> "Previous":
    """What the manifest says of the version before. UserError where the new number is too low."""
    from ..io import manifest
    from ..release.diff import diff
    from ..release.versions import check_step

    folder = dataset_folder(previous)
    before = manifest.read(folder)
    step = diff(folder, build_folder).step
    check_step(version, before, step)
    return manifest.Previous(before.version, before.data_sha256, step)


def _audit_copy(build_folder: Path, folder: Path, progress: Progress, **given: Any) -> None:
    """Audits the copy of a build in `folder`, with what else `audit` is `given`; the reports go there.

    UserError for a missing judgment.
    """
    import msgspec

    from ..audits import gate
    from ..io.audit_files import JUDGMENTS

    stored = folder / JUDGMENTS
    files: dict[str, bytes] = {}
    report = audit(
        folder,
        judge=replayed_judge(folder),
        **given,
        progress=progress,
        files=files,
        green_only=True,  # a red one is not released: nobody would see them
    )
    if missing := report.unjudged():
        raise UserError(
            f"{build_folder}: nobody judged {', '.join(f'{code} ({n:,})' for code, n in missing.items())}: "
            f"run `rbtc audit {build_folder} --judge MODEL@URL`, which keeps its judgments in the build"
        )
    stored.unlink(missing_ok=True)  # the copy's: the audit writes them again
    gate.write(msgspec.structs.replace(report, name=build_folder.resolve().name), folder, files)
