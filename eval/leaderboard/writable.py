"""Where a Space may write: its code may be read-only, its user without a home; only /data is kept."""

import os
import tempfile
from pathlib import Path

RESULTS = "RBTC_RESULTS"
"""The variable that names the results folder."""

KEPT = Path("/data")
"""What a Space has that pays for storage: nothing else is there after a restart."""


def results_folder() -> Path:
    """The folder of the results: the named one, else one that is kept, else beside the code, else a new one.

    Everything in it is on the Hub as well, so one that is lost is fetched again.
    """
    if named := os.environ.get(RESULTS):
        return Path(named)
    for folder in (KEPT, Path.cwd()):
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder / "results"
    return Path(tempfile.mkdtemp(prefix="rbtc-results-"))


def give_hub_a_cache() -> None:
    """Names a folder for what comes from the Hub where its own, in the user's home, cannot be made.

    Call it before `huggingface_hub` is imported.
    """
    if "HF_HOME" in os.environ:
        return
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "huggingface")
        there = next(folder for folder in (cache, *cache.absolute().parents) if folder.exists())
        if os.access(there, os.W_OK):
            return
    except RuntimeError:  # a user whom the system does not list has no home
        pass
    os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="rbtc-hub-")
