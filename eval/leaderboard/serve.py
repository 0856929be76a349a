"""`rbtc leaderboard serve`: the board with everything it needs, from a results folder and a dataset."""

import os
import socket
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, get_args

import msgspec

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval import inputs

from .account import Login
from .checks import Asked
from .limits import Limits
from .store import Store

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .worker import Pool

_SHARING = 3
"""Uploads that share a core: an honest one begins at once where hostile ones have taken most places."""

DEFAULT_STORE = "leaderboard-results"


def serve(
    dataset: str | Path | None = None,
    *,
    revision: str | None = None,
    store: str | Path = DEFAULT_STORE,
    results_repo: str | None = None,
    host: str = "127.0.0.1",
    port: int = 7860,
    login: Login | None = None,
    workers: int = 2,
    limits: Limits | None = None,
    stop: Event | None = None,
    started: Callable[[str], None] = lambda url: None,
    progress: Callable[[str], None] = lambda line: None,
) -> None:
    """Serves the leaderboard and its submit page; returns once it is stopped, by Ctrl-C or by `stop`.

    `dataset`: the release that submissions are taken for; None takes none. `store`: the results folder, kept
    equal to the Hub's `results_repo` where one is named. `login`: by default `hf` in a Space, else `local`.
    `port` 0 takes a free one. `started` gets the address once it can be opened, `progress` a line for every
    submission that is left out.

    Raises UserError where gradio is missing (extra `leaderboard`), the address is taken, or the dataset or
    the store cannot be used.

    >>> stop = Event()
    >>> Thread(target=serve, kwargs={"port": 0, "stop": stop, "started": print}).start()  # doctest: +SKIP
    """
    from .app import run

    if login not in (None, *get_args(Login)):
        raise unknown("login", login or "", get_args(Login))
    in_space = "SPACE_ID" in os.environ
    with closing(_listen(host, port)) as listening:
        app, pool = _site(
            None if dataset is None else str(dataset),
            revision,
            open_store(store, results_repo),
            login or ("hf" if in_space else "local"),
            workers,
            limits or Limits(),
            progress,
        )
        with nullcontext() if pool is None else closing(pool):
            started(f"http://{host}:{listening.getsockname()[1]}")
            run(app, listening, limits or Limits(), behind_proxy=in_space, stop=stop)


def _listen(host: str, port: int) -> socket.socket:
    """A socket that holds the place before everything is loaded. Raises UserError where it is taken."""
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}): take another --port") from None
    return listening


def _site(
    dataset: str | None,
    revision: str | None,
    store: Store,
    login: Login,
    workers: int,
    limits: Limits,
    progress: Callable[[str], None],
) -> "tuple[FastAPI, Pool | None]":
    """The app, and the processes that read uploads for it."""
    from .app import create
    from .desk import Desk
    from .origin import Origin
    from .rebuild import rebuild
    from .records import board_version
    from .scoring import entries_of_paper
    from .site import Boards
    from .worker import Pool

    pool, desk, asked, served = None, None, "", None
    closed = "it was started without a dataset (--dataset)."
    loaded: list[Asked] = []
    if dataset is not None:
        folder = inputs.locate(dataset, revision)
        data = load_asked(str(folder))
        loaded.append(data)
        pool = Pool(worker_command(folder, limits), _SHARING * workers)
        pool.warm()
        desk = Desk(store, pool, limits)
        served = (data.label, data.fingerprint())
        asked = f"version {data.label}, board {board_version(data.version, data.fingerprint())}"
    found = rebuild(store, loaded, only_missing=True)
    for one, why in found.not_possible.items():
        progress(f"{one} is not on its board: {why}")
    origin = Origin(dataset, getattr(store, "repo", None))
    boards = Boards(store, entries_of_paper(), served, origin)
    boards.all()
    return create(boards, desk, login=login, asked=asked, closed=closed), pool


def open_store(folder: str | Path, results_repo: str | None) -> Store:
    """The results folder, brought up to date with the Hub where there is a repository."""
    from .hub import HubStore

    path = Path(folder).expanduser()
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is not a folder: name one for the results with --store")
    if results_repo is None:
        return Store(path)
    store = HubStore(path, results_repo)
    store.sync()
    return store


def load_asked(dataset: str, revision: str | None = None) -> Asked:
    """A dataset for a board. Raises UserError."""
    return Asked.of(inputs.load(dataset, revision=revision))


def worker_command(dataset: Path, limits: Limits) -> list[str]:
    """Starts the process that reads and scores uploads: `eval.leaderboard.worker`."""
    start = "from robustbench_tc.eval.leaderboard.serve import work; work()"
    return [sys.executable, "-P", "-c", start, str(dataset), msgspec.json.encode(limits).decode()]


def work() -> None:
    """What `worker_command` runs."""
    from .worker import serve as answer_jobs

    dataset, limits = sys.argv[1:3]
    answer_jobs(load_asked(dataset), msgspec.json.decode(limits, type=Limits))
