"""What `rbtc leaderboard submit` and `submit-check` do with a live run."""

from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError
from robustbench_tc.eval.live.record import JOURNAL
from robustbench_tc.eval.live.record import RECORD as LIVE_RECORD

from . import live_journal
from .checks import Trail
from .limits import Limits
from .live_checks import check_live, read_record
from .live_data import CLOSED, LiveAsked, load_live
from .names import shown
from .records import Checked
from .refusal import CORE, Refused


def files_of(run: Path, record: Path | None) -> tuple[Path, Path] | None:
    """Journal and record of a live run, of its folder or of its journal; None for what is no live run."""
    folder = run if run.is_dir() else run.parent
    if run.is_dir() and not (run / LIVE_RECORD).is_file():
        return None
    upload = run / JOURNAL if run.is_dir() else run
    if not upload.is_file() or not live_journal.is_journal(upload):
        return None
    return upload, record or folder / LIVE_RECORD


def refuse_other_dataset(record: Path, takes: dict[str, Any], url: str) -> None:
    """Raises UserError before anything is sent: for a board that takes no live runs, or those of another
    dataset."""
    live = takes.get("live")
    live = live if isinstance(live, dict) else {}
    if live.get("open") is not True:
        raise UserError(
            f"the board at {url} takes no live runs: {shown(str(live.get('closed') or CLOSED), 200)}"
        )
    run = _record(record)
    theirs = str(live.get("fingerprint"))
    if run.settings.fingerprint != theirs:
        raise UserError(
            f"the run is of live dataset version {shown(run.dataset_version or 'unversioned')} "
            f"({shown(run.settings.fingerprint, 8)}), the board at {url} takes version "
            f"{shown(str(live.get('dataset_version')))} ({shown(theirs, 8)}): play that version"
        )


def dataset_of(record: Path, dataset: str | None) -> LiveAsked:
    """The run's own dataset, or `dataset`. Raises UserError."""
    run = _record(record)
    return load_live(dataset or run.dataset, None if dataset else run.dataset_revision)


def check_here(upload: Path, record: Path, model: str | None, dataset: str | None) -> Checked | str | None:
    """The board's checks before its replay: None where all pass, the answer where one fails, a line where
    they cannot be made here. Raises UserError for a `dataset` that cannot be read."""
    try:
        asked = dataset_of(record, dataset)
    except UserError as error:
        if dataset is not None:
            raise
        return str(error)
    if asked.fingerprint != _record(record).settings.fingerprint:
        return f"{asked.data.name} is not the dataset of the run (any more): name it with --dataset"
    trail = Trail(CORE)
    try:
        check_live(upload, record, asked, name=model, limits=Limits(), trail=trail)
    except Refused as refusal:
        return Checked(steps=trail.refused(refusal))
    return None


def _record(path: Path) -> Any:
    try:
        return read_record(path if path.is_file() else None, Limits())
    except Refused as refusal:
        raise UserError(str(refusal)) from None
