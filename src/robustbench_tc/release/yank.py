"""`rbtc data amend --withdraw`: a wrong version stays where it is, and everybody who loads it is warned.

What rests on a version has to be looked up later, so nothing is deleted and no tag moves. `yanked.json` lists
the withdrawn versions: in a release folder that one, on the Hub's main all of the repository. There the card
says it too, in a block of its own at the top.
"""

import html
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from ..errors import UserError
from ..io import manifest, templates
from ..io.files import atomic_file
from ..io.manifest import printable
from ..io.resolve import Yank, read_yanked, yanked_json
from ..shown import Part
from .hub import Hub

_BEGIN, _END = "<!-- yanked versions -->", "<!-- end of yanked versions -->"
_BLOCK = re.compile(rf"\n*{re.escape(_BEGIN)}.*?{re.escape(_END)}\n*", re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)

CARD = "README.md"
LENGTH = 1_000
"""Characters of a reason."""


class Yanked(msgspec.Struct, frozen=True, kw_only=True):
    """What a command did."""

    version: str
    yanked: tuple[Yank, ...]
    """All withdrawn versions now, the newest last."""
    commit: str | None = None
    """The Hub's."""
    where: str
    """What says so: a file, or a repository on the Hub."""

    def shown(self) -> Iterator[Part]:
        """The withdrawal, or that it was taken back."""
        here = [one.line for one in self.yanked if one.version == self.version]
        said = here[0] if here else f"version {self.version} is no longer withdrawn"
        yield f"{said} ({self.where}{f', commit {self.commit}' if self.commit else ''})"


def yank(folder: Path, reason: str | None, *, date: str, use: str | None = None) -> Yanked:
    """Withdraws the version in a release folder, or with reason None takes that back. Raises UserError."""
    release = manifest.read_manifest(folder)
    path = folder / manifest.YANKED
    found = _changed(read_yanked(path), release.version, reason, date, use)
    if found:
        with atomic_file(path, replace=True) as beside:
            beside.write_bytes(yanked_json(found))
    else:
        path.unlink(missing_ok=True)
    return Yanked(version=release.version, yanked=found, where=str(path))


def yank_on_hub(hub: Hub, revision: str, reason: str | None, *, date: str, use: str | None = None) -> Yanked:
    """The same for a version on the Hub: one commit on main with `yanked.json` and the card.

    UserError where there is no tag of this version, or the token may not write.
    """
    hub.check_token()
    version = manifest.check_version(revision)
    hub.commit_of(f"v{version}")
    head, tags = hub.refs()
    assert head is not None, "it has a tag"
    if use is not None and f"v{manifest.check_version(use)}" not in tags:
        raise UserError(f"--use {use}: {hub.repo} has no such version")
    found = _changed(hub.yanked(head), version, reason, date, use)
    listed = hub.tree(head)
    card = hub.read_file(CARD, head).decode("utf-8", "replace") if CARD in listed else ""
    files: dict[str, Path | bytes] = {CARD: with_warning(card, found).encode()}
    if found:
        files[manifest.YANKED] = yanked_json(found)
    removed = [manifest.YANKED] if not found and manifest.YANKED in listed else []
    what = f"Yank v{version}" if reason is not None else f"Take back: yank v{version}"
    hub.progress("committing")
    fix = "nothing was changed; run the same command again"
    commit = hub.commit(files, what, head=head, removed=removed, fix=fix)
    return Yanked(version=version, yanked=found, commit=commit, where=hub.repo)


def with_warning(card: str, yanked: tuple[Yank, ...]) -> str:
    """The card with a block at its top that names every withdrawn version; without any, without the block."""
    text = _BLOCK.sub("\n", card, count=1)
    if not yanked:
        return text
    environment = templates.environment("robustbench_tc.release")
    environment.filters["inert"] = partial(html.escape, quote=False)  # it cannot end its block
    block = environment.get_template("yanked.md.j2").render(yanked=yanked, begin=_BEGIN, end=_END)
    matter = _FRONT_MATTER.match(text)
    at = matter.end() if matter else 0
    return f"{text[:at]}\n{block}\n{text[at:].lstrip()}"


def _changed(
    known: tuple[Yank, ...], version: str, reason: str | None, date: str, use: str | None
) -> tuple[Yank, ...]:
    """The list with this version withdrawn, or no longer."""
    here = [one for one in known if one.version == version]
    if reason is None:
        if not here:
            raise UserError(f"version {version} is not yanked: there is nothing to undo")
        return tuple(one for one in known if one not in here)
    if here:
        raise UserError(f"{here[0].line}: it is already yanked; `rbtc data amend --undo` undoes that")
    reason = " ".join(reason.split())
    if not reason or len(reason) > LENGTH:
        raise UserError(f"--reason has {len(reason)} characters: say why in one sentence")
    instead = None if use is None else manifest.check_version(use)
    if instead == version:
        raise UserError(f"--use {use}: this is the version that is yanked")
    return (*known, Yank(version, printable(reason, LENGTH), date, instead))
