"""`rbtc publish`: a release folder onto the Hub as one commit, read back, then tagged.

The tag is the last thing that happens. Whatever breaks before it leaves no version behind, and the same
command run again completes the upload: what the Hub has already is not sent twice.
"""

import tempfile
from collections.abc import Collection, Iterator
from itertools import groupby
from pathlib import Path

import msgspec
import pyarrow as pa

from ..builders.configs import combined
from ..dataset_cards.released import read_audit
from ..errors import UserError
from ..io import manifest, parquet
from ..io.manifest import Manifest
from ..io.resolve import read_yanked
from ..option import Tell, silent
from ..shown import Part
from .diff import configs_of
from .freeze import unpublishable
from .hub import AGAIN, TIMEOUT_S, Hub


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """What `publish` did, or with `dry_run` would do."""

    repo: str
    repo_type: str
    tag: str
    commit: str | None
    """None for a dry run."""
    files: dict[str, int]
    """Path → bytes of the release's files."""
    removed: tuple[str, ...]
    """Files of the repository's last version that this one does not have."""
    creates_repo: bool
    read_back: int
    """Files whose bytes were downloaded again and compared."""

    def shown(self) -> Iterator[Part]:
        """What lies there now, or would."""
        size = sum(self.files.values())
        what = f"{len(self.files)} files, {size:,} bytes, to the {self.repo_type} {self.repo}, tag {self.tag}"
        yield from (f"no longer in this version: {manifest.printable(path)}" for path in self.removed)
        if self.commit is None:
            creates = "; the repository would be created" if self.creates_repo else ""
            yield f"dry run, nothing was changed: {what}{creates}"
            return
        yield f"published {what}"
        yield f"commit {self.commit}; {self.read_back} files read back and found equal"


def publish(
    folder: Path,
    repo: str,
    *,
    token: str | None = None,
    dry_run: bool = False,
    private: bool = False,
    own_data: bool = False,
    timeout_s: float = TIMEOUT_S,
    progress: Tell = silent,
) -> Published:
    """Uploads the release `folder` to `repo` and tags it with its version.

    `token` None: the one of HF_TOKEN or `hf auth login`. `dry_run` asks the Hub but changes nothing.
    `own_data`: OWN_DATA was said. Raises UserError, one line without the token in it, for a folder that is
    not a gated release, a token without write rights, a tag that exists, and for whatever breaks
    on the way.
    """
    release = check_folder(folder, own_data)
    repo_type = "model" if release.kind == "checkpoint" else "dataset"
    hub = Hub(repo, repo_type, token=token, timeout_s=timeout_s, progress=progress)
    if release.repo not in (None, repo):
        raise UserError(f"{folder} was released for {release.repo}: release it with --repo {repo}")
    hub.check_token()
    head, tags = hub.refs()
    if release.tag in tags:
        same = hub.read_file(manifest.NAME, release.tag) == (folder / manifest.NAME).read_bytes()
        there = "these very bytes: nothing to do" if same else "other bytes: release under a new --version"
        raise UserError(f"{repo} has the tag {release.tag} already, with {there}")
    signed = (folder / manifest.SIGNATURE).is_file()
    files = {path: folder / path for path in (*release.files, manifest.NAME, *[manifest.SIGNATURE] * signed)}
    kept = {*files, manifest.YANKED}  # which versions were withdrawn stays true under every later one
    listed = hub.tree(head) if head else {}
    done = Published(
        repo=repo,
        repo_type=repo_type,
        tag=release.tag,
        commit=None,
        files={path: place.stat().st_size for path, place in files.items()},
        removed=tuple(path for path in listed if path not in kept and not manifest.is_tolerated(path)),
        creates_repo=head is None,
        read_back=0,
    )
    if dry_run:
        return done
    head = head or hub.create(private)
    progress(f"uploading {len(files)} files")
    commit = hub.commit(files, f"Release {release.tag}", head=head, removed=done.removed)
    read_back(hub, folder, files, commit)
    hub.tag(release.tag, commit)
    return msgspec.structs.replace(done, commit=commit, read_back=len(files))


def check_folder(folder: Path, own_data: bool = False) -> Manifest:
    """The manifest of a folder that may be published. UserError if it is unreleased, ungated or changed."""
    release = manifest.read_manifest(folder)
    if release.kind != "checkpoint" and (release.gate is None or not release.gate.passed):
        raise UserError(f"{folder} has no green gate: release its build again")
    if reason := unpublishable(release.kind, release.profile, own_data):
        raise UserError(f"{folder}: {reason}")
    if found := manifest.problems(folder):
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UserError(f"{folder} is not as it was released: {found[0]}{more}; `rbtc verify` lists all")
    if release.gate is not None:
        report = read_audit(folder)
        named = release.gate.report in release.files
        if not (named and report.is_green and report.build == release.data_sha256):
            raise UserError(f"{folder}: its audit report is not green for its data: release its build again")
    for yank in read_yanked(folder / manifest.YANKED):
        if yank.version == release.version:
            raise UserError(f"{folder}: {yank.line}: publish another version")
    return release


def read_back(hub: Hub, folder: Path, files: Collection[str], commit: str) -> None:
    """Downloads every file at `commit` again, and loads every config as users will.

    UserError naming the first file or config that differs from the folder's.
    """
    import datasets

    datasets.disable_progress_bars()
    datasets.utils.logging.set_verbosity_error()
    hub.progress("reading back")
    there = hub.snapshot(commit, again=True)
    for path in files:
        if manifest.unlike(there / path, manifest.entry(folder / path)):
            raise UserError(f"{hub.repo}: {path} has other bytes when read back; {AGAIN}")
    configs = configs_of(folder) if hub.repo_type == "dataset" else {}
    for config, codes in combined(configs).items():
        configs[config] = [path for code in codes for path in configs[code]]
    for config, paths in configs.items():
        hub.progress(f"loading {config}")
        with tempfile.TemporaryDirectory() as cache:
            named = {"revision": commit, "token": hub.token, "cache_dir": cache}
            loaded = hub.step(f"loading {config}", AGAIN, datasets.load_dataset, hub.repo, config, **named)
            parts = groupby(paths, lambda path: path.name.split("-")[0])
            held = {split: pa.concat_tables(map(parquet.read_file, files)) for split, files in parts}
            theirs = {split: rows.data.table for split, rows in loaded.items()}
            if theirs.keys() != held.keys() or any(
                theirs[split].cast(rows.schema) != rows for split, rows in held.items()
            ):
                raise UserError(f"{hub.repo}: {config} has other rows when read back; {AGAIN}")
