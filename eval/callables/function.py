"""A Python function of the user's: found by name, run beside the harness, bounded in time.

A sync function runs in a thread for each request, one after the other; an async one in an event loop of its
own, as many at once as the harness asks: so that a function that hangs neither stops the harness nor
keeps Ctrl-C from it.
"""

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any

from robustbench_tc.errors import UserError

from .task import Failed, Task

HINT = "name it as module:function, or file.py:function"


def find(spec: str) -> Callable[[Task], Any]:
    """The function that `module:function` or `file.py:function` names, the working folder first.

    Raises UserError, also where the module cannot be imported.
    """
    where, colon, name = spec.rpartition(":")
    if not colon or not where or not name:
        raise UserError(f"--callable {spec}: {HINT}")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = _file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise UserError(f"--callable {spec}: {where} cannot be imported: {' '.join(said.split())}") from None
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise UserError(f"--callable {spec}: {where} has no {name}; {HINT}")
    return check(found, spec)


def check(found: Any, spec: str) -> Callable[[Task], Any]:
    """The function itself, if it can be called with one task. Raises UserError."""
    if not callable(found):
        raise UserError(f"--callable {spec}: it is {type(found).__name__}, not a function")
    try:
        inspect.signature(found).bind(None)
    except TypeError:
        raise UserError(f"--callable {spec}: it must take one task: def answer(task): …") from None
    except ValueError:  # a builtin that says nothing of its parameters
        pass
    return found  # type: ignore[no-any-return]


def _file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    made = importlib.util.spec_from_file_location(path.stem, path)
    assert made is not None  # it ends in .py
    module = importlib.util.module_from_spec(made)
    sys.modules[path.stem] = module
    # As it is now: compiled code that Python kept may be of a file changed within the same second.
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


def code_digest(function: Callable[..., Any]) -> str | None:
    """16 hex digits of the function's file: a changed one is another agent. None: it stands in no file."""
    try:
        source = inspect.getsourcefile(inspect.unwrap(function))
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16] if source else None
    except (TypeError, OSError):
        return None


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    )


async def run(function: Callable[[Task], Any], task: Task, timeout_s: float) -> Any:
    """What the function returns; what hangs is left to the end of the process.

    Raises TimeoutError, Failed where it ended its thread (with sys.exit() for instance), and whatever the
    function raises.
    """
    future: Future[Any] = Future()
    if is_async(function):

        async def answered() -> Any:
            try:
                return await function(task)
            except (SystemExit, KeyboardInterrupt) as error:
                raise _ended(error) from None

        future = asyncio.run_coroutine_threadsafe(answered(), _loop())
    else:

        def work() -> None:
            try:
                future.set_result(function(task))
            except Exception as error:  # it is raised again where the answer is awaited
                future.set_exception(error)
            except BaseException as error:  # SystemExit of a user's code ends its row, not the run
                future.set_exception(_ended(error))

        future.set_running_or_notify_cancel()
        # A daemon: one that hangs does not keep the process from ending.
        threading.Thread(target=work, name="agent", daemon=True).start()
    return await asyncio.wait_for(asyncio.wrap_future(future), timeout_s)


def _ended(by: BaseException) -> Failed:
    return Failed(f"it ended with {type(by).__name__}{f' {by}' if str(by) else ''}")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Where async functions run: one for all, since their clients are bound to it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="agent", daemon=True).start()
    return loop
