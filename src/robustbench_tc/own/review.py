"""What somebody decided about proposed cases: `<cases>.review.jsonl` beside the cases file.

A decision holds for a case as it stood: its sha256 is recorded, so an edited case is to be looked at again.
"""

import hashlib
import json
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json

from .limits import LARGE, read_bytes

Decision: TypeAlias = Literal["accept", "edit", "drop"]

PROPOSED_BY = "proposed_by"
"""The key of a proposed case: a log and its line, `draft`, or the model that wrote it."""
PROBLEM = "problem"
"""The key of a proposal that cannot be built as it stands: why."""


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file."""

    id: str
    sha256: str
    """Of the case as it was decided about: `fingerprint`."""
    decision: Decision
    by: str
    at: str
    """UTC, as ISO writes it."""


Reviews: TypeAlias = dict[tuple[str, str], Review]
"""By id and sha256 the last decision about a case as it stood."""


def fingerprint(case: Json) -> str:
    """The sha256 of a case as JSON with its keys in order: what it says counts, not how it is written."""
    text = json.dumps(case, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def place(cases: Path) -> Path:
    """Where the decisions about a cases file stand."""
    return cases.with_name(f"{cases.stem}.review.jsonl")


def read_reviews(cases: Path) -> Reviews:
    """The decisions about a cases file, if somebody has made any. Raises UserError for a broken file."""
    path = place(cases)
    found: Reviews = {}
    if path.is_symlink() or path.exists():
        for number, line in enumerate(read_bytes(path, "a file of reviews", LARGE).split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                review = msgspec.json.decode(line, type=Review)
            except (ValueError, RecursionError):
                raise UserError(f"{path}:{number}: not a decision; remove the line") from None
            found[review.id, review.sha256] = review
    return found
