"""`rbtc verify`: is this what was released? Damage is found by anybody, forgery needs a witness.

A folder's own manifest finds what was damaged on the way. Who forges a file forges its line in the manifest
too, so beyond that somebody else has to say what the files are: the holder of a key, by a signature over the
manifest (`--key`), or the Hub, by its listing of the commit (`org/name@v1.0.0`, `--against`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UserError
from ..io import manifest
from ..io.manifest import Contents, Problem, printable
from ..io.resolve import HUB_ID, read_yanked
from ..shown import Line, Part
from . import sign
from .hub import Hub, differs


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. Without a problem, the release is as its witness knows it."""

    name: str
    kind: str
    version: str
    witness: str
    """key, hub, key and hub; none: the folder's own manifest alone, which shows damage and no forgery."""
    commit: str | None = None
    """The Hub's, where it was asked."""
    files: int
    """Files that were compared."""
    problems: tuple[Problem, ...]
    tolerated: tuple[str, ...]
    """Files of git's and of the Hub's client, which are not looked into."""
    signed: bool
    """Whether a signature lies beside the manifest; only `--key` says whose."""
    yanked: str | None = None
    """Why this version was withdrawn."""

    @property
    def intact(self) -> bool:
        return not self.problems

    @property
    def exit_code(self) -> int:
        """1 where it is not as it was released."""
        return int(not self.intact)

    def shown(self) -> Iterator[Part]:
        """A line for each problem; without one, who says that it is intact."""
        yield from map(str, self.problems)
        if self.yanked:
            yield Line(f"warning: {self.name}: {self.yanked}", aside=True)
        if not self.intact:
            return
        if self.tolerated:
            more = f" and {len(self.tolerated) - 5} more" if len(self.tolerated) > 5 else ""
            yield f"not looked into: {', '.join(map(printable, self.tolerated[:5]))}{more}"
        what = f"{self.name}: {self.kind} {self.version}, all {self.files} files"
        if self.witness == "none":
            yield f"{what} are as its manifest says"
            yield "integrity only: a folder cannot vouch for itself; --key or --against ask somebody else"
            return
        signed, listed = "as the holder of the key signed them", f"those of the Hub's commit {self.commit}"
        vouched = {"key": signed, "hub": listed, "key and hub": f"{signed}, and {listed}"}[self.witness]
        yield f"{what} are {vouched}"

    def json(self) -> dict[str, Any]:
        """The fields, with foreign names made printable."""
        problems = [msgspec.structs.replace(one, path=printable(one.path)) for one in self.problems]
        changed = {
            "intact": self.intact,
            "problems": problems,
            "tolerated": [*map(printable, self.tolerated)],
        }
        return msgspec.structs.asdict(self) | changed


def verify(
    folder: Path | None, *, key: Path | None = None, hub: Hub | None = None, revision: str = ""
) -> Verified:
    """Compares every file of a release folder with its manifest, and that with whoever can vouch for it.

    `key`: a file with the ed25519 public key that must have signed the manifest. `hub` and `revision`: the
    repository whose commit must hold exactly these files; with `folder` None those are looked at that lie in
    the client's cache, or are fetched now. Raises UserError where there is no release.
    """
    name, commit, withdrawn = str(folder), None, None
    if hub is not None:
        name, commit = f"{hub.repo}@{revision}", hub.commit_of(revision)
        if folder is None:
            hub.progress(f"downloading what is not in the cache of {commit[:12]}")
            folder, withdrawn = hub.snapshot(commit), hub.yanked()
    assert folder is not None, "a folder, or a place on the Hub"
    release, found, problems = (
        manifest.read_manifest(folder),
        manifest.contents(folder),
        manifest.problems(folder),
    )
    if key is not None:
        problems += _signature(folder, found, key)
    if hub is not None and commit is not None:
        hub.progress("comparing with the Hub's listing")
        listed = {path: file for path, file in hub.tree(commit).items() if not manifest.is_tolerated(path)}
        # The list of withdrawn versions changes after the release, on main.
        problems += manifest.compared(folder, found, listed, differs, beside=(manifest.YANKED,))
        tagged = revision.removeprefix("v")
        if tagged != release.version and manifest.is_version(tagged):
            what = f"it says version {release.version}, the tag {revision}"
            problems.append(Problem("bad", manifest.NAME, what))
    # The manifest's and the Hub's word about a file are one finding.
    first = {(one.kind, one.path): one for one in reversed(problems)}
    if withdrawn is None:
        withdrawn = read_yanked(folder / manifest.YANKED)
    return Verified(
        name=name,
        kind=release.kind,
        version=release.version,
        witness=" and ".join(who for who, asked in (("key", key), ("hub", hub)) if asked) or "none",
        commit=commit,
        files=len(release.files) + 1,
        problems=tuple(reversed(first.values())),
        tolerated=found.tolerated,
        signed=manifest.SIGNATURE in found.files,
        yanked=next((one.line for one in withdrawn if one.version == release.version), None),
    )


def parse_name(name: str) -> tuple[str, str]:
    """The repository and the revision of `org/name@v1.0.0`. UserError where it is not of this form."""
    repo, at, revision = name.partition("@")
    if not HUB_ID.fullmatch(repo):
        raise UserError(f"{printable(name)}: no such folder, and no version on the Hub like org/name@v1.0.0")
    if not at or not revision:
        raise UserError(f"{repo} is not a version: name one, like {repo}@v1.0.0")
    return repo, revision


def _signature(folder: Path, found: Contents, key: Path) -> list[Problem]:
    public = sign.public_key(key)
    if manifest.SIGNATURE not in found.files:
        return [Problem("signature", manifest.SIGNATURE, "there is none: the release is unsigned")]
    signature = manifest.bounded(folder / manifest.SIGNATURE)
    if sign.is_signed_by(public, signature, (folder / manifest.NAME).read_bytes()):
        return []
    what = f"not made with the key of {key} over these bytes of {manifest.NAME}"
    return [Problem("signature", manifest.SIGNATURE, what)]
