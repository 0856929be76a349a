"""`parallel.map_ordered` on Ray: one task per item around the same function, results back in order.

A task whose process or node is lost runs again elsewhere; nothing else does. The nodes need this package in
the same version, and nothing of each other's files.
"""

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from .. import __version__
from ..errors import UserError, need_extra

Item = TypeVar("Item")
Result = TypeVar("Result")
Handle = TypeVar("Handle")

ATTEMPTS = 4
"""How often Ray gives a task to another worker after losing the one that had it."""

OBJECT_STORE = 512 * 2**20
"""Bytes of shared memory of a Ray that is started here: parts are small, and few are in flight."""


def begun(begin: Callable[[Item], Handle], items: Iterable[Item], ahead: int) -> Iterator[Handle]:
    """What `begin` returns for each item, in order; `ahead` items are begun before the first is asked for."""
    waiting: deque[Handle] = deque()
    for item in items:
        waiting.append(begin(item))
        if len(waiting) >= ahead:
            yield waiting.popleft()
    yield from waiting


def map_ordered(
    work: Callable[[Item], Result], items: Iterable[Item], num_proc: int, address: str | None
) -> Iterator[Result]:
    """See `parallel.map_ordered`. UserError where there is no Ray, no cluster, or no worker survives."""
    with session(num_proc, address) as ray:
        do = ray.remote(max_retries=ATTEMPTS)(_do)
        # In a list Ray hands the reference over, not the object: a worker fetches it once, not per task.
        shared = [ray.put(work)]
        ahead = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        for task in begun(lambda item: do.remote(shared, item, __version__), items, ahead):
            try:
                yield ray.get(task)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except ray.exceptions.RayError as error:
                raise UserError(
                    f"Ray lost a part {ATTEMPTS + 1} times ({type(error).__name__}; out of memory?): "
                    "run again, with fewer processes a node"
                ) from None


@contextmanager
def session(num_proc: int, address: str | None) -> Iterator[Any]:
    """Ray, joined at `address` or started for this block; one that is there already is used and left."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a build does not phone home
    try:
        import ray
    except ImportError:
        raise need_extra("ray", "scale") from None
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"address": address}
    if address is None:
        options = {
            "address": "local",
            "num_cpus": num_proc,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE,
        }
    try:
        _knock(address or "")
        ray.init(**options, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        where = f"at {address}" if address else "on this machine"
        raise UserError(f"no Ray cluster {where}: {str(error).strip().splitlines()[0]}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


@lru_cache(maxsize=1)
def _fetched(reference: Any) -> Any:
    import ray

    return ray.get(reference)


def _do(shared: list[Any], item: Any, version: str) -> Any:
    """One task: the work on one item."""
    if version != __version__:
        raise UserError(
            f"a Ray worker has robustbench-tc {__version__}, this machine {version}: install the same on all"
        )
    [reference] = shared
    return _fetched(reference)(item)


def _knock(address: str) -> None:
    """Raises OSError where nobody listens at HOST:PORT: Ray would wait for somebody for a very long time."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()
