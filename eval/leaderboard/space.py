"""The files of a Hugging Face Space: pushing the folder is all that deployment takes.

DIR/app.py             starts the board with the options given at export
    requirements.txt   the versions of this environment
    README.md          the card with the Space's settings
    robustbench_tc/    the package, as far as the board needs it
"""

import re
import shutil
from importlib import metadata
from pathlib import Path

import robustbench_tc
from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.files import atomic_dir

from . import pages

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")

ROOMS = ("cli", "data", "eval", "sql")
"""What of the package a board runs on, beside the modules at its top."""


def export_space(
    folder: Path, *, dataset: str, revision: str | None, results_repo: str, title: str, force: bool = False
) -> int:
    """Writes the folder; how many files. Raises UserError for an existing one unless `force`."""
    for option, repo in (("--dataset", dataset), ("--results-repo", results_repo)):
        if not _HUB_ID.fullmatch(repo):
            raise UserError(f"{option} {repo!r} is no Hub id: a Space needs one like org/name")
    if "\n" in title or len(title) > 80:
        raise UserError("--title is one line of at most 80 characters")
    found = requirements()
    values = {
        "dataset": dataset,
        "revision": revision,
        "results_repo": results_repo,
        "title": title,
        "requirements": found,
        "gradio": metadata.version("gradio"),
        "version": robustbench_tc.__version__,
    }
    with atomic_dir(folder, force=force) as made:
        for name in ("app.py", "requirements.txt", "README.md"):
            (made / name).write_text(pages.render(f"space/{name}.j2", **values), encoding="utf-8")
        package = Path(robustbench_tc.__file__).parent
        target = made / "robustbench_tc"
        target.mkdir()
        for path in sorted(package.glob("*.py")):
            shutil.copyfile(path, target / path.name)
        for room in ROOMS:
            shutil.copytree(package / room, target / room, ignore=shutil.ignore_patterns("__pycache__"))
        return sum(path.is_file() for path in made.rglob("*"))


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
