"""`rbtc leaderboard init` and `submit`: a results repository, and a run into it. What becomes public of a run
is its record and its replies, without names of places."""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from robustbench_tc.errors import UserError
from robustbench_tc.eval.exchange import import_run
from robustbench_tc.eval.record import Mode, RunRecord, open_run
from robustbench_tc.io import parquet
from robustbench_tc.io.folders import check_new
from robustbench_tc.io.resolve import HUB_ID
from robustbench_tc.io.templates import environment
from robustbench_tc.schema import Episode, Json, Prediction, arrow_table
from robustbench_tc.shown import Line, Part

from . import checker, checks, repository
from .checker import SUBMISSION, checked, run_id, table
from .datasets import Datasets
from .entry import Entry, Refused, Submission
from .repository import STATUS, Folder, Hub, open_place, run_path


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
    dry: bool = False
    """Whether nothing was to be sent."""

    def shown(self) -> Iterator[Part]:
        """What would become public, where nothing was sent; the entry."""
        for path, data in self.files.items() if self.dry else ():
            yield f"{path}, {len(data):,} bytes"
            if not path.endswith(".parquet"):
                yield Line(data.decode())
        yield Line(table(self.entry))
        there = f"{'there already' if self.again else 'added'}: {self.url or self.entry.run}"
        yield "nothing was sent" if self.dry else there

    def json(self) -> dict[str, Json]:
        """All but the files' bytes, of which the lengths are said; the entry as a table too."""
        sizes = {path: len(data) for path, data in self.files.items()}
        return msgspec.structs.asdict(self) | {"files": sizes, "table": table(self.entry)}


def init(place: str, dataset: str, *, live: str | None = None, own: Sequence[str] = ()) -> list[str]:
    """Makes a results repository, on the Hub or as a new folder; the files that it begins with. Raises
    UserError."""
    there = open_place(place)
    dataset, *more = map(_named, (dataset, *own))
    live = live and _named(live)
    head = there.create(private=False) if isinstance(there, Hub) else None
    if STATUS in there.files():
        raise UserError(f"{place} is a results repository already: edit its {STATUS}")
    texts = environment(__package__, "templates")
    files = {
        path: texts.get_template(name).render(place=place, dataset=dataset, live=live, own=more).encode()
        for path, name in (("README.md", "results.md.j2"), (STATUS, "status.yaml.j2"))
    }
    files |= repository.write_entries(())
    left = {path: there.read_file(path) for path in there.files()} if there.folder is not None else {}
    if there.folder is not None and not (left and left.items() <= files.items()):
        check_new(there.folder)  # but what a killed `init` has left is its own
    there.commit(files, "A results repository", head=head)
    return sorted(files)


def _named(dataset: str) -> str:
    """A dataset as status.yaml names it, a folder by its whole path. Raises UserError."""
    if Path(dataset).is_dir():
        return str(Path(dataset).resolve())
    if not HUB_ID.fullmatch(dataset.partition("@")[0]):
        raise UserError(f"{dataset} is neither a folder nor a dataset of the Hub, ORG/NAME@VERSION")
    return dataset


def publish(run: Path, into: Path) -> None:
    """Writes `run.json` and the replies of the run folder `run` into the folder `into`, as everybody may see
    them: without paths, addresses, names of headers, texts of errors and log probabilities.

    Takes a live run too. Raises UserError and Refused.
    """
    found = open_run(run).record
    live = (Episode, checker.EPISODES)
    kind, name = live if found.live else (Prediction, checker.PREDICTIONS)
    if not (run / name).is_file():
        raise UserError(f"{run} has no {name} yet: the run's command writes it when the run is complete")
    model = found.settings.model
    if re.match(r"[~./\\]|[A-Za-z]:\\|\w+://", model) or model.count("/") > 1:  # a folder, or an address
        model = "local:" + re.split(r"[/\\]", model.rstrip("/\\"))[-1]
    rows = [
        replace(one, model=model, error=None) for one in checks.read_rows(run / name, kind, found.expected)
    ]
    table = arrow_table(rows, kind)
    parquet.write_file([table], into / name, table.schema)
    public = RunRecord(
        live=found.live,
        dataset=found.dataset if HUB_ID.fullmatch(found.dataset) else Path(found.dataset).name,
        dataset_version=found.dataset_version,
        dataset_revision=None,
        settings=replace(found.settings, headers=(), model=model, checkpoint=None),
        expected=found.expected,
        totals=found.totals,
    )
    text = msgspec.json.format(msgspec.json.encode(public), indent=1) + b"\n"
    (into / checker.RECORD).write_bytes(text)


