"""Reading and scoring in a process that may be killed: uploads are hostile.

A warm process (dataset loaded, no secret in its environment) forks one child per upload. The child gives up
memory, time and file sizes before it opens the upload, answers in files of the job's folder, and ends. What
it does not survive becomes one clear line.

    server  ── job as a JSON line ──►  warm process  ── fork ──►  child: limits, check, score, checked.json
            ◄── how it ended ────────                ◄── exit ──
"""

import os
import queue
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

import robustbench_tc
from robustbench_tc.io.files import atomic_file

from . import names, store
from .checks import Asked, Trail, check
from .limits import Limits
from .rebuild import rescored
from .records import Checked, Step, Submission, encode
from .refusal import Refused
from .scoring import claims_of, score
from .submitting import Stated

UPLOAD, RECORD, ANSWER, RUN = store.UPLOAD, store.RECORD, store.ANSWER, store.RUN

Ending = Literal["done", "memory", "time", "crash"]

REASONS: dict[str, tuple[str, str]] = {
    "memory": ("size", "reading the file needs more memory than an upload may take"),
    "time": ("score", "reading and scoring the file took longer than an upload may take"),
    "crash": ("format", "the file could not be read to its end"),
}

_MEMORY, _FAILED = 3, 4
"""Exit codes of a child."""


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
    """Warm processes, each with one upload at a time. `command` starts one."""

    def __init__(self, command: Sequence[str], size: int = 2) -> None:
        self.size = size
        self._command = tuple(command)
        self._idle: queue.Queue[subprocess.Popen[bytes] | None] = queue.Queue()
        for _ in range(size):
            self._idle.put(None)

    def warm(self) -> None:
        """Starts every process, in the background."""
        for _ in range(self._idle.qsize()):
            threading.Thread(target=self._warm_one, daemon=True).start()

    def _warm_one(self) -> None:
        process = self._idle.get()
        self._idle.put(process or self._start())

    def run(self, job: Job) -> Checked:
        """The answer to an upload; waits while every process is busy."""
        process = self._idle.get()
        try:
            if process is None or process.poll() is not None:
                process = self._start()
            ending = _ask(process, job)
        except (BrokenPipeError, ValueError):
            ending = "crash"
        finally:
            self._idle.put(process)
        answer = Path(job.folder) / ANSWER
        if ending == "done" and answer.is_file():
            return msgspec.json.decode(answer.read_bytes(), type=Checked)
        step, reason = REASONS[ending if ending != "done" else "crash"]
        return Checked(steps=Trail().refused(Refused(step, reason)))

    def close(self) -> None:
        """Ends every process that is not busy."""
        for _ in range(self._idle.qsize()):
            process = self._idle.get()
            if process is not None and process.stdin is not None:
                process.stdin.close()
                process.wait(5)

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


def _ask(process: subprocess.Popen[bytes], job: Job) -> Ending:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(msgspec.json.encode(job) + b"\n")
    process.stdin.flush()
    said = process.stdout.readline()
    return msgspec.json.decode(said, type=Ending) if said else "crash"


# --- the warm process ---------------------------------------------------------------------------------


def serve(asked: Asked, limits: Limits) -> None:
    """Answers jobs from standard input until it ends. Everything that is the same for all is done before."""
    from robustbench_tc import schema

    os.nice(10)  # visitors come first
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a package prints is not an answer
    asked.fingerprint(), asked.by_id, asked.known, schema.prediction_features(scored=True)
    for line in sys.stdin.buffer:
        job = msgspec.json.decode(line, type=Job)
        ending = in_child(lambda job=job: answer(job, asked, limits), limits)  # type: ignore[misc]
        _say(out, ending)


def _say(out: BinaryIO, ending: Ending) -> None:
    out.write(msgspec.json.encode(ending) + b"\n")
    out.flush()


def in_child(work: Callable[[], None], limits: Limits) -> Ending:
    """Forks, bounds the child, lets it work, and says how that ended."""
    child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            os.setsid()
            bound(limits)
            work()
            code = 0
        except MemoryError:
            code = _MEMORY
        finally:
            os._exit(code)
    ends = time.monotonic() + limits.wall_s
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > ends:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "time"
        time.sleep(0.01)
    if os.WIFSIGNALED(status):
        killed_by_clock = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return "time" if killed_by_clock else "memory" if os.WTERMSIG(status) == signal.SIGABRT else "crash"
    return {0: "done", _MEMORY: "memory"}.get(os.WEXITSTATUS(status), "crash")  # type: ignore[return-value]


def bound(limits: Limits) -> None:
    """Gives up, for this process and for good, what an upload does not need."""
    try:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:  # no Linux: the other limits have to do
        now = None
    if now is not None:
        _limit(resource.RLIMIT_AS, now + limits.memory_bytes)
    _limit(resource.RLIMIT_CPU, limits.cpu_s)
    _limit(resource.RLIMIT_FSIZE, 2 * limits.decoded_bytes)
    _limit(resource.RLIMIT_NOFILE, 128)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(what: int, amount: int) -> None:
    _, hard = resource.getrlimit(what)
    bounded = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(what, (bounded, bounded))


def answer(job: Job, asked: Asked, limits: Limits) -> None:
    """Checks and scores one upload and leaves the answer in the job's folder."""
    folder = Path(job.folder)
    made = examine(job, asked, limits) if job.again is None else score_again(*job.again, asked)
    with atomic_file(folder / ANSWER) as beside:
        beside.write_bytes(encode(made))


def score_again(folder: str, submission: Submission, asked: Asked) -> Checked:
    """The entry of a stored submission, or the step that says why there is none."""
    found = rescored(Path(folder), submission, asked)
    if isinstance(found, str):
        return Checked(steps=(Step("score", False, found),))
    return Checked(steps=(Step("score", True),), entry=found)


def examine(job: Job, asked: Asked, limits: Limits) -> Checked:
    """Checks and scores what lies in the job's folder. Raises nothing that the upload can cause."""
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
        )
        entry, judged = score(accepted, asked, folder / RUN)
    except Refused as refusal:
        return Checked(steps=trail.refused(refusal))
    correct, n = entry.counts["perturbed"]
    trail.passed("score", f"{correct:,} of {n:,} perturbed rows are right")
    stored = sha256((folder / RUN / "predictions.parquet").read_bytes()).hexdigest()
    settings, said = accepted.record.settings, job.stated
    line = (job.user, accepted.model, settings.mode, asked.fingerprint(), stored, *settings.defend)
    day = datetime.fromisoformat(job.now).strftime("%Y%m%d")
    return Checked(
        steps=trail.steps(),
        entry=entry,
        claims=claims_of(accepted, judged),
        submission=Submission(
            id=f"{day}-{sha256(msgspec.json.encode(line)).hexdigest()[:12]}",
            user=job.user,
            model=accepted.model,
            mode=settings.mode,
            params_b=names.size_of(accepted.model) or said.params_b,
            family=names.family_of(accepted.model),
            submitted_at=job.now,
            dataset_version=asked.label,
            fingerprint=asked.fingerprint(),
            repeats=settings.repeat,
            predictions_sha256=stored,
            package_version=robustbench_tc.__version__,
            card=said.card,
            licence=said.licence,
            weights=said.weights,
            price_in=said.price_in,
            price_out=said.price_out,
            defence=",".join(settings.defend),
        ),
    )
