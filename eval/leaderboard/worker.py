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
from typing import Literal

import msgspec

import robustbench_tc
from robustbench_tc.io.files import atomic_file

from . import names, store
from .checks import Asked, Trail, check
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
    asked.fingerprint(), asked.by_id, asked.known, schema.prediction_features(scored=True)
    rows, saying = len(asked.by_id), threading.Lock()
    episodes = 0 if live is None else len(live.by_id)
    of_live = limits.cpu_of_live(episodes * limits.repeats, math.inf)

    def one(job: Job) -> None:
        most = of_live if is_live(job) else None
        ending = in_child(lambda: answer(job, asked, limits, live), limits, rows, most)
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


def in_child(work: Callable[[], None], limits: Limits, rows: int, most: int | None = None) -> Ending:
    """Forks, bounds the child, lets it work, and says how that ended. `rows`: of the dataset; `most`: seconds
    of processor time, by default those of so many rows."""
    most = _most(rows, limits) if most is None else most
    child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            os.setsid()
            bound(limits, rows, most)
            work()
            code = 0
        except MemoryError:
            code = _MEMORY
        finally:
            os._exit(code)
    ends = time.monotonic() + limits.wall_per_cpu * most
    usual, patient = limits.usual_s(rows), True
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if patient and _used_s(child) > usual:  # the others first, from now on
            patient = False
            os.setpriority(os.PRIO_PROCESS, child, 19)
        if time.monotonic() > ends:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "time"
        time.sleep(0.01)
    if os.WIFSIGNALED(status):
        killed_by_clock = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return "time" if killed_by_clock else "memory" if os.WTERMSIG(status) == signal.SIGABRT else "crash"
    return {0: "done", _MEMORY: "memory"}.get(os.WEXITSTATUS(status), "crash")  # type: ignore[return-value]


def _used_s(child: int) -> float:
    """Seconds of processor time that a process has had; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bound(limits: Limits, rows: int, most: int) -> None:
    """Gives up, for this process and for good, what an upload does not need.

    Processor time is that of one short answer a row; `answer` asks for more once it has seen that there are
    more, or longer ones.
    """
    try:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:  # no Linux: the other limits have to do
        now = None
    if now is not None:
        _limit(resource.RLIMIT_AS, now + limits.memory_bytes)
    _limit(resource.RLIMIT_CPU, most)
    _at_first(limits.cpu_of(rows))
    _limit(resource.RLIMIT_FSIZE, 2 * limits.decoded_bytes)
    _limit(resource.RLIMIT_NOFILE, 128)
    _limit(resource.RLIMIT_CORE, 0)


def _most(rows: int, limits: Limits) -> int:
    return limits.cpu_of(rows * limits.repeats, math.inf)


def cpu_for(lines: Sequence[Line], limits: Limits) -> int:
    """Seconds of processor time for these answers: by their number, and by the length of what is parsed."""
    chars = 0
    for line in lines:
        chars += len(line.raw_output or "") + len(line.first_output or "")
        calls = (*(line.tool_calls or ()), *(line.first_tool_calls or ()))
        chars += sum(len(call.arguments) for call in calls)
    return limits.cpu_of(len(lines), chars)


def _limit(what: int, amount: int) -> None:
    _, hard = resource.getrlimit(what)
    bounded = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
    resource.setrlimit(what, (bounded, bounded))


def _at_first(seconds: int) -> None:
    """Processor time up to now: may be raised again, up to what `bound` left."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, hard), hard))


def answer(job: Job, asked: Asked, limits: Limits, live: LiveAsked | None = None) -> None:
    """Checks and scores one upload and leaves the answer in the job's folder."""
    folder = Path(job.folder)
    if job.again is None:
        made = examine(
            job,
            asked,
            limits,
            complete=lambda lines: _at_first(cpu_for(lines, limits)),
            live=live,
            replaying=lambda *of: _at_first(limits.cpu_of_live(*of)),
        )
    else:  # it has passed once: as much as there is
        _at_first(resource.getrlimit(resource.RLIMIT_CPU)[1])
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