def prepare(run: Path, submission: Submission, data: Datasets, *, org: str, day: str, into: Path) -> Entry:
    """Writes the three files of a run into the empty folder `into`, without paths, addresses and names of
    headers. Its entry, from a check as that of a pull request. Raises UserError, Refused."""
    publish(run, into)
    (into / SUBMISSION).write_bytes(msgspec.yaml.encode(submission))
    return checked(into, f"{org}/{submission.model.rpartition('/')[2]}/{run_id(into, day)}", data)


def submit(
    run: Path,
    to: str,
    submission: Submission,
    *,
    org: str | None = None,
    by: str | None = None,
    mode: Mode = "prompt",
    dataset: str | None = None,
    dry_run: bool = False,
    said: Callable[[str], None] = lambda line: None,
) -> Submitted:
    """Checks a run here, then opens a pull request with it; in a folder it is copied there.

    `org`: whose run it is, on the Hub by default the token's account. `by`: who submits it, where the token
    is a form's. `mode`: of predictions in a file, which `run` may be. `dataset` instead of the one that
    status.yaml names. `dry_run` sends nothing. Repeated,
    it finds the open pull request, or the run that is there already. Raises UserError.
    """
    there = open_place(to)
    said("loading the dataset")
    data = Datasets.of_status(repository.read_status(there, dataset=dataset), there.folder)
    with tempfile.TemporaryDirectory() as temporary:
        folder, day = Path(temporary, "public"), f"{datetime.now(UTC):%Y%m%d}"
        folder.mkdir()
        said("checking here")
        try:
            if run.is_file():
                made = Path(temporary, "run")
                import_run(run, data.core, model=submission.model, mode=mode, out=made)
                run = made
            entry = prepare(run, submission, data, org=org or there.account, day=day, into=folder)
        except Refused as error:
            raise UserError(f"{run} is not accepted: {error}") from None
        files = {f"{run_path(entry.run)}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
    title = f"Run {entry.run}"
    done = Submitted(entry=entry, files=files, dry=dry_run)
    if dry_run:
        return done
    for earlier, names in repository.runs(there.files()).items():
        if _same(entry.run, earlier):
            if isinstance(there, Folder):  # a submission that was killed here has left a part of them
                named = {path.rpartition("/")[2]: data for path, data in files.items()}
                lacking = {
                    f"{run_path(earlier)}/{name}": data for name, data in named.items() if name not in names
                }
                there.commit(lacking, title)
            return replace(done, again=True)
    if isinstance(there, Folder):
        there.commit(files, title)
        return done
    for number, other in there.pulls(there.account).items():
        if other.status == "open" and _same(title, other.title):
            return replace(done, number=number, url=other.url, again=True)
    whose = f", submitted by `{by}`" if by else ""
    text = f"A run of `{submission.model}`{whose}, scored by robustbench-tc. The checker answers below."
    number, url = there.propose(files, title, text)
    return replace(done, number=number, url=url)


def _same(run: str, other: str) -> bool:
    """Whether it is that run, handed in on another day perhaps: their ids end in the digest of the files."""
    return other[:-21] == run[:-21] and other[-12:] == run[-12:]
