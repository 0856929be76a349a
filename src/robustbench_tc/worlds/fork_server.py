"""A world's file in another Python: imported once, then forked for every episode.

`host` starts it as `PYTHON -I -B fork_server.py SOCKET FILE SECONDS`: the number of an inherited socket, the
world's file, and how long one request may take. It says `ready` on the socket; each byte that comes then
brings the socket of a new episode along. A child plays it, and ends with its socket. There a line is a JSON
list, answered by a line with an object:

    [state, seed]        once, opens the world       {}, or {"error": why}
    [name, arguments]    a call                      {"text": result}
    []                   what the world is now       {"state": …, "generated": […]}

Standard library only: our package is not installed in that Python.
"""

import contextlib
import json
import os
import resource
import runpy
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

ADDRESS_SPACE = 512 * 2**20
"""Bytes that an episode may map: what asks for more gets a MemoryError."""

WAITING = 10
"""A request may take so many times its processor time where the machine is busy, or the call sleeps."""


def set_clock(seconds: float) -> None:
    """The kernel ends this process after so much processor time, whatever it is doing; 0: it does not."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WAITING * seconds)


def play(world_class: Callable[..., Any], host: socket.socket, seconds: float) -> None:
    """One episode, until the host closes its end."""
    with contextlib.suppress(OSError, ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    world = None
    lines = host.makefile("rb")
    for line in lines:
        asked = json.loads(line)
        set_clock(seconds)
        answer: dict[str, object] = {}
        if world is None:
            try:
                world = world_class(*asked)
            except Exception as error:  # a world is anybody's class: its caller says so
                answer["error"] = f"{type(error).__name__}: {error}"
        elif asked:
            answer["text"] = world.call(*asked)
        else:
            answer = {"state": world.state(), "generated": world.generated()}
        set_clock(0)
        host.sendall(json.dumps(answer).encode() + b"\n")


def serve(world_class: Callable[..., Any], host: socket.socket, seconds: float) -> None:
    """Forks until the host is gone. Children are waited for by the kernel."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(host, 1, 1)
        if not message:
            return
        with socket.socket(fileno=descriptors[0]) as episode:
            if os.fork() == 0:
                try:
                    host.close()
                    play(world_class, episode, seconds)
                finally:
                    os._exit(0)


def main() -> None:
    host = socket.socket(fileno=int(sys.argv[1]))
    world_class = runpy.run_path(sys.argv[2])["WORLD"]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what it wrote so far says why it does not start
    host.sendall(b"ready")
    try:
        serve(world_class, host, float(sys.argv[3]))
    finally:
        os.killpg(0, signal.SIGKILL)  # itself and its children, those too that are in a call


if __name__ == "__main__":
    main()
