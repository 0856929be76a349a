"""The worker's file: it stands alone, and its filter says what it should on both architectures."""

import ast
import os
import struct
import sys
from pathlib import Path

import pytest

from robustbench_tc.worlds import worker

ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000
X86_64 = """
read 0 write 1 mmap 9 openat 257 socket 41 fork 57 vfork 58 clone 56 clone3 435 execve 59 execveat 322 kill 62
tgkill 234 ptrace 101 unlink 87 unlinkat 263 renameat2 316 linkat 265 symlinkat 266 openat2 437 fcntl 72
ioctl 16
prctl 157 bpf 321 io_uring_setup 425 truncate 76 creat 85 x32-write 1073741825 prlimit64 302 rt_sigaction 13
pidfd_send_signal 424
"""
AARCH64 = """
read 63 write 64
mmap 222 openat 56 socket 198 clone 220 clone3 435 execve 221 execveat 281 kill 129 tgkill 131
ptrace 117 unlinkat 35 renameat2 276 linkat 37 symlinkat 36 openat2 437 fcntl 25 ioctl 29 prctl 167 bpf 280
io_uring_setup 425 truncate 45 prlimit64 261 rt_sigaction 134 pidfd_send_signal 424
"""
NUMBERS = {
    machine: dict(zip(table.split()[::2], map(int, table.split()[1::2]), strict=True))
    for machine, table in (("x86_64", X86_64), ("aarch64", AARCH64))
}
"""Of the kernel's tables (asm/unistd_64.h, asm-generic/unistd.h)."""


def decided(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would do: a classic BPF machine with the four instructions that the filter uses."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    held, at = 0, 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("HBBI", program, 8 * at)
        at += 1
        if code == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
        elif code == 0x06:
            return int(value)
        else:
            fits = held == value if code == 0x15 else bool(held & value)
            assert code in (0x15, 0x45)
            at += if_true if fits else if_false


@pytest.mark.parametrize("machine", NUMBERS)
def test_the_filter_allows_a_short_list_and_opening_to_read(machine: str) -> None:
    program = worker.seccomp_filter(machine)
    assert program is not None
    here = worker.ARCHITECTURES[machine][1]
    for name, number in NUMBERS[machine].items():
        expected = ALLOW if name in ("read", "write", "mmap", "openat") else REFUSE
        assert decided(program, here, number) == expected, name
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_APPEND, os.O_RDWR | os.O_CLOEXEC):
        assert decided(program, here, NUMBERS[machine]["openat"], (0, 0, flags)) == REFUSE
    assert decided(program, here, NUMBERS[machine]["openat"], (0, 0, os.O_CLOEXEC | os.O_DIRECTORY)) == ALLOW


@pytest.mark.parametrize("machine", NUMBERS)
def test_a_call_of_another_architecture_kills(machine: str) -> None:
    program = worker.seccomp_filter(machine)
    assert program is not None
    for architecture in (0x40000003, 0x40000028, 0):
        assert decided(program, architecture, 0) == KILL


def test_there_is_no_filter_for_a_machine_whose_numbers_are_not_known() -> None:
    assert worker.seccomp_filter("riscv64") is None


def test_the_worker_needs_the_standard_library_only() -> None:
    tree = ast.parse(Path(worker.__file__).read_text())
    found = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert found and not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))
    assert {name.partition(".")[0] for name in found} <= sys.stdlib_module_names
