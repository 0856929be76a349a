"""The files of a Hugging Face Space: pushing the folder is all that deployment takes.

DIR/app.py             starts the board with the options given at export
    requirements.txt   the versions of this environment
    README.md          the card with the Space's settings
    robustbench_tc/    the package, as far as the board needs it
    robustbench_tc-VERSION.dist-info/METADATA    says which version that is
"""

import re
import shutil
from importlib import metadata
from pathlib import Path

import robustbench_tc
from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.io.folders import atomic_dir

from . import pages

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")

ROOMS = ("cli", "compute", "data", "eval", "io", "llm", "own", "worlds")
"""What of the package a board runs on, beside the modules at its top."""


def export_space(
    folder: Path,
    *,
    dataset: str,
    revision: str | None,
    live_dataset: str | None = None,
    live_revision: str | None = None,
    results_repo: str,
    title: str,
    force: bool = False,
    discard_changes: bool = False,
) -> int:
    """Writes the folder; how many files. Raises UserError for an existing one unless `force`."""
    named = [("--dataset", dataset), ("--results-repo", results_repo)]
    if live_dataset is not None:
        named.append(("--live-dataset", live_dataset))
    for option, repo in named:
        if not _HUB_ID.fullmatch(repo):
            raise UserError(f"{option} {repo!r} is not a Hub id: a Space needs one like org/name")
    if "\n" in title or len(title) > 80:
        raise UserError("--title is one line of at most 80 characters")
    found = requirements()
    values = {
        "dataset": dataset,
        "revision": revision,
        "live_dataset": live_dataset,
        "live_revision": live_revision,
        "results_repo": results_repo,
        "title": title,
        "requirements": found,
        "gradio": metadata.version("gradio"),
        "version": robustbench_tc.__version__,
    }
    package = Path(robustbench_tc.__file__).parent
    copied = [*package.glob("*.py"), *(path for room in ROOMS for path in _files(package / room))]
    with atomic_dir(folder, kind="space", force=force, discard_changes=discard_changes) as made:
        rendered = ("app.py", "requirements.txt", "README.md")
        copies = {path: f"robustbench_tc/{path.relative_to(package).as_posix()}" for path in sorted(copied)}
        stated = f"robustbench_tc-{robustbench_tc.__version__}.dist-info/METADATA"
        for name in rendered:
            (made / name).write_text(pages.render(f"space/{name}.j2", **values), encoding="utf-8")
        for path, name in copies.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, made / name)
        (made / stated).parent.mkdir()
        (made / stated).write_text(
            f"Metadata-Version: 2.1\nName: robustbench-tc\nVersion: {robustbench_tc.__version__}\n"
        )
        return sum(path.is_file() for path in made.rglob("*"))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def requirements() -> list[str]:
    """What the board needs, pinned to what is installed here. Raises UserError without the extra."""
    from packaging.requirements import Requirement

    lines = []
    for text in metadata.requires("robustbench-tc") or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": "leaderboard"}):
            continue
        try:
            installed = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            raise need_extra(wanted.name, "leaderboard") from None
        named = f"{wanted.name}[{','.join(sorted(wanted.extras))}]" if wanted.extras else wanted.name
        lines.append(f"{named}=={installed}")
    return sorted(lines)
