"""`rbtc release`: a build that passes the gate becomes a release folder that nothing changes any more."""

import re
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .. import __version__, live_types, schema
from ..errors import UserError
from ..io import audit_files, folders, manifest
from ..io.manifest import FileEntry, Gate, Kind, Manifest, Previous, printable
from ..io.resolve import HUB_ID
from .secrets import check_secrets

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

AUDIT = "audit_report.json"
AUDIT_PAGE = "audit_report.html"
BUILD_REPORT = "build_report.json"
GENERATIONS = "generations.jsonl"
"""The answers that the build was made with: who has them can build it again."""

CHECKPOINT = "checkpoint.json"
"""What a folder of weights says about itself; see docs/releases.md."""

RENDERED = ("README.md", "build_report.md", "croissant.json", "LICENSE")
"""Files that a dataset's release gets with its version in them, whatever the build had."""

NEVER_OVERWRITTEN = "a release is never overwritten, choose another --out"

_DOI = re.compile(r"10\.[0-9]{4,9}/[!-~]{1,200}")


class AuditReport(msgspec.Struct, frozen=True):
    """What a release needs of `audit_report.json`."""

    passed: bool
    build: str
    """`manifest.digest` of the Parquet files that were audited."""
    checks: list[dict[str, Any]]
    """Each with `id` and `status`: passed, failed, waived or not_run."""

    @property
    def red(self) -> list[str]:
        """Ids of the checks that keep the data in; a verdict that rests on nothing is one too."""
        failed = [str(check.get("id")) for check in self.checks if _blocks(check)]
        return failed or ([] if self.passed and self.checks else ["no check passed it"])

    @property
    def waived(self) -> tuple[str, ...]:
        return tuple(str(check.get("id")) for check in self.checks if check.get("status") == "waived")


