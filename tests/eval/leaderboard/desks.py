"""The desk without its processes: what a test submits is read and scored in this one."""

from pathlib import Path

from robustbench_tc.eval.leaderboard.checks import Asked
from robustbench_tc.eval.leaderboard.desk import Desk
from robustbench_tc.eval.leaderboard.limits import Limits
from robustbench_tc.eval.leaderboard.live_data import LiveAsked
from robustbench_tc.eval.leaderboard.records import Checked
from robustbench_tc.eval.leaderboard.submitting import Form, Submitter
from robustbench_tc.eval.leaderboard.worker import Job, examine

ADDRESS = "192.0.2.1"


class InProcess:
    """The scorer without its process."""

    size = 2

    def __init__(self, asked: Asked, limits: Limits, live: LiveAsked | None = None) -> None:
        self.asked = asked
        self.limits = limits
        self.live = live

    def run(self, job: Job) -> Checked:
        return examine(job, self.asked, self.limits, live=self.live)


def files(run: Path) -> tuple[Path, Path]:
    """What is uploaded of a run folder."""
    if (run / "live_run.json").is_file():
        return run / "journal.jsonl", run / "live_run.json"
    return run / "predictions.parquet", run / "run.json"


def checked(desk: Desk, run: Path, user: str = "ann", **form: str | None) -> tuple[Checked, str]:
    """The answer to a run, and its ticket. Raises Refused where it is refused at once."""
    who = Submitter(user, ADDRESS)
    ticket = desk.place(who, *files(run), Form(**form))
    return desk.result(who, ticket, 60), ticket


def listed(desk: Desk, run: Path, user: str = "ann", name: str | None = None) -> str:
    """Submits a run and lists it; its id."""
    found, ticket = checked(desk, run, user, name=name)
    assert found.refused is None, found.refused
    return desk.list(user, ticket).id
