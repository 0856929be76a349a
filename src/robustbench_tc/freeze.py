"""`rbtc release`: a build with a green audit becomes a release folder that nothing changes any more."""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import msgspec

from . import __version__, files, manifest
from .errors import UserError
from .manifest import FileEntry, Gate, Kind, Manifest

AUDIT = "audit_report.json"
AUDIT_PAGE = "audit_report.html"
BUILD_REPORT = "build_report.json"
CHECKPOINT = "checkpoint.json"
"""What a folder of weights says about itself; see docs/releases.md."""

RENDERED = ("README.md", "build_report.md", "croissant.json", "LICENSE")
"""Files that a dataset's release gets anew, whatever the build had."""

SECRET_NAMES = re.compile(r"(?:^|_)(?:TOKEN|KEY|SECRET|PASSWORD)$")
"""Environment variables whose value must be in no file of a release."""

SECRET_LENGTH = 12
"""Shorter values could stand anywhere."""


class AuditReport(msgspec.Struct, frozen=True):
    """What a release needs of `audit_report.json`."""

    passed: bool
    build: str
    """`manifest.digest` of the Parquet files that were audited."""
    checks: list[dict[str, Any]]
    """Each with `id` and `status`: passed, failed, waived or not_run."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the cards of a release are rendered from, besides the folder itself."""

    kind: Kind
    version: str
    build: dict[str, Any]
    """`build_report.json`, or `checkpoint.json`."""
    audit: dict[str, Any] | None
    """`audit_report.json`."""
    files: dict[str, FileEntry]
    """The data files."""


Render = Callable[[Path, Facts], Mapping[str, bytes]]
"""Makes the files of a release that hold its version: card, reports, croissant.json."""


def kind_of(folder: Path) -> Kind:
    """What a build folder holds. UserError if it is none."""
    if any((folder / "clean").glob("test-*.parquet")):
        return "robustbench-tc"
    if any(folder.glob("*/train-*.parquet")):
        return "toolrl-dr"
    if (folder / CHECKPOINT).is_file():
        return "checkpoint"
    raise UserError(
        f"{folder} is no build: it has neither clean/test-*.parquet, nor */train-*.parquet, nor {CHECKPOINT}"
    )


def release(
    build: Path, out: Path, *, version: str, created_at: str, render: Render, kind: Kind | None = None
) -> Manifest:
    """Freezes the build folder into the new folder `out` and returns its manifest.

    UserError where the gate is not green for exactly these bytes, where `out` exists, or where a file holds a
    secret of the environment.
    """
    version = manifest.check_version(version)
    if (build / manifest.NAME).is_file():
        raise UserError(f"{build} is a release already: name the build that it was made from")
    kind = kind or kind_of(build)
    if out.exists():
        raise UserError(f"{out} exists: a release is never overwritten, choose another --out")
    if out.absolute().is_relative_to(build.absolute()):
        raise UserError(f"{out} lies inside the build: choose another --out")
    names = _data_names(build, kind)
    data = {name: manifest.entry(build / name) for name in names}
    about = _load(build / (CHECKPOINT if kind == "checkpoint" else BUILD_REPORT))
    _check_counts(build, names, about)
    gate, audit = (None, None) if kind == "checkpoint" else check_gate(build, data)
    with files.atomic_dir(out, mend="a release is never overwritten, choose another --out") as folder:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(build / name, folder / name)
        for name in (AUDIT, AUDIT_PAGE):
            if (build / name).is_file():
                shutil.copyfile(build / name, folder / name)
        facts = Facts(kind=kind, version=version, build=about, audit=audit, files=data)
        made = dict(render(folder, facts))
        if kind != "checkpoint":  # a model may be under another licence, which lies beside it
            made["LICENSE"] = _licence_text()
        for name, content in made.items():
            (folder / name).write_bytes(content)
        check_secrets(folder)
        frozen = Manifest(
            kind=kind,
            version=version,
            created_at=created_at,
            package_version=__version__,
            licence=str(about.get("licence", "apache-2.0")),
            data_sha256=manifest.digest(data),
            seed=about.get("seed"),
            profile=about.get("profile"),
            rows={config: _total(counts) for config, counts in about.get("rows", {}).items()},
            sources=tuple(about.get("pins") or about.get("files") or ()),
            generators=about.get("generators", {}),
            gate=gate,
            files={name: manifest.entry(folder / name) for name in manifest.files_of(folder)},
        )
        (folder / manifest.NAME).write_bytes(frozen.json())
        for path in folder.rglob("*"):
            if path.is_file():
                path.chmod(0o444)
    return frozen


