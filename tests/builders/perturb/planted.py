"""Planted defects: defects.yaml, and what its edits do to a row."""

import copy
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import msgspec

from robustbench_tc.schema import Json, Sample

from .cases import read


class Defect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See the head of defects.yaml."""

    defect: str
    check: str
    types: tuple[str, ...]
    edits: tuple[dict[str, Any], ...]


DEFECTS = read("defects.yaml", tuple[Defect, ...])


class Planted(NamedTuple):
    check: str
    """The check of the gate that has to see it."""
    plant: Callable[[Sample, Sample], Sample]
    """(clean, row) → the spoiled row; the row itself where the defect finds no place in it."""


def defects_of(code: str) -> list[Planted]:
    """The defects of a type: one or more, and beyond the core two or more, each for another check."""
    return [
        Planted(one.check, partial(_spoiled, one))
        for one in DEFECTS
        if any(map(partial(fnmatchcase, code), one.types))
    ]


def spoil(code: str, clean: Sample, row: Sample, number: int = 0) -> Sample:
    """The row with one of its type's defects."""
    return defects_of(code)[number].plant(clean, row)


def _spoiled(defect: Defect, clean: Sample, row: Sample) -> Sample:
    edited = Edited(clean, row)
    try:
        for edit in defect.edits:
            edited.edit(edit)
    except (LookupError, StopIteration):
        return row
    return msgspec.convert(edited.row, Sample)


class Edited:
    """A row under edit, as it stands in JSON."""

    def __init__(self, clean: Sample, row: Sample) -> None:
        self.clean, self.row = (msgspec.json.decode(msgspec.json.encode(one)) for one in (clean, row))

    def edit(self, edit: dict[str, Any]) -> None:
        """Makes one edit. Raises LookupError or StopIteration where it finds no place."""
        (name, place), *_ = edit.items()
        if name == "swap":
            (one, first), (two, second) = (self._place(self.row, path) for path in place)
            one[first], two[second] = two[second], one[first]
        elif name == "forget":
            self.row["changes"] = [one for one in self.row["changes"] if not one["path"].startswith(place)]
        elif name == "next":
            self.row["gold_tool_index"] = ((self.row["gold_tool_index"] or 0) + 1) % len(self.row["tools"])
        elif name == "request":
            self._reword(place, self._value(edit.get("within", "")))
        else:
            holder, key = self._place(self.row, place)
            if name == "remove":
                del holder[key]
            elif name == "add" and isinstance(holder, list):
                holder.insert(key, self._value(edit["value"]))
            elif "text" in edit:
                pattern, text = self._value(edit["text"])
                holder[key] = re.sub(pattern, text, holder[key])
            else:
                holder[key] = self._value(edit["value"])

    def _reword(self, edit: tuple[str, str], part: str) -> None:
        change = next(one for one in self.row["changes"] if one["path"].startswith("/messages"))
        message, _ = self._place(self.row, change["path"])
        start, before = change["at"] or 0, change["after"]
        if part not in before:
            raise LookupError(part)
        after = before.replace(part, re.sub(*edit, part)) if part else re.sub(*edit, before)
        message["content"] = message["content"][:start] + after + message["content"][start + len(before) :]
        change["after"] = after

    def _value(self, value: Json) -> Json:
        if isinstance(value, dict) and len(value) == 1 and value.keys() <= {"clean", "row"}:
            ((side, path),) = value.items()
            holder, key = self._place(getattr(self, side), path)
            return copy.deepcopy(holder[key])
        if isinstance(value, dict):
            return {key: self._value(inner) for key, inner in value.items()}
        return [self._value(inner) for inner in value] if isinstance(value, list) else value

    def _place(self, document: dict[str, Any], path: str) -> tuple[Any, Any]:
        """What holds the place, and the key or index in it."""
        name = re.search(r"\{(.*)\}", path)
        if name:
            path = path.replace(name[0], str(self._tool(self._value({"row": f"/{name[1]}"}))))
        holder: Any = {"": document}
        key: Any = ""
        for word in path.split("/")[1:]:
            holder = holder[key]
            key = self._index(document, holder, word) if isinstance(holder, list) else word
            key = next(iter(holder)) if key == "*" else key
        return holder, key

    def _tool(self, name: str) -> int:
        return next(at for at, tool in enumerate(self.row["tools"]) if tool["name"] == name)

    def _index(self, document: dict[str, Any], holder: list[Any], word: str) -> int:
        new = [at for at, one in enumerate(holder) if one not in self.clean["tools"]]
        named: dict[str, Callable[[], int]] = {
            "-": lambda: len(holder),
            "last": lambda: len(holder) - 1,
            "gold": lambda: document["gold_tool_index"] or 0,
            "new": lambda: new[-1],
            "other": lambda: next(at for at in new if at != document["gold_tool_index"]),
            "assistant": lambda: next(at for at, one in enumerate(holder) if one["role"] == "assistant"),
        }
        return named[word]() if word in named else int(word)
