"""The table of planted edits: each as planted and resealed, with sources and without."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from robustbench_tc.api.building import build_release
from robustbench_tc.audits import gate, provenance
from robustbench_tc.audits.again import rebuild_of
from robustbench_tc.audits.audit_files import JUDGMENTS
from robustbench_tc.audits.folder import Folder
from robustbench_tc.audits.page import render
from robustbench_tc.audits.provenance.beside import Cards
from robustbench_tc.audits.report import AuditReport
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.errors import UserError
from robustbench_tc.io import manifest, marker
from robustbench_tc.release import freeze
from robustbench_tc.release.verify import verify

from ..builds import made_once
from . import of_files, of_releases, of_reports, of_rows  # noqa: F401 - importing them registers the edits
from .build import Base, Edit, Forged

PASSED = "passes"


class Verdicts(NamedTuple):
    """What became of an edit."""

    edit: Edit
    caught: tuple[str, ...]
    """The first check that fails, the refusal's message, or `passes`: as planted with sources and without,
    resealed with sources and without."""

    @property
    def line(self) -> str:
        return f"| {self.edit.area} | {self.edit.name.replace('|', '/')} | " + " | ".join(self.caught) + " |"


def verdicts(
    sources: Path, scratch: Path, edits: Sequence[Edit], resealed_only: bool = False
) -> Iterator[Verdicts]:
    """Builds the paper profile, plants each edit in a copy of it, and audits the cases."""
    bases = Bases(sources, scratch)
    auditor = Auditor(sources, scratch / "rebuilds", bases.key)
    for planted in edits:
        with tempfile.TemporaryDirectory(dir=scratch) as place:
            first = Forged(bases.folder(planted.base), Path(place) / "planted")
            planted.plant(first)
            caught: list[str] = []
            for reseal in (True,) if resealed_only else (False, True):
                forged = first.copy(Path(place) / f"{reseal}" / "robustbench-tc")
                forged.finish(reseal=reseal)
                caught += [auditor.first_failure(forged.path, with_sources) for with_sources in (True, False)]
            yield Verdicts(planted, tuple(caught))


class Bases:
    """What edits are planted in, each made when it is first needed; all of them pass."""

    def __init__(self, sources: Path, scratch: Path) -> None:
        self._sources, self._root = sources, scratch / "bases"
        self._made: dict[Base, Path] = {}
        self._signer = Ed25519PrivateKey.generate()
        self._root.mkdir()
        self.key = self._root / "key.pub"
        self.key.write_bytes(self._signer.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))

    def folder(self, base: Base) -> Path:
        if base not in self._made:
            made = self._made[base] = self._make(base, self._root / base / "robustbench-tc")
            found = provenance.audit(Folder(made), rebuild_of(made, self._sources))
            assert not [check.id for check in found.checks if check.blocks], base
        return self._made[base]

    def _make(self, base: Base, out: Path) -> Path:
        if base == "build":
            build_release(BuildSpec(profile="paper", sources=self._sources), out)
            return out
        if base == "release":  # which runs the whole gate
            out.parent.mkdir()
            options = {"version": "1.0.0", "created_at": "2026-11-21T09:30:00Z", "repo": "org/robustbench-tc"}
            freeze.release(self.folder("build"), out, sources=self._sources, key=self._signer, **options)  # type: ignore[arg-type]
            return out
        shutil.copytree(self.folder("build"), out)
        report = msgspec.json.decode((self.folder("release") / marker.AUDIT).read_bytes(), type=AuditReport)
        judgments = b'{"score": 5}\n'
        files = {JUDGMENTS: marker.sha256_of(judgments)}
        (out / "audit").mkdir()
        (out / JUDGMENTS).write_bytes(judgments)
        report = msgspec.structs.replace(report, files=files)
        (out / marker.AUDIT).write_bytes(report.json())
        (out / marker.PAGE).write_text(render(report))
        return out


class Auditor:
    """Audits builds; the same rebuild is made once, the same text judged once."""

    def __init__(self, sources: Path, rebuilds: Path, key: Path) -> None:
        self._sources, self._rebuilds, self._key = sources, rebuilds, key
        self._gates: dict[str, str] = {}
        self._rendered: dict[str, Mapping[str, bytes]] = {}
        self._seen: dict[tuple[bool, str], str] = {}
        rebuilds.mkdir()

    def first_failure(self, build: Path, with_sources: bool) -> str:
        """The first check that fails: of its provenance, of a release's signature, of the whole gate; or why
        there is no audit. The same release is audited once."""
        if not (build / manifest.SIGNATURE).exists():
            return self._first_failure(build, with_sources)
        seen = with_sources, repr(sorted(marker.hashes(build, but="").items()))
        if seen not in self._seen:
            self._seen[seen] = self._first_failure(build, with_sources)
        return self._seen[seen]

    def _first_failure(self, build: Path, with_sources: bool) -> str:
        nowhere = {"RBTC_SOURCES": str(self._rebuilds / "no-sources")}
        sources = self._sources if with_sources else None
        with mock.patch.dict(os.environ, nowhere):
            try:
                rebuild = rebuild_of(build, sources)
                rebuild = rebuild._replace(cards=self._cards(rebuild.cards))
                if rebuild.make is not None:
                    rebuild = rebuild._replace(make=made_once(rebuild.make, self._rebuilds, not with_sources))
                found = (check for step, _ in provenance.steps(Folder(build), rebuild) for check in step)
                if failing := next((check.id for check in found if check.blocks), None):
                    return failing
                if (build / manifest.NAME).exists() and (wrong := verify(build, key=self._key).problems):
                    return f"`verify --key`: {wrong[0].kind}"
                return self._gate(build)
            except UserError as error:
                said = str(error).replace(str(build), "BUILD")
                return f"refused: {re.split(r':| [(]', said)[0]}"

    def _gate(self, build: Path) -> str:
        """The rest of the gate, which needs no sources."""
        seen = repr(sorted(marker.hashes(build, but="").items()))
        if seen not in self._gates:
            self._gates[seen] = next((check.id for check in gate.audit(build).blocking), PASSED)
        return self._gates[seen]

    def _cards(self, render: Cards | None) -> Cards:
        """A release's cards, rendered once for the same folder."""

        def rendered_once(build: Path) -> Mapping[str, bytes]:
            seen = repr(sorted(marker.hashes(build, but="").items()))
            if seen not in self._rendered:
                assert render is not None
                self._rendered[seen] = render(build)
            return self._rendered[seen]

        return rendered_once


HEAD = (
    "| part | edit | as planted, sources | as planted, none | resealed, sources | resealed, none |\n"
    "|---|---|---|---|---|---|"
)
