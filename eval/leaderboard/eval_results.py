"""`rbtc export hub`: a run's accuracies in the form in which a model's repository on the Hub holds them.

The Hub shows them on the model's page, and on the leaderboards of the dataset, whose `eval.yaml` has the same
tasks (the Hub's page *Evaluation Results*).
"""

import dataclasses
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from robustbench_tc import schema
from robustbench_tc.errors import UserError
from robustbench_tc.eval.record import open_run
from robustbench_tc.eval.stats import runs, summary
from robustbench_tc.eval.stats.values import HEADS
from robustbench_tc.io import folders
from robustbench_tc.io.manifest import is_version, printable
from robustbench_tc.io.numbers import counted, percent
from robustbench_tc.io.resolve import HUB_ID
from robustbench_tc.option import Tell, silent
from robustbench_tc.schema import Json
from robustbench_tc.shown import Line, Part, Table

from .repository import Hub

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

NAME = ".eval_results/robustbench-tc.yaml"


class Source(msgspec.Struct, frozen=True):
    """Who vouches for the results, and where they can be looked into."""

    url: str | None = None
    name: str | None = None
    user: str | None = None


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    path: str
    entries: list[dict[str, Json]]
    url: str | None = None
    """Of the pull request with the file."""

    def shown(self) -> Iterator[Part]:
        """The values, and where they are."""
        rows = [(one["dataset"]["task_id"], str(one["value"]), one["notes"]) for one in self.entries]
        yield Table(("task", "value in %", "notes"), rows, folded=("notes",))
        yield Line(f"written to {self.path}" + (f"; pull request: {self.url}" if self.url else ""))


def export(
    run: Path,
    out: Path,
    *,
    dataset: str,
    source: Source = Source(),
    date: str | None = None,
    partial: bool = False,
    push: str | None = None,
    said: Tell = silent,
) -> Exported:
    """Writes the file into the new or empty folder `out`, with `push` after a pull request to that model.

    `dataset`: `ORG/NAME` or `ORG/NAME@REVISION`, for a pull request by the commit of the revision. `date`: by
    default that of the run's last start. `partial`: the run may lack answers or rows. Raises UserError.
    """
    from huggingface_hub import eval_result_entries_to_yaml

    folders.check_new(out)
    repo, _, revision = dataset.partition("@")
    if not HUB_ID.fullmatch(repo):
        raise UserError(
            f"--dataset {printable(dataset)!r}: give a name on the Hub, org/name or org/name@REVISION"
        )
    found = entries(run, repo, revision, source=source, date=date, partial=partial)
    if push is not None and revision:
        commit = Hub(repo, progress=said).commit_of(revision)
        found = [dataclasses.replace(one, dataset_revision=commit) for one in found]
    plain = eval_result_entries_to_yaml(found)
    data = msgspec.yaml.encode(plain)
    url = None if push is None else _propose(Hub(push, "model", progress=said), data)
    folders.write_new(out, {NAME: data})
    return Exported(path=str(out / NAME), entries=plain, url=url)


def entries(
    run: Path, repo: str, revision: str, *, source: Source, date: str | None, partial: bool
) -> "list[EvalResultEntry]":
    """A result for each task that the run has an answer of, its value in percent.

    Raises UserError for a run of episodes or of another version than the revision, and unless it may be
    `partial` for one that lacks answers or rows.
    """
    from huggingface_hub import EvalResultEntry

    record = open_run(run).record
    settings, version = record.settings, record.dataset_version
    if record.live:
        raise UserError(f"{run} is a live run: no release has an eval.yaml with tasks for episodes")
    named = revision.removeprefix("v")
    if version is not None and is_version(named) and named != version:
        raise UserError(
            f"{run} was asked version {version} of its dataset, --dataset says {printable(named)}"
        )
    try:
        datetime.fromisoformat(date or "2026-01-01")
    except ValueError as error:
        raise UserError(f"--date: {error}: give one like 2026-11-27") from None
    if source.url is None and (source.name or source.user):
        raise UserError("--source-name and --source-user describe --source-url: give that too")
    scored = runs.read_run(run)
    [outcomes] = runs.align([scored])
    made = summary.summarise(outcomes, allow_missing=True)
    asked = set(zip(scored.rows["id"].tolist(), scored.rows["sample_hash"].tolist(), strict=True))
    lacks = []
    if schema.fingerprint(sorted(asked)) != scored.fingerprint:
        lacks.append("not every row of the dataset was asked")
    if outcomes.unaccounted or any(made.lines[name].missing for name in HEADS):
        lacks.append("answers are missing")
    if lacks and not partial:
        raise UserError(
            f"{run}: {' and '.join(lacks)}: complete the run first, or publish it as partial with --partial"
        )
    setup = [
        *[f"partial ({' and '.join(lacks)})"] * bool(lacks),
        settings.mode,
        *[f"behind {name}" for name in settings.defend],
        *["with a system text of its own"] * (settings.system is not None),
        counted(len(outcomes.clean_ids), "sample"),
        *[f"{settings.repeat} repeats"] * (settings.repeat > 1),
        f"dataset {scored.dataset_label}",
    ]
    if date is None and record.sessions:
        date = record.sessions[-1].started[:10]
    if not revision and record.dataset == repo:
        revision = record.dataset_revision or ""
    found = []
    for name in HEADS:
        around = made.values.get(name, made.values.get(f"accuracy_{name}"))
        if around is not None:
            span = f"95 % interval {percent(around.low)} to {percent(around.high)}"
            result = EvalResultEntry(
                dataset_id=repo,
                task_id=name,
                value=100 * around.value,
                dataset_revision=revision or None,
                date=date,
                source_url=source.url,
                source_name=source.name,
                source_user=source.user,
                notes="; ".join((*setup, span)),
            )
            found.append(result)
    if not found:
        raise UserError(f"{run} has no answer to a row of any task")
    return found


def _propose(there: Hub, data: bytes) -> str:
    """The address of a pull request with the file: of the account's open one, or a new one."""
    there.check_token()
    title = "Results on RobustBench-TC"
    for number, other in there.pulls(there.account).items():
        if (other.status, other.title) == ("open", title) and there.read_file(
            NAME, f"refs/pr/{number}"
        ) == data:
            return str(other.url)
    text = "Accuracies of a run of this model, as `rbtc export hub` wrote them."
    return there.propose({NAME: data}, title, text)[1]
