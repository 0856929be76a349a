"""Reading and scoring in a process that may be killed: uploads are hostile.

A warm process (dataset loaded, no secret in its environment) forks one child per upload. The child gives up
memory, time and file sizes before it opens the upload, answers in files of the job's folder, and ends. What
it does not survive becomes one clear line. Several children share the cores; one that takes longer than a
run usually does goes on behind the others.

    server  ── job as a JSON line ──►  warm process  ── fork ──►  child: limits, check, score, checked.json
            ◄── how it ended ────────                ◄── exit ──
"""

import math
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

import robustbench_tc
from robustbench_tc.io.files import atomic_file

from . import store
from .checks import Asked, Trail, check
from .child import Ending, at_first, cpu_for, in_child
from .limits import Limits
from .live_checks import Replaying
from .live_data import LiveAsked
from .live_journal import is_journal
from .live_records import LiveEntry
from .live_worker import examine_live
from .reading import Line
from .rebuild import rescored
from .records import Checked, Step, Submission, encode
from .refusal import Refused
from .scoring import claims_of, score
from .submission import submission_of
from .submitting import Stated

UPLOAD, RECORD, ANSWER, RUN = store.UPLOAD, store.RECORD, store.ANSWER, store.RUN

REASONS: dict[str, tuple[str, str]] = {
    "memory": ("size", "reading the file needs more memory than an upload may take"),
    "time": ("score", "reading and scoring the file took longer than an upload may take"),
    "crash": ("format", "the file could not be read to its end"),
}


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One upload to look at. The folder holds what was uploaded, under names of ours."""

    folder: str
    user: str
    now: str
    """UTC, ISO 8601: when it was submitted."""
    stated: Stated = Stated()
    """What the user typed beside it."""
    listed: tuple[str, ...] = ()
    """Model names that are listed, for look-alikes."""
    again: tuple[str, Submission] | None = None
    """A submission to score once more, and the folder in which it is stored: nothing was uploaded."""


# --- the server's side --------------------------------------------------------------------------------


class Pool:
    """A warm process that reads `size` uploads at once, in a child for each. `command` starts it."""

    def __init__(self, command: Sequence[str], size: int = 2) -> None:
        self.size = size
        self._command = tuple(command)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: dict[str, tuple[subprocess.Popen[bytes], queue.SimpleQueue[Ending]]] = {}
        """Folder of a job → the process that reads it, and where its ending is waited for."""

    def warm(self) -> None:
        """Starts the process, in the background."""
        threading.Thread(target=self._alive, daemon=True).start()

    def run(self, job: Job) -> Checked:
        """The answer to an upload; waits for it."""
        ended: queue.SimpleQueue[Ending] = queue.SimpleQueue()
        try:
            process = self._alive()
            with self._lock:
                self._asked[job.folder] = process, ended
                assert process.stdin is not None
                process.stdin.write(msgspec.json.encode(job) + b"\n")
                process.stdin.flush()
                if self._process is not process:  # it has ended since, and nobody will answer
                    ended.put("crash")
            ending = ended.get()
        except (OSError, ValueError):
            ending = "crash"
        finally:
            with self._lock:
                self._asked.pop(job.folder, None)
        answer = Path(job.folder) / ANSWER
        if ending == "done" and answer.is_file():
            return msgspec.json.decode(answer.read_bytes(), type=Checked)
        step, reason = REASONS[ending if ending != "done" else "crash"]
        return Checked(steps=Trail().refused(Refused(step, reason)))

    def close(self) -> None:
        """Ends the process; what it reads is answered before."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _alive(self) -> subprocess.Popen[bytes]:
        """The process, started anew where it has ended."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = self._start()
                threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
            return self._process

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            folder, ending = msgspec.json.decode(line, type=tuple[str, Ending])
            with self._lock:
                waiting = self._asked.get(folder)
            if waiting is not None:
                waiting[1].put(ending)
        with self._lock:
            if self._process is process:
                self._process = None
            for reader, ended in self._asked.values():
                if reader is process:
                    ended.put("crash")

    def _start(self) -> subprocess.Popen[bytes]:
        root = str(Path(robustbench_tc.__file__).resolve().parents[1])
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
        quiet = {
            "PYTHONPATH": root,
            "HOME": "/nonexistent",
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
        }
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=kept | quiet,
            start_new_session=True,
        )


# --- the warm process ---------------------------------------------------------------------------------


def serve(asked: Asked, limits: Limits, live: LiveAsked | None = None) -> None:
    """Answers jobs from standard input until it ends. Everything that is the same for all is done before."""
    from robustbench_tc import schema

    os.nice(10)  # visitors come first
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a package prints is not an answer
    asked.fingerprint(), asked.by_id, asked.known, schema.prediction_columns(scored=True)
    rows, saying = len(asked.by_id), threading.Lock()
    episodes = 0 if live is None else len(live.by_id)
    of_live = limits.cpu_of_live(episodes * limits.repeats, math.inf)

    def one(job: Job) -> None:
        ending: Ending = "crash"
        try:
            most = of_live if is_live(job) else None
            ending = in_child(lambda: answer(job, asked, limits, live), limits, rows, most)
        finally:  # whatever went wrong here, somebody waits for the answer
            with saying:
                out.write(msgspec.json.encode((job.folder, ending)) + b"\n")
                out.flush()

    threads: list[threading.Thread] = []
    for line in sys.stdin.buffer:
        thread = threading.Thread(target=one, args=(msgspec.json.decode(line, type=Job),), daemon=True)
        thread.start()
        threads = [thread, *(other for other in threads if other.is_alive())]
    for thread in threads:
        thread.join()


def is_live(job: Job) -> bool:
    """Whether a job is about a live run."""
    if job.again is not None:
        return job.again[1].kind == "live"
    try:
        return is_journal(Path(job.folder) / UPLOAD)
    except OSError:
        return False


def answer(job: Job, asked: Asked, limits: Limits, live: LiveAsked | None = None) -> None:
    """Checks and scores one upload and leaves the answer in the job's folder."""
    folder = Path(job.folder)
    if job.again is None:
        made = examine(
            job,
            asked,
            limits,
            complete=lambda lines: at_first(cpu_for(lines, limits)),
            live=live,
            replaying=lambda *of: at_first(limits.cpu_of_live(*of)),
        )
    else:  # it has passed once: as much as there is
        at_first()
        made = score_again(*job.again, asked, live)
    with atomic_file(folder / ANSWER) as beside:
        beside.write_bytes(encode(made))


