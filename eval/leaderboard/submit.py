"""`rbtc leaderboard init` and `submit`: a results repository, and a run into it."""

import re
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io.templates import environment

from . import entries, pulls
from .checker import SUBMISSION, checked, run_id
from .datasets import Datasets
from .entry import Entry, Refused, Submission
from .place import STATUS, Folder, Hub, open_place, run_path
from .publish import publish


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it becomes public."""

    run: str
    """`org/model/run id`."""
    folder: Path
    """With its three files, and nothing else."""
    entry: Entry
    """As a checker of this version would write it."""

    def files(self) -> dict[str, bytes]:
        """By their paths in a repository."""
        return {
            f"{run_path(self.run)}/{path.name}": path.read_bytes() for path in sorted(self.folder.iterdir())
        }


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a submission."""

    entry: Entry
    files: dict[str, bytes]
    """What is public of it."""
    number: int | None = None
    """Of the pull request; None in a folder, and where nothing was sent."""
    url: str | None = None
    again: bool = False
    """Whether it was there already."""


def init(place: str, dataset: str, *, live: str | None = None, own: Sequence[str] = ()) -> list[str]:
    """Makes a results repository, on the Hub or as a folder; the files that it begins with. One that is there
    keeps its files. Raises UserError."""
    there = open_place(place)
    if isinstance(there, Hub):
        there.create()
    if STATUS in there.files():
        raise UserError(f"{place} is a results repository already: edit its {STATUS}")
    said = {"place": place, "dataset": dataset, "live": live, "own": own}
    templates = {"README.md": "results.md.j2", STATUS: "status.yaml.j2"}
    texts = environment(__package__, "templates")
    files = {path: texts.get_template(name).render(said).encode() for path, name in templates.items()}
    files |= entries.write_entries(())
    there.commit(files, "A results repository")
    return sorted(files)


def prepare(run: Path, submission: Submission, data: Datasets, *, org: str, day: str, into: Path) -> Prepared:
    """The three files of a run, written into the empty folder `into`: without paths, addresses and names of
    headers. It is checked as a pull request would be. Raises UserError, and Refused for what is not taken."""
    publish(run, into)
    (into / SUBMISSION).write_bytes(msgspec.yaml.encode(submission))
    name = f"{org}/{submission.model.rpartition('/')[2]}/{run_id(into, day)}"
    return Prepared(run=name, folder=into, entry=checked(into, name, data))


def submit(
    run: Path,
    to: str,
    submission: Submission,
    *,
    org: str | None = None,
    by: str | None = None,
    dataset: str | None = None,
    dry_run: bool = False,
    said: Callable[[str], None] = lambda line: None,
) -> Submitted:
    """Checks a run here, then opens a pull request with it; in a folder it is copied there.

    `org`: whose run it is, on the Hub by default the token's account. `by`: who submits it, where the token
    is a form's. `dataset` instead of the one that status.yaml names. `dry_run` sends nothing. Repeated,
    it finds the open pull request, or the run that is there already. Raises UserError.
    """
    there = open_place(to)
    status = entries.read_status(there)
    if dataset is not None:
        status = msgspec.structs.replace(status, dataset=dataset)
    said("loading the dataset")
    data = Datasets.of_status(status, Path(to) if isinstance(there, Folder) else None)
    owner = org or (there.account if isinstance(there, Hub) else "local")
    with tempfile.TemporaryDirectory() as temporary:
        said("checking here")
        try:
            day = f"{datetime.now(UTC):%Y%m%d}"
            made = prepare(run, submission, data, org=owner, day=day, into=Path(temporary))
        except Refused as error:
            raise UserError(f"{run} is not taken: {error}") from None
        files, entry = made.files(), made.entry
    if dry_run:
        return Submitted(entry=entry, files=files)
    same = _without_day(made.run)
    if any(_without_day(other) == same for other in pulls.runs(there.files())):
        return Submitted(entry=entry, files=files, again=True)
    title = f"Run {made.run}"
    if isinstance(there, Folder):
        there.commit(files, title)
        return Submitted(entry=entry, files=files)
    for number, opened in there.pulls("open", author=there.account).items():
        if _without_day(opened.title.removeprefix("Run ")) == same:
            return Submitted(entry=entry, files=files, number=number, url=opened.url, again=True)
    whose = f", submitted by `{by}`" if by else ""
    text = f"A run of `{entry.submission.model}`{whose}, scored by robustbench-tc. The checker answers below."
    number, url = there.propose(files, title, text)
    return Submitted(entry=entry, files=files, number=number, url=url)


def _without_day(run: str) -> str:
    """What is the same of a run that is submitted again on another day."""
    return re.sub(r"[0-9]{8}-(?=[0-9a-f]{12}$)", "", run)