def _blocks(check: dict[str, Any]) -> bool:
    left_out = check.get("status") == "not_run" and check.get("may_be_left_out") is None
    return left_out or check.get("status") not in ("passed", "waived", "not_run")


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


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the cards of a release are rendered from, besides the folder itself."""

    kind: Kind
    version: str
    created_at: str
    repo: str | None
    doi: str | None
    previous: Previous | None
    build: dict[str, Any]
    """`build_report.json`, or `checkpoint.json`."""
    audit: dict[str, Any] | None
    """`audit_report.json`."""
    files: dict[str, FileEntry]
    """The data files."""


Render = Callable[[Path, Facts], Mapping[str, bytes]]
"""Makes the files of a release that hold its version: card, reports, croissant.json."""

Audit = Callable[[Path], None]
"""Audits the copy of the build that is about to become the release, and writes its report there."""


def kind_of(folder: Path) -> Kind:
    """What a build folder holds. UserError if it is none."""
    if any((folder / "clean").glob("test-*.parquet")):
        return "robustbench-tc"
    if any((folder / schema.TASKS).glob("test-*.parquet")):
        return "robustbench-tc-live"
    if any(folder.glob("*/train-*.parquet")):
        return "toolrl-dr"
    if (folder / CHECKPOINT).is_file():
        return "checkpoint"
    raise UserError(
        f"{folder} is not a build: it has neither clean/test-*.parquet, nor {schema.TASKS}/test-*.parquet, "
        f"nor */train-*.parquet, nor {CHECKPOINT}"
    )


OWN_PROFILE = "own"
"""What a build of own tools says of its profile."""

OWN_DATA = "--i-own-this-data"
"""The option by which its maker says that a dataset of own tools may leave his hands."""


def unpublishable(kind: Kind, profile: str | None, own_data: bool = False) -> str | None:
    """Why a build of this profile is not published; None where it may be. `own_data`: OWN_DATA was said.

    The bundled worlds are the live dataset's own: nothing of upstream's stands behind them that they could
    be taken for.
    """
    if kind == "robustbench-tc" and profile == OWN_PROFILE and not own_data:
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
    render: Render,
    audit: Audit,
    kind: Kind | None = None,
    previous: Previous | None = None,
    repo: str | None = None,
    doi: str | None = None,
    trial: bool = False,
    own_data: bool = False,
    key: "Ed25519PrivateKey | None" = None,
) -> Manifest:
    """Freezes the build folder into the new folder `out` and returns its manifest.

    The gate's verdict is that of `audit`, which is run here on the very files that are released; a report
    that lies in the build is not read. `key` signs the manifest. `trial` lets the starter samples through,
    whose releases are never published; `own_data`: OWN_DATA was said. UserError where the gate is red, where
    `out` exists, or where a file holds a secret of the environment.
    """
    version = manifest.check_version(version)
    _check_names(repo, doi)
    if (build / manifest.NAME).is_file():
        raise UserError(f"{build} is a release already: name the build that it was made from")
    kind = kind or kind_of(build)
    folders.check_dir(out, kind="", force=False, exists=NEVER_OVERWRITTEN)
    if out.absolute().is_relative_to(build.absolute()):
        raise UserError(f"{out} lies inside the build: choose another --out")
    plain = _load(build / (CHECKPOINT if kind == "checkpoint" else BUILD_REPORT))
    about = _about(plain, build, kind)
    _check_profile(build, kind, about.profile, trial=trial, own_data=own_data)
    carried = _carried(build, kind, about)
    named = live_types.config_of if kind == "robustbench-tc-live" else str
    rows = {named(code): _total(counts) for code, counts in about.rows.items()}
    with folders.atomic_dir(out, hint=NEVER_OVERWRITTEN) as folder:
        for name in carried:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(build / name, folder / name, follow_symlinks=False)
        data = manifest.data_files({name: manifest.entry(folder / name) for name in carried}, kind)
        _check_counts(folder, data, rows)
        gate, report = None, None
        if kind != "checkpoint":
            gate, report = _pass_gate(build, folder, data, audit)
        facts = Facts(
            kind=kind,
            version=version,
            created_at=created_at,
            repo=repo,
            doi=doi,
            previous=previous,
            build=plain,
            audit=report,
            files=data,
        )
        for name, content in render(folder, facts).items():
            (folder / name).write_bytes(content)
        check_secrets(folder)
        frozen = Manifest(
            kind=kind,
            version=version,
            created_at=created_at,
            package_version=__version__,
            licence=about.licence,
            data_sha256=manifest.digest(data),
            seed=about.seed,
            profile=about.profile,
            rows=rows,
            sources=about.pins or about.sources,
            generators=about.generators,
            gate=gate,
            repo=repo,
            doi=doi,
            previous=previous,
            files={name: manifest.entry(folder / name) for name in manifest.files_of(folder)},
        )
        _seal(folder, frozen, key)
    return frozen


def _check_names(repo: str | None, doi: str | None) -> None:
    if repo is not None and not HUB_ID.fullmatch(repo):
        raise UserError(f"--repo {printable(repo)!r} is not a name on the Hub: give org/name")
    if doi is not None and not _DOI.fullmatch(doi):
        raise UserError(
            f"--doi {printable(doi)!r} is not a DOI: give one like 10.57967/hf/1234, without https://"
        )


def _seal(folder: Path, frozen: Manifest, key: "Ed25519PrivateKey | None") -> None:
    """Writes the manifest and its signature; from here on the files are read-only."""
    text = frozen.json()
    (folder / manifest.NAME).write_bytes(text)
    if key is not None:
        (folder / manifest.SIGNATURE).write_bytes(key.sign(text))
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o444)


def _pass_gate(
    build: Path, folder: Path, data: Mapping[str, FileEntry], audit: Audit
) -> tuple[Gate, dict[str, Any]]:
    """Audits the copy in `folder`; the verdict and the whole report. UserError unless it is green."""
    try:
        audit(folder)
        report = read_report(folder)
    except UserError as error:  # about the copy; the user knows the build
        raise UserError(str(error).replace(str(folder), str(build))) from None
    if failed := report.red:
        named = f" ({', '.join(failed[:5])}{', …' if len(failed) > 5 else ''})"
        raise UserError(f"the gate of {build} is red{named}: `rbtc audit {build}` shows what has to be fixed")
    if report.build != manifest.digest(dict(data)):
        raise UserError(f"the audit of {build} was about other data: something changes the folder, try again")
    gate = Gate(passed=True, report=AUDIT, checks=len(report.checks), waived=report.waived)
    return gate, _load(folder / AUDIT)


def facts_of(folder: Path, release: Manifest) -> Facts:
    """What the cards of a finished release were rendered from. Raises UserError."""
    checkpoint = release.kind == "checkpoint"
    return Facts(
        kind=release.kind,
        version=release.version,
        created_at=release.created_at,
        repo=release.repo,
        doi=release.doi,
        previous=release.previous,
        build=_load(folder / (CHECKPOINT if checkpoint else BUILD_REPORT)),
        audit=None if checkpoint else _load(folder / AUDIT),
        files=manifest.data_files(release.files, release.kind),
    )


def read_report(folder: Path) -> AuditReport:
    """The audit report in a folder. UserError where there is none, or none that this package wrote."""
    try:
        return msgspec.convert(_load(folder / AUDIT), AuditReport)
    except msgspec.ValidationError as error:
        raise UserError(f"{folder / AUDIT} is not as this package writes it: {error}") from None


def _check_profile(build: Path, kind: Kind, profile: str | None, *, trial: bool, own_data: bool) -> None:
    """UserError for a build that may not be released; `trial` lets the starter samples through."""
    reason = unpublishable(kind, profile, own_data)
    if reason is not None and kind == "robustbench-tc" and profile == OWN_PROFILE:
        raise UserError(f"{build} is not released: {reason}")
    if reason is not None and not trial:
        raise UserError(
            f"{build} cannot be released: {reason} (--trial makes a folder to try the commands on)"
        )


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
        if name in about.files or name in (BUILD_REPORT, audit_files.JUDGMENTS):
            carried.append(name)
        elif name not in (AUDIT, AUDIT_PAGE) and not name.startswith(audit_files.FOLDER):
            raise UserError(f"{build} holds {printable(name)}, which {BUILD_REPORT} does not name: remove it")
    return carried


def _check_counts(folder: Path, data: Mapping[str, FileEntry], rows: Mapping[str, int]) -> None:
    """UserError where the build report says another number of rows than the files hold."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    held: dict[str, int] = {}
    for name in data:
        if name.endswith(".parquet"):
            config = name.split("/")[0]
            try:
                held[config] = held.get(config, 0) + pq.read_metadata(folder / name).num_rows
            except pa.ArrowInvalid as error:
                raise UserError(f"{name} is not a readable Parquet file: {error}") from None
    for config, said in rows.items():
        found = held.get(config, 0)
        if said != found:
            raise UserError(
                f"{BUILD_REPORT} says {said} rows of {config}, the files hold {found}: build the folder again"
            )


def _load(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path} is missing: build the folder again") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no object: build the folder again")
    return found


def _about(plain: dict[str, Any], build: Path, kind: Kind) -> About:
    try:
        return msgspec.convert(plain, About)
    except msgspec.ValidationError as error:
        name = CHECKPOINT if kind == "checkpoint" else BUILD_REPORT
        raise UserError(f"{build / name} is not as this package writes it: {error}") from None


def _total(counts: Mapping[str, int]) -> int:
    """Rows of a config: by source in the benchmark's report, by split in that of the training data."""
    if "train" in counts:
        return counts["train"] + counts.get("validation", 0)
    return sum(counts.values())


def licence_text() -> bytes:
    """The licence that the package is installed with (Apache-2.0 asks for a copy with what is passed on)."""
    try:
        text = distribution("robustbench-tc").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        text = None
    if text is None:
        raise UserError("robustbench-tc is not installed with its LICENSE: install it with pip")
    return text.encode()
