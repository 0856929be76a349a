"""`rbtc release`: a build that passes the gate becomes a release folder that nothing changes any more."""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from .. import __version__, live_types, schema, taxonomy
from ..audits import audit_files, gate
from ..builders.sources import OWN_CASES
from ..dataset_cards.checkpoint import NAME as CHECKPOINT
from ..dataset_cards.released import read_build_file, render
from ..errors import UserError
from ..io import folders, manifest, marker
from ..io.manifest import FileEntry, Gate, Kind, Manifest, Previous, printable
from ..io.resolve import HUB_ID, dataset_folder
from ..shown import Part
from .diff import diff
from .secrets import check_secrets
from .versions import check_step

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NEVER_OVERWRITTEN = "a release is never overwritten, choose another --out"

_DOI = re.compile(r"10\.[0-9]{4,9}/[!-~]{1,200}")


class About(msgspec.Struct, frozen=True):
    """What a manifest takes over of `build_report.json`, or `checkpoint.json`."""

    rows: dict[str, dict[str, int]] = {}
    files: dict[str, str] = {}
    seed: int | None = None
    profile: str | None = None
    licence: str = "apache-2.0"
    pins: tuple[dict[str, Any], ...] = ()
    sources: tuple[dict[str, Any], ...] = ()
    generators: dict[str, Any] = {}

    def total(self, kind: Kind) -> dict[str, int]:
        """Config → rows; training data count perturbed rows besides those of their splits."""
        named = live_types.config_of if kind == "robustbench-tc-live" else str
        besides = ("perturbed", "validation_perturbed")
        return {
            named(code): sum(n for what, n in counts.items() if what not in besides)
            for code, counts in self.rows.items()
        }


class Released(NamedTuple):
    """A release, and where it lies."""

    manifest: Manifest
    folder: Path

    @property
    def version(self) -> str:
        return self.manifest.version

    @property
    def files(self) -> dict[str, FileEntry]:
        return self.manifest.files

    def json(self) -> bytes:
        """`manifest.json`."""
        return self.manifest.json()

    def shown(self) -> Iterator[Part]:
        """What was released, and what the gate said."""
        one, signature = self.manifest, self.folder / manifest.SIGNATURE
        # With the manifest, as `rbtc verify` counts.
        yield f"{one.kind} {one.version}: {len(one.files) + 1} files in {self.folder}"
        if one.gate is not None:
            waived = f", {len(one.gate.waived)} waived" if one.gate.waived else ""
            yield f"the gate is green: {one.gate.checks} checks{waived}"
        yield f"sha256 of the data: {one.data_sha256}"
        if signature.is_file():
            yield f"signed: {signature}"


_KINDS: dict[str, Kind] = {
    f"{taxonomy.CLEAN}/test-*.parquet": "robustbench-tc",
    f"{schema.TASKS}/test-*.parquet": "robustbench-tc-live",
    "*/train-*.parquet": "toolrl-dr",
    CHECKPOINT: "checkpoint",
}
"""What a folder holds of a kind, and no other."""


def kind_of(folder: Path) -> Kind:
    """What a build folder holds. UserError if it is none."""
    for pattern, kind in _KINDS.items():
        if any(folder.glob(pattern)):
            return kind
    raise UserError(f"{folder} is not a build: it has none of {', '.join(_KINDS)}")


OWN_DATA = "--i-own-this-data"
"""The option by which its maker says that a dataset of own tools may leave his hands."""


def unpublishable(kind: Kind, profile: str | None, own_data: bool = False) -> str | None:
    """Why a build of this profile is not published; None where it may be. `own_data`: OWN_DATA was said.

    The bundled worlds are the live dataset's own: nothing of upstream's stands behind them that they could
    be taken for.
    """
    if kind == "robustbench-tc" and profile == OWN_CASES and not own_data:
        return f"it holds somebody's own tools and requests: {OWN_DATA} says that they may leave your hands"
    if kind != "robustbench-tc-live" and profile == "bundled":
        return "it holds the starter samples, which are never published as the benchmark"
    return None


