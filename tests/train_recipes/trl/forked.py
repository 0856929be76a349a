"""The recipes' commands, each in a process forked from one that has loaded TRL.

Loading TRL takes 12 s of CPU. A forked process is a real one all the same: exit code, output, signals.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from robustbench_tc.errors import UserError

# Read as TRL is loaded, so before the first fork.
os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
os.environ |= {"TOKENIZERS_PARALLELISM": "false"}
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["trl.trainer.grpo_trainer", "trl.trainer.sft_trainer"])


def command(words: Sequence[str], out: Path, err: Path) -> None:
    """`python -m MODULE WORD …` in this process, with its output in files."""
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND), number)
    _, _, module, *sys.argv[1:] = words
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def start(words: Sequence[str], out: Path, err: Path) -> BaseProcess:
    process = CONTEXT.Process(target=command, args=(words, out, err))
    process.start()
    return process


def run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run`."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = start(words, out, err)
        process.join(600)
        assert process.exitcode is not None, "still running after ten minutes"
        return subprocess.CompletedProcess(words, process.exitcode, out.read_text(), err.read_text())


def run_program(words: Sequence[str], what: str, tell: Callable[[str], None], lines: str = "step ") -> None:
    """As smoke's."""
    done = run(words)
    for line in (done.stdout + done.stderr).splitlines():
        if line.startswith(lines):
            tell(line)
    if done.returncode:
        raise UserError(f"{what} ended with status {done.returncode}: {done.stderr[-300:]}")
