"""The process behind a type of world: imports its file once, then forks a child for every episode.

`processes` starts it as `python -I -B worker.py SOCKET PACKAGE FILE`: the number of an inherited socket,
the folder of this package (a world may import `robustbench_tc.worlds.base`), and the world's file. This one
needs the standard library only, so that any Python can run it. With `check` as a fourth word its children
look for mistakes in the file (`check`) instead of playing episodes.

On the socket the host sends five bytes: `F` and a number with two descriptors (fork a child of that number,
which reads requests from the first and answers on the second), or `E` and a number (end it). The parent says
one thing, at the start: a frame with `isolation`, or with `error`. Frames are four bytes of length and JSON;
between host and child they carry a number that the answer repeats.

The child gives up what it does not need before it reads anything: descriptors, environment, memory beyond a
bound, and with seccomp every system call outside a short list. A refused one gives EPERM: the tool fails, the
world goes on. The threat is a model's arguments to a pinned world, not a hostile world.
"""

import contextlib
import ctypes
import errno
import functools
import gc
import importlib.util
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys
import sysconfig
import types
import typing

MEGABYTE = 2**20
ADDRESS_SPACE = 512 * MEGABYTE
HEADROOM = 256 * MEGABYTE
"""What a child may map beyond what its parent has mapped already, where that is much."""
CPU_SECONDS = 600
DESCRIPTORS = 16

# Number of a system call on x86_64 and on aarch64; what is not here is refused.
ALLOWED = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "close": (3, 57), "lseek": (8, 62), "poll": (7, None), "ppoll": (271, 73), "select": (23, None),
    "pselect6": (270, 72), "fstat": (5, 80), "stat": (4, None), "lstat": (6, None),
    "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "getdents64": (217, 61), "readlink": (89, None), "readlinkat": (267, 78),
    "getcwd": (79, 17), "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "mremap": (25, 216),
    "madvise": (28, 233), "brk": (12, 214), "futex": (202, 98), "rt_sigreturn": (15, 139),
    "restart_syscall": (219, 128), "setitimer": (38, 103), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "nanosleep": (35, 101), "gettimeofday": (96, 169), "time": (201, None),
    "getrandom": (318, 278), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178),
    "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177),
    "uname": (63, 160), "sysinfo": (99, 179), "getrusage": (98, 165), "times": (100, 153),
    "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
OPENS = {"open": (2, None), "openat": (257, 56)}
"""Allowed for reading: lazy imports need it."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def seccomp_filter(machine: str) -> bytes | None:
    """The filter as a BPF program; None for a machine whose numbers are not known here."""
    if sys.platform != "linux" or machine not in ARCHITECTURES:
        return None
    column, architecture = ARCHITECTURES[machine]
    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06  # of the classic BPF instruction set
    allow, kill, refuse = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, kill), (load, 0, 0, 0)]
    for name, numbers in OPENS.items():
        if (number := numbers[column]) is not None:
            flags = 16 + 8 * (1 if name == "open" else 2)  # where the argument lies in seccomp_data
            program += [(equal, 0, 4, number), (load, 0, 0, flags)]
            program += [(any_bit, 1, 0, WRITING), (give, 0, 0, allow), (give, 0, 0, refuse)]
    for numbers in ALLOWED.values():
        if (number := numbers[column]) is not None:
            program += [(equal, 0, 1, number), (give, 0, 0, allow)]
    program.append((give, 0, 0, refuse))
    return b"".join(struct.pack("HBBI", *one) for one in program)


class Instructions(ctypes.Structure):
    """The kernel's sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.c_char_p))