def score_again(folder: str, submission: Submission, asked: Asked, live: LiveAsked | None = None) -> Checked:
    """The entry of a stored submission, or the step that says why there is none."""
    found = rescored(Path(folder), submission, live if submission.kind == "live" else asked)
    if isinstance(found, str):
        return Checked(steps=(Step("score", False, found),))
    if isinstance(found, LiveEntry):
        return Checked(steps=(Step("score", True),), live=found)
    return Checked(steps=(Step("score", True),), entry=found)


def examine(
    job: Job,
    asked: Asked,
    limits: Limits,
    complete: Callable[[Sequence[Line]], None] = lambda lines: None,
    live: LiveAsked | None = None,
    replaying: Replaying = lambda episodes, size, calls: None,
) -> Checked:
    """Checks and scores what lies in the job's folder. Raises nothing that the upload can cause.

    `complete` gets the answers once they are those of the dataset's rows; `replaying` is that of a live run.
    """
    if is_live(job):
        return examine_live(job, live, limits, replaying)
    folder, trail = Path(job.folder), Trail()
    record = folder / RECORD
    try:
        accepted = check(
            folder / UPLOAD,
            record if record.is_file() else None,
            asked,
            name=job.stated.name,
            listed=job.listed,
            limits=limits,
            trail=trail,
            complete=complete,
        )
        entry, judged = score(accepted, asked, folder / RUN)
    except Refused as refusal:
        return Checked(steps=trail.refused(refusal))
    correct, n = entry.counts["perturbed"]
    trail.passed("score", f"{correct:,} of {n:,} perturbed rows are right")
    stored = sha256((folder / RUN / "predictions.parquet").read_bytes()).hexdigest()
    return Checked(
        steps=trail.steps(),
        entry=entry,
        claims=claims_of(accepted, judged),
        submission=submission_of(
            job,
            accepted.record.settings,
            kind="core",
            model=accepted.model,
            answers=stored,
            label=asked.label,
            fingerprint=asked.fingerprint(),
        ),
    )
