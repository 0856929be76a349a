"""BFCL's multi-turn classes as a world: programs of bfcl-eval, driven by direct calls.

This file runs in another Python (`make env-live`), in which our package is not installed: it needs the
standard library, bfcl-eval and mpmath only. A world is used in one process and thrown away with it, because
upstream's classes share tables and default arguments between their instances. Nothing that a model wrote is
evaluated: a call goes to a public method of an involved class, by name and with keyword arguments.
"""

import copy
import json
import math
import random
from collections.abc import Callable, Mapping
from datetime import datetime
from importlib import import_module
from inspect import getmembers, isfunction
from typing import Any

_PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"

MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""The classes and upstream's modules. Imported here once: worlds are forks of the process that did."""

CLASSES: dict[str, Any] = {
    name: getattr(import_module(f"{_PACKAGE}.{module}"), name) for name, module in MODULES.items()
}


class _Today(datetime):
    """The clock of the one function that asks for the date (is a traveller of age?): it stands still."""

    @classmethod
    def today(cls) -> "_Today":
        return cls(2026, 3, 23)


import_module(f"{_PACKAGE}.travel_booking").datetime = _Today  # type: ignore[attr-defined]

PUBLIC = {
    name: tuple(method for method, _ in getmembers(cls, isfunction) if not method.startswith("_"))
    for name, cls in CLASSES.items()
}
"""What can be called: exactly the functions that upstream documents."""

_DEEPEST = 60
_MOST = 100_000
_BITS = 4096
"""Levels, values and bits of an integer in a state; what is beyond becomes "...". No task comes near, but a
directory that is copied into itself has no end, and Python does not write integers of any length."""


class Recorded(random.Random):
    """A class's generator that also notes what it drew, as the text under which it is seen later."""

    def __init__(self, original: random.Random, drawn: list[str], shown: Callable[[Any], str]) -> None:
        super().__init__(0)
        self.setstate(original.getstate())
        self._drawn, self._shown = drawn, shown

    def randint(self, a: int, b: int) -> int:
        value = super().randint(a, b)
        self._drawn.append(self._shown(value))
        return value

    def uniform(self, a: float, b: float) -> float:
        value = super().uniform(a, b)
        self._drawn.append(self._shown(value))
        return value


def _moment(value: int) -> str:
    """How the trading class writes the second that it drew."""
    return datetime.fromtimestamp(value).strftime("%Y-%m-%d %H:%M:%S")


class BfclWorld:
    """The involved classes of one task.

    `state`: `involved_classes`, `initial_config` by class, `long_context`. Upstream's scenarios bring their
    own seeds, so `seed` changes nothing.
    """

    name = "bfcl"

    def __init__(self, state: Mapping[str, Any], seed: int = 0) -> None:
        self.instances: dict[str, Any] = {}
        self._methods: dict[str, Callable[..., Any]] = {}
        self._drawn: list[str] = []
        for name in state["involved_classes"]:
            if name not in CLASSES:
                raise ValueError(f"no class {str(name)[:80]!r}: there are {', '.join(CLASSES)}")
            instance = CLASSES[name]()
            if name != "MathAPI":  # which has no state
                scenario = copy.deepcopy(state["initial_config"].get(name, {}))
                instance._load_scenario(scenario, long_context=bool(state["long_context"]))
            if hasattr(instance, "_random"):
                shown = _moment if name == "TradingBot" else str
                instance._random = Recorded(instance._random, self._drawn, shown)
            self.instances[name] = instance
            self._methods.update({method: getattr(instance, method) for method in PUBLIC[name]})

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The result of a call as upstream words it; never raises."""
        try:
            if name not in self._methods:
                raise NameError(f"name '{name}' is not defined")
            result = self._methods[name](**copy.deepcopy(dict(arguments)))
            if type(result) is dict:
                result = _ordered(name, arguments, result)
                try:
                    return json.dumps(result)
                except Exception:  # numbers of mpmath and decimal
                    return str(result)
            return result if type(result) is str else str(result)
        except Exception as error:  # upstream answers a call with whatever it raised
            return f"Error during execution: {error}"

    def state(self) -> dict[str, Any]:
        """The public attributes of every class, and the working directory where there is one."""
        return {"classes": self.classes(), "cwd": self._cwd()}

    def classes(self) -> dict[str, Any]:
        """The state without the working directory: what upstream compares, and the oracle vectors hash."""
        encode = _Encoder()
        return {
            name: {key: encode(value) for key, value in vars(instance).items() if not key.startswith("_")}
            for name, instance in self.instances.items()
        }

    def generated(self) -> list[str]:
        """Every value that was drawn from a seeded generator, as text, in order: ids, moments, amounts."""
        return list(self._drawn)

    def _cwd(self) -> str | None:
        files = self.instances.get("GorillaFileSystem")
        if files is None:
            return None
        names, folder = list[str](), files._current_dir
        while folder is not None and len(names) < _DEEPEST:
            names.append(str(folder.name))
            folder = folder.parent
        return "/" + "/".join(reversed(names))


def _ordered(name: str, arguments: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """The result; where upstream words a set, whose order changes from process to process, in one order."""
    error = str(result.get("error", ""))
    if name == "book_flight" and error.startswith("Invalid travel class. Must be one of {"):
        return {**result, "error": "Invalid travel class. Must be one of {'economy', 'business', 'first'}"}
    if name == "edit_ticket" and error.startswith(_INVALID):
        strange = sorted(set(arguments["updates"]) - {"title", "description", "status", "priority"})
        return {**result, "error": _INVALID + ", ".join(strange)}
    return result


_INVALID = "Invalid fields for update: "


class _Encoder:
    """Attributes of upstream's classes as JSON of bounded size."""

    def __init__(self) -> None:
        self._left = _MOST

    def __call__(self, value: Any, depth: int = 0) -> Any:
        """The value as JSON."""
        self._left -= 1
        if depth > _DEEPEST or self._left < 0:
            return "..."
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, int) and value.bit_length() > _BITS:
            return "..."
        if value is None or isinstance(value, (str, int, float)):
            return value
        if isinstance(value, dict):
            keys = {key: key if isinstance(key, str) else json.dumps(key, default=str) for key in value}
            return {keys[key]: self(one, depth + 1) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self(one, depth + 1) for one in value]
        if isinstance(value, (set, frozenset)):
            return sorted((self(one, depth + 1) for one in value), key=str)
        kind = type(value).__name__
        if kind == "File":
            return {"type": "file", "name": self(value.name), "content": self(value.content, depth + 1)}
        if kind == "Directory":
            return {
                "type": "directory",
                "name": self(value.name),
                "contents": self(value.contents, depth + 1),
            }
        return str(value)


WORLD = BfclWorld
