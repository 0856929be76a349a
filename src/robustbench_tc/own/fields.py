"""Small readers of a YAML file's fields: what every error names is the file, the line, and what to write."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from robustbench_tc.errors import UserError

from .yaml import Node


class Fields:
    """Readers of one file."""

    def __init__(self, where: str) -> None:
        """`where` names the file in errors."""
        self.where = where

    def fail(self, line: int, said: str) -> NoReturn:
        """Raises UserError, in one line: names may hold line ends."""
        raise UserError(f"{self.where}:{line}: {' '.join(said.split())}")

    def mapping(self, node: Node, what: str, known: Sequence[str]) -> dict[str, Node]:
        """The entries of a mapping that has none but the known keys."""
        if not isinstance(node.value, dict):
            self.fail(node.line, f"{what} must be a mapping with the keys {', '.join(known)}")
        for key in node.value:
            if key not in known:
                near = get_close_matches(key, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
                self.fail(node.keys[key], f"unknown key {key[:60]!r} of {what}: {hint}")
        return node.value

    def text(self, node: Node, what: str) -> str:
        """A text that is not empty."""
        if not isinstance(node.value, str) or not node.value.strip():
            self.fail(node.line, f"{what!r} must be a text that is not empty; put it into quotes")
        return node.value

    def flag(self, node: Node | None, what: str) -> bool:
        """True or false; false where there is none."""
        if node is not None and not isinstance(node.value, bool):
            self.fail(node.line, f"{what!r} must be true or false")
        return node is not None and bool(node.value)

    def version(self, top: dict[str, Node], line: int) -> None:
        """Refuses a file whose `version` is not 1."""
        version = top.get("version")
        if version is None:
            self.fail(line, "'version' is missing; write version: 1")
        if version.value != 1 or isinstance(version.value, bool):
            self.fail(version.line, "this version is not known; write version: 1")
