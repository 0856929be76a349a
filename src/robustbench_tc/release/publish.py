"""`rbtc publish`: a release folder onto the Hub as one commit, read back, then tagged.

The tag is the last thing that happens. Whatever breaks before it leaves no version behind, and the same
command run again completes the upload: what the Hub has already is not sent twice.
"""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from ..dataset_cards.released import read_audit
from ..errors import UserError
from ..io import manifest
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
    hub = Hub(
        repo,
        "model" if release.kind == "checkpoint" else "dataset",
        token=token,
        timeout_s=timeout_s,
        progress=progress,
    )
    if release.repo not in (None, repo):
        raise UserError(
            f"{folder} says that it is published as {release.repo}: release it with --repo {repo}"
        )
    progress("asking the Hub who we are")
    hub.check_token()
    head, tags = hub.refs()
    if release.tag in tags:
        same = hub.read(manifest.NAME, release.tag) == (folder / manifest.NAME).read_bytes()
        there = "these very bytes: nothing to do" if same else "other bytes: release under a new --version"
        raise UserError(f"{repo} has the tag {release.tag} already, with {there}")
    local = [*release.files, manifest.NAME]
    if (folder / manifest.SIGNATURE).is_file():
        local.append(manifest.SIGNATURE)
    listed = hub.tree(head) if head else {}
    kept = {*local, manifest.YANKED}  # which versions were withdrawn stays true under every later one
    removed = tuple(path for path in listed if path not in kept and not manifest.is_tolerated(path))
    done = Published(
        repo=repo,
        repo_type=hub.repo_type,
        tag=release.tag,
        commit=None,
        files={path: (folder / path).stat().st_size for path in local},
        removed=removed,
        creates_repo=head is None,
        read_back=0,
    )
    if dry_run:
        return done
    if head is None:
        progress(f"creating {repo}")
        head = hub.create(private)
    progress(f"uploading {len(local)} files")
    files = {path: folder / path for path in local}
    commit = hub.commit(files, f"Release {release.tag}", head=head, removed=removed)
    progress("reading back")
    read_back(hub, folder, local, commit)
    progress(f"tagging {release.tag}")
    hub.tag(release.tag, commit)
    return msgspec.structs.replace(done, commit=commit, read_back=len(local))


def check_folder(folder: Path, own_data: bool = False) -> Manifest:
    """The manifest of a folder that may be published. UserError if it is unreleased, ungated or changed."""
    release = manifest.read(folder)
    if release.kind != "checkpoint" and (release.gate is None or not release.gate.passed):
        raise UserError(f"{folder} has no green gate: release its build again")
    if reason := unpublishable(release.kind, release.profile, own_data):
        raise UserError(f"{folder}: {reason}")
    found = manifest.problems(folder)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UserError(f"{folder} is not as it was released: {found[0]}{more}; `rbtc verify` lists all")
    if release.gate is not None:
        report = read_audit(folder)
        if (
            not report.is_green
            or report.build != release.data_sha256
            or release.gate.report not in release.files
        ):
            raise UserError(f"{folder}: its audit report is not green for its data: release its build again")
    for yank in read_yanked(folder / manifest.YANKED):
        if yank.version == release.version:
            raise UserError(f"{folder}: {yank.line}: publish another version")
    return release


def read_back(hub: Hub, folder: Path, names: list[str], commit: str) -> None:
    """Downloads every file at `commit` again and compares it with the folder.

    Data goes through `load_dataset`, as users will load it: its rows, and the bytes that it fetched.
    UserError naming the first file or config that differs.
    """
    with tempfile.TemporaryDirectory() as temporary:
        loaded: set[str] = set()
        if hub.repo_type == "dataset":
            for config, paths in configs_of(folder).items():
                hub.progress(f"reading back {config}")
                cache = Path(temporary) / "arrow" / config
                same = partial(_same_rows, hub, config, paths, commit, cache)
                if not hub.step(f"reading back the config {config}", AGAIN, same):
                    raise UserError(f"{hub.repo}: {config} reads back with other rows; {AGAIN}")
                loaded |= {path.relative_to(folder).as_posix() for path in paths}
        for path in names:
            place = None if path in loaded else temporary
            found = manifest.entry(hub.download(path, commit, place, fix=AGAIN))
            if found != manifest.entry(folder / path):
                raise UserError(f"{hub.repo}: {path} reads back with other bytes; {AGAIN}")


def _same_rows(hub: Hub, config: str, paths: list[Path], commit: str, cache: Path) -> bool:
    import datasets
    import pyarrow as pa

    from ..io import parquet

    datasets.disable_progress_bars()
    datasets.utils.logging.set_verbosity_error()
    found = datasets.load_dataset(
        hub.repo,
        config,
        revision=commit,
        token=hub.token,
        cache_dir=str(cache),
        download_mode=datasets.DownloadMode.FORCE_REDOWNLOAD,
    )
    splits: dict[str, list[Path]] = {}
    for path in paths:
        splits.setdefault(path.name.split("-")[0], []).append(path)
    if set(found) != set(splits):
        return False
    for split, parts in splits.items():
        theirs, at = found[split].data.table, 0  # on disk: only the slice at hand is in memory
        for part in parts:
            with parquet.opened(part) as file:
                for batch in file.iter_batches(use_threads=False):
                    ours = pa.Table.from_batches([batch])
                    if not theirs.slice(at, ours.num_rows).cast(ours.schema).equals(ours):
                        return False
                    at += ours.num_rows
        if at != theirs.num_rows:
            return False
    return True
