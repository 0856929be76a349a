"""The files of a Hugging Face Space: pushing the folder is all that deployment takes.

DIR/app.py             starts `app` over the results repository
    requirements.txt   the versions of this environment
    README.md          the card with the Space's settings
    robustbench_tc/    the package, as far as the board needs it
    robustbench_tc-VERSION.dist-info/METADATA    says which version that is
"""

import os
import shutil
import tempfile
from importlib import metadata
from pathlib import Path

import robustbench_tc
from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.io.folders import atomic_dir
from robustbench_tc.io.resolve import HUB_ID
from robustbench_tc.io.templates import environment

from .repository import open_place, read_status

ROOMS = "api cli compute data dataset_cards eval io llm own release schema worlds".split()
"""What of the package a board runs on, beside the modules at its top."""


def space(
    folder: Path, *, results: str, title: str, force: bool = False, discard_changes: bool = False
) -> int:
    """Writes the folder; how many files. Raises UserError for an existing one unless `force`."""
    if not HUB_ID.fullmatch(results):
        raise UserError(f"--results {results!r} is no dataset of the Hub: a Space needs one, as org/name")
    if not title.isprintable() or len(title) > 80:
        raise UserError("--title is one line of at most 80 characters")
    version, package = robustbench_tc.__version__, Path(robustbench_tc.__file__).parent
    pinned, texts = requirements(), environment(__package__, "templates/space")
    values = {"results": results, "title": title, "gradio": metadata.version("gradio"), "version": version}
    with atomic_dir(folder, kind="space", force=force, discard_changes=discard_changes) as made:
        for name in ("README.md", "app.py"):
            (made / name).write_text(texts.get_template(f"{name}.j2").render(values), "utf-8")
        (made / "requirements.txt").write_text("\n".join(pinned) + "\n")
        stated = made / f"robustbench_tc-{version}.dist-info" / "METADATA"
        stated.parent.mkdir()
        stated.write_text(f"Metadata-Version: 2.1\nName: robustbench-tc\nVersion: {version}\n")
        copy, caches = made / "robustbench_tc", shutil.ignore_patterns("__pycache__")
        for room in ROOMS:
            shutil.copytree(package / room, copy / room, ignore=caches)
        for module in package.glob("*.py"):
            shutil.copyfile(module, copy / module.name)
        return sum(path.is_file() for path in made.rglob("*"))


def requirements() -> list[str]:
    """What the board needs, pinned to what is installed here. Raises UserError without the extra."""
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    needed = [
        one
        for one in map(Requirement, metadata.requires("robustbench-tc") or ())
        if one.marker is None or one.marker.evaluate({"extra": "leaderboard"})
    ]
    for one in needed:
        try:
            one.specifier, one.marker = SpecifierSet(f"=={metadata.version(one.name)}"), None
        except metadata.PackageNotFoundError:
            raise need_extra(one.name, "leaderboard") from None
    return sorted(map(str, needed))


def serve(place: str | Path, *, host: str = "127.0.0.1", port: int = 7860) -> None:
    """Serves the pages and the form of a results repository until Ctrl-C.

    `place`: a folder, where nobody signs in and a run is added at once; in a Space ORG/NAME on the Hub.
    Raises UserError where gradio is missing (extra `leaderboard`) or the folder is no results repository.
    """
    in_space = "SPACE_ID" in os.environ
    if not in_space:
        read_status(open_place(str(place)))
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read at import
    try:
        import uvicorn

        from .app import Board, create
    except ImportError as error:
        raise need_extra(error.name or "gradio", "leaderboard") from None
    with tempfile.TemporaryDirectory(prefix="rbtc-board-") as site:
        uvicorn.run(
            create(Board(str(place), Path(site)), os.environ.get("WEBHOOK_SECRET", ""), in_space),
            host=host,
            port=port,
            access_log=False,
            timeout_graceful_shutdown=3,
        )