def release(
    build: Path,
    out: Path,
    *,
    version: str,
    created_at: str,
    previous: str | None = None,
    repo: str | None = None,
    doi: str | None = None,
    trial: bool = False,
    own_data: bool = False,
    key: "Ed25519PrivateKey | None" = None,
    **audit: Any,
) -> Manifest:
    """Freezes the build folder into the new folder `out` and returns its manifest.

    The gate's verdict is that of an audit (with the options `audit` of `gate.audit`) which is run here on the
    very files that are released; a report that lies in the build is not read. `previous`: a folder or
    `org/name@v1.0.0` that this version follows. `key` signs the manifest. `trial` lets the starter samples
    through, whose releases are never published; `own_data`: OWN_DATA was said. UserError where the gate is
    red, where the version says less than the data have changed, where `out` exists, or where a file holds a
    secret of the environment.
    """
    version = manifest.check_version(version)
    followed = None if previous is None else _follows(build, version, previous)
    if repo is not None and not HUB_ID.fullmatch(repo):
        raise UserError(f"--repo {printable(repo)!r} is not a name on the Hub: give org/name")
    if doi is not None and not _DOI.fullmatch(doi):
        raise UserError(
            f"--doi {printable(doi)!r} is not a DOI: give one like 10.57967/hf/1234, without https://"
        )
    if (build / manifest.NAME).is_file():
        raise UserError(f"{build} is a release already: name the build that it was made from")
    kind = kind_of(build)
    folders.check_dir(out, kind="", force=False, exists=NEVER_OVERWRITTEN)
    if out.absolute().is_relative_to(build.absolute()):
        raise UserError(f"{out} is inside the build: choose another --out")
    described = build / (CHECKPOINT if kind == "checkpoint" else marker.BUILD)
    about = read_build_file(described, About)
    reason, starters = unpublishable(kind, about.profile, own_data), about.profile == "bundled"
    if reason is not None and not (trial and starters):
        hint = " (--trial makes a folder to try the commands on)" if starters else ""
        raise UserError(f"{build} cannot be released: {reason}{hint}")
    carried = _carried(build, kind, about)
    with folders.atomic_dir(out, hint=NEVER_OVERWRITTEN) as folder:
        for name in carried:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(build / name, folder / name, follow_symlinks=False)
        data = manifest.data_files({name: manifest.entry(folder / name) for name in carried}, kind)
        verdict = None if kind == "checkpoint" else _audited(build, folder, data, audit)
        frozen = Manifest(
            kind=kind,
            version=version,
            created_at=created_at,
            package_version=__version__,
            licence=about.licence,
            data_sha256=manifest.digest(data),
            seed=about.seed,
            profile=about.profile,
            rows=about.total(kind),
            sources=about.pins or about.sources,
            generators=about.generators,
            gate=verdict,
            repo=repo,
            doi=doi,
            previous=followed,
            files=data,
        )
        for name, content in render(folder, frozen).items():
            (folder / name).write_bytes(content)
        check_secrets(folder)
        files = {name: manifest.entry(folder / name) for name in manifest.files_of(folder)}
        frozen = msgspec.structs.replace(frozen, files=files)
        text = frozen.json()
        (folder / manifest.NAME).write_bytes(text)
        if key is not None:
            (folder / manifest.SIGNATURE).write_bytes(key.sign(text))
        for path in filter(Path.is_file, folder.rglob("*")):
            path.chmod(0o444)
    return frozen


def _follows(build: Path, version: str, previous: str) -> Previous:
    """What the manifest says of the version before. UserError where the new number is too low."""
    folder = dataset_folder(previous)
    before = manifest.read_manifest(folder)
    step = diff(folder, build).step
    check_step(version, before, step)
    return Previous(before.version, before.data_sha256, step)


def _audited(build: Path, folder: Path, data: Mapping[str, FileEntry], options: Mapping[str, Any]) -> Gate:
    """Audits the copy in `folder` and writes the reports there. UserError unless the gate is green."""
    files: dict[str, bytes] = {}
    try:
        report = gate.audit(folder, **options, files=files, green_only=True)  # nobody would see a red one's
    except UserError as error:  # about the copy; the user knows the build
        raise UserError(str(error).replace(str(folder), str(build))) from None
    if missing := report.unjudged():
        raise UserError(
            f"{build}: nobody judged {', '.join(f'{code} ({n:,})' for code, n in missing.items())}: "
            f"run `rbtc audit {build} --judge MODEL@URL`, which keeps its judgments in the build"
        )
    if not report.is_green:
        failed = [check.id for check in report.blocking] or ["no check passed it"]
        named = f" ({', '.join(failed[:5])}{', …' if len(failed) > 5 else ''})"
        raise UserError(f"the gate of {build} is red{named}: `rbtc audit {build}` shows what has to be fixed")
    if report.build != manifest.digest(dict(data)):
        raise UserError(
            f"the audit of {build} was about other data: the folder was changed meanwhile, try again"
        )
    report = msgspec.structs.replace(report, name=build.resolve().name)
    (folder / audit_files.JUDGMENTS).unlink(missing_ok=True)  # the copy's: the audit writes them again
    gate.write(report, folder, files)
    waived = tuple(check.id for check in report.having("waived"))
    return Gate(True, marker.AUDIT, len(report.checks), waived)


def _carried(build: Path, kind: Kind, about: About) -> list[str]:
    """The files of a build that its release starts from.

    UserError for a link, and for a file that neither the build nor its audit made: nothing comes unseen.
    """
    found = manifest.contents(build)
    if found.links:
        raise UserError(
            f"{build} holds the link {printable(found.links[0])}: a release holds plain files only"
        )
    if kind == "checkpoint":
        return [name for name in found.files if name not in ("README.md", manifest.NAME)]
    carried = []
    for name in found.files:
        if name in about.files or name in (marker.BUILD, audit_files.JUDGMENTS):
            carried.append(name)
        elif name not in (marker.AUDIT, marker.PAGE) and not name.startswith(audit_files.FOLDER):
            raise UserError(f"{build} holds {printable(name)}, which {marker.BUILD} does not name: remove it")
    return carried