class Filter:
    """A filter ready to be put on: what can be made before the fork is."""

    def __init__(self, program: bytes) -> None:
        self.prctl = ctypes.CDLL(None, use_errno=True).prctl
        self.instructions = Instructions(len(program) // 8, program)
        zero, one, mode = (ctypes.c_ulong(number) for number in (0, 1, SECCOMP_MODE_FILTER))
        self.no_new_privs = (PR_SET_NO_NEW_PRIVS, one, zero, zero, zero)
        self.seccomp = (PR_SET_SECCOMP, mode, ctypes.byref(self.instructions), zero, zero)

    def put_on(self) -> bool:
        """On this process, for good."""
        return not (self.prctl(*self.no_new_privs) or self.prctl(*self.seccomp))

    def taken(self) -> bool:
        """Whether this kernel takes it: tried in a child."""
        pid = os.fork()
        if pid == 0:
            try:
                os._exit(0 if self.put_on() else 1)
            finally:
                os._exit(1)
        return os.waitpid(pid, 0)[1] == 0


def read_only(folders: list[str]) -> None:
    """From here on only these can be read, and nothing written, where the kernel has Landlock.

    Beyond what the filter does: it cannot see paths, and a host's key stands in its /proc/PID/environ. What
    lies elsewhere, a world reads when its file is imported.
    """
    if sys.platform != "linux":
        return
    create, add, restrict = 444, 445, 446  # the same on every architecture
    every, reading = (1 << 13) - 1, (1 << 2) | (1 << 3)  # rights of the first version; files and folders
    libc = ctypes.CDLL(None, use_errno=True)
    handled = struct.pack("Q", every)
    rules = libc.syscall(create, handled, ctypes.c_size_t(len(handled)), 0)
    if rules < 0:
        return
    for folder in folders:
        with contextlib.suppress(OSError):
            opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            rights = reading if os.path.isdir(folder) else 1 << 2  # noqa: PTH112 - nothing beyond os
            libc.syscall(add, rules, 1, struct.pack("=Qi", rights, opened), 0)
            os.close(opened)
    zero = ctypes.c_ulong(0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero)
    libc.syscall(restrict, rules, 0)
    os.close(rules)


def mapped() -> int:
    """How much address space this process has now; 0 where it cannot be seen."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - nothing beyond os
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def set_limits(address_space: int) -> None:
    """What needs no kernel feature: memory, processor time, files, processes, descriptors, no core."""
    limits = (
        ("RLIMIT_AS", address_space),
        ("RLIMIT_CPU", CPU_SECONDS),
        ("RLIMIT_FSIZE", 0),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NPROC", 0),
        ("RLIMIT_NOFILE", DESCRIPTORS),
    )
    for name, most in limits:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            resource.setrlimit(getattr(resource, name), (most, most))


def read_frame(source: int) -> typing.Any:
    """The next frame. Raises EOFError where the other side is gone."""
    head = read_exactly(source, 4)
    return json.loads(read_exactly(source, int.from_bytes(head, "big")))


def read_exactly(source: int, wanted: int) -> bytes:
    parts = []
    while wanted:
        part = os.read(source, min(wanted, MEGABYTE))
        if not part:
            raise EOFError
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts)


def write_frame(target: int, content: object) -> None:
    body = json.dumps(content).encode()
    rest = memoryview(len(body).to_bytes(4, "big") + body)
    while rest:
        rest = rest[os.write(target, rest) :]


def load(package: str, file: str, *, offered: bool = True) -> types.ModuleType:
    """The world's file as a module. `robustbench_tc` is found in its folder, without its __init__. `offered`:
    its tools have to be fit for that."""
    for name, folder in (("robustbench_tc", package), ("robustbench_tc.worlds", f"{package}/worlds")):
        stand_in = types.ModuleType(name)
        stand_in.__path__ = [folder]
        sys.modules[name] = stand_in
    sys.modules["robustbench_tc"].worlds = sys.modules["robustbench_tc.worlds"]  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location("rbtc_world", file)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["rbtc_world"] = module
    spec.loader.exec_module(module)
    if not hasattr(module, "WORLD"):
        raise ImportError("it has no WORLD")
    if offered and hasattr(module.WORLD, "tools"):
        module.WORLD.tools()  # what it works out about its tools, it need not do in every child
    return module


def give_up_descriptors(source: int, target: int, highest: int) -> None:
    """All but these two. `highest`: of the parent's own; a child's are at most a few beyond."""
    lower, upper = sorted((source, target))
    os.closerange(0, lower)
    os.closerange(lower + 1, upper)
    os.closerange(upper + 1, max(upper, highest) + 8)


def shut_in(seccomp: Filter | None, limit: int) -> bool:
    """Takes away from this child all that a world does not need; False where that failed."""
    sys.stdin = sys.stdout = sys.stderr = None
    os.environ.clear()
    set_limits(limit)
    return seccomp is None or seccomp.put_on()


def checking(module: types.ModuleType, source: int, target: int) -> None:
    """The life of a child that looks for mistakes: each request is the seconds that one step may take."""
    steps = sys.modules["robustbench_tc.worlds.check"].steps(module)
    done = False
    while not done:
        number, patience = read_frame(source)
        signal.setitimer(signal.ITIMER_REAL, patience)
        try:
            found = next(steps, None)
            answer = {"mistake": found} if isinstance(found, str) else {"at": found.place} if found else {}
        except Exception as error:  # of a class that cannot even be looked at
            answer = {"mistake": said(error)}
        done = "at" not in answer and "mistake" not in answer
        signal.setitimer(signal.ITIMER_REAL, 0)
        write_frame(target, [number, answer])


def episode(module: types.ModuleType, source: int, target: int) -> None:
    """A child's life: one world, until the host closes its end."""
    number, (state, seed, patience) = read_frame(source)
    signal.setitimer(signal.ITIMER_REAL, patience)  # ends it even where nobody is left who would
    try:
        world = module.WORLD(state, seed)
    except Exception as error:
        write_frame(target, [number, {"error": said(error)}])
        return
    signal.setitimer(signal.ITIMER_REAL, 0)
    write_frame(target, [number, {"pid": os.getpid()}])
    while True:
        number, asked = read_frame(source)
        signal.setitimer(signal.ITIMER_REAL, patience)
        answer = {"text": world.call(*asked)} if asked else state_of(world)
        signal.setitimer(signal.ITIMER_REAL, 0)
        write_frame(target, [number, answer])


def state_of(world: typing.Any) -> dict[str, object]:
    found = {"state": world.state(), "generated": list(world.generated())}
    try:
        json.dumps(found)
    except (TypeError, ValueError, RecursionError) as error:
        return {"error": said(error)}
    return found


def said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


class Forks:
    """The children of one parent, until the host is done with them."""

    def __init__(
        self, live: typing.Callable[[int, int], None], host: socket.socket, seccomp: Filter | None
    ) -> None:
        self.live, self.host, self.seccomp = live, host, seccomp
        self.highest = max(map(int, os.listdir("/dev/fd")))  # noqa: PTH208 - nothing beyond os
        self.limit = max(ADDRESS_SPACE, mapped() + HEADROOM)
        self.living: dict[int, int] = {}
        self.ending: set[int] = set()

    def fork(self, child: int, source: int, target: int) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            write_frame(target, [1, {"error": f"no process for it: {error.strerror}"}])
        else:
            if pid == 0:
                try:  # whatever ends the child, nothing of the parent's may run in it
                    give_up_descriptors(source, target, self.highest)
                    if shut_in(self.seccomp, self.limit):
                        self.live(source, target)
                finally:
                    os._exit(0)
            self.living[child] = pid
        os.close(source)
        os.close(target)

    def end(self, child: int) -> None:
        """A pid stays a child's until it is waited for: nobody else can be hit."""
        if (pid := self.living.pop(child, None)) is not None:
            self.ending.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait(self) -> None:
        self.ending = {pid for pid in self.ending if os.waitpid(pid, os.WNOHANG)[0] == 0}

    def serve(self) -> None:
        """Until the host is gone, which closes the socket; or it forked, and somebody else holds it open."""
        of = os.getppid()
        ready = select.poll()
        ready.register(self.host, select.POLLIN)
        while os.getppid() == of:
            if ready.poll(20 if self.ending else 1000):
                message, descriptors, _, _ = socket.recv_fds(self.host, 5, 2)
                if len(message) != 5:
                    break
                child = int.from_bytes(message[1:], "big")
                if len(descriptors) == 2:
                    self.fork(child, descriptors[0], descriptors[1])
                else:
                    self.end(child)
            self.wait()
        for child in tuple(self.living):
            self.end(child)
        for pid in self.ending:
            os.waitpid(pid, 0)


def main() -> None:
    host = socket.socket(fileno=os.dup(int(sys.argv[1])))  # a low number, however many the host has open
    os.close(int(sys.argv[1]))
    to_check = sys.argv[4:] == ["check"]
    try:
        module = load(sys.argv[2], sys.argv[3], offered=not to_check)
        if to_check:
            importlib.import_module("robustbench_tc.worlds.check")
    except BaseException as error:  # SystemExit of the file is a failure as any other
        write_frame(host.fileno(), {"error": said(error)})
        return
    program = seccomp_filter(platform.machine())
    seccomp = None if program is None else Filter(program)
    if seccomp is not None and not seccomp.taken():
        seccomp = None
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - what it wrote so far was for the host
        os.dup2(nothing.fileno(), 2)
    forks = Forks(functools.partial(checking if to_check else episode, module), host, seccomp)
    times = ("/etc/localtime", "/usr/share/zoneinfo")
    read_only([*sys.path, *sysconfig.get_paths().values(), *sys.argv[2:4], *times])
    gc.collect()
    gc.freeze()
    write_frame(host.fileno(), {"isolation": "limits only" if seccomp is None else "seccomp"})
    forks.serve()


if __name__ == "__main__":
    main()