def check_gate(build: Path, data: Mapping[str, FileEntry]) -> tuple[Gate, dict[str, Any]]:
    """The verdict on exactly these data files, and the whole report. UserError unless it is green."""
    path = build / AUDIT
    if not path.is_file():
        raise UserError(f"{build} was not audited: run `rbtc audit {build}` first")
    plain = _load(path)
    try:
        report = msgspec.convert(plain, AuditReport)
    except msgspec.ValidationError as error:
        raise UserError(f"{path} is no audit report: {error}") from None
    failed = [str(check.get("id")) for check in report.checks if _blocks(check)]
    if not report.checks:
        raise UserError(f"{path} holds no check: run `rbtc audit {build}` again")
    if failed or not report.passed:
        named = f" ({', '.join(failed[:5])}{', …' if len(failed) > 5 else ''})" if failed else ""
        raise UserError(f"the gate of {build} is red{named}: mend the build and run `rbtc audit {build}`")
    if report.build != manifest.digest(dict(data)):
        raise UserError(f"{path} is about other data than {build} holds: run `rbtc audit {build}` again")
    waived = tuple(str(check["id"]) for check in report.checks if check.get("status") == "waived")
    return Gate(passed=True, report=AUDIT, checks=len(report.checks), waived=waived), plain


def _blocks(check: dict[str, Any]) -> bool:
    left_out = check.get("status") == "not_run" and check.get("may_be_left_out") is None
    return left_out or check.get("status") == "failed"


def check_secrets(folder: Path) -> None:
    """UserError if a file holds the value of a secret environment variable, or the Hub's stored token."""
    from huggingface_hub import get_token

    known = {name: value for name, value in os.environ.items() if SECRET_NAMES.search(name)}
    known |= {"the Hub's token": get_token() or ""}
    secrets = {name: value.strip() for name, value in known.items() if len(value.strip()) >= SECRET_LENGTH}
    if not secrets:
        return
    for name in manifest.files_of(folder):
        for text in _texts(folder / name):
            for secret, value in secrets.items():
                if value.encode() in text:
                    raise UserError(f"{name} holds the value of {secret}: remove it from the build")


def _texts(path: Path) -> list[bytes]:
    """The bytes to search of a file: for Parquet those of every column's values, weights are passed over."""
    if path.suffix == ".parquet":
        import pyarrow as pa

        from . import parquet

        with parquet.opened(path) as file:
            found = []
            for batch in file.iter_batches(use_threads=False):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                found.append(sink.getvalue().to_pybytes())
            return found
    if path.stat().st_size > 64 * 2**20:
        return []
    return [path.read_bytes()]


def _data_names(build: Path, kind: Kind) -> list[str]:
    """The build's data files. UserError for a file that no release has: nothing comes along unseen."""
    known = {AUDIT, AUDIT_PAGE, BUILD_REPORT, *RENDERED}
    names = []
    for name in manifest.files_of(build):
        if kind == "checkpoint":
            if name != "README.md":
                names.append(name)
        elif name.endswith(".parquet"):
            names.append(name)
        elif name not in known:
            raise UserError(f"{build} holds {name}, which is no part of a release: remove it")
    return names


def _check_counts(build: Path, names: list[str], about: dict[str, Any]) -> None:
    """UserError where the build report says another number of rows than the files hold."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    held: dict[str, int] = {}
    for name in names:
        if name.endswith(".parquet"):
            config = name.split("/")[0]
            try:
                held[config] = held.get(config, 0) + pq.read_metadata(build / name).num_rows
            except pa.ArrowInvalid as error:
                raise UserError(f"{build / name} is no readable Parquet file: {error}") from None
    for config, counts in about.get("rows", {}).items():
        said, found = _total(counts), held.get(config, 0)
        if said != found:
            raise UserError(
                f"{BUILD_REPORT} says {said} rows of {config}, the files hold {found}: build the folder again"
            )


def _load(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"{path} is missing: build the folder again") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no object: build the folder again")
    return found


def _total(counts: Any) -> int:
    """Rows of a config: by source in the benchmark's report, by split in that of the training data."""
    if "train" in counts:
        return int(counts["train"]) + int(counts["validation"])
    return sum(counts.values())


def _licence_text() -> bytes:
    """The licence that the package is installed with (Apache-2.0 asks for a copy with what is passed on)."""
    try:
        text = distribution("robustbench-tc").read_text("licenses/LICENSE")
    except PackageNotFoundError:
        text = None
    if text is None:
        raise UserError("robustbench-tc is not installed with its LICENSE: install it with pip")
    return text.encode()
