"""What a reader finds: a call, where it stands, and by which format."""

from typing import NamedTuple

from robustbench_tc.schema import Call


class Finding(NamedTuple):
    """One call. `raw` is the text of arguments that are not an object: the call then has no parameters."""

    call: Call
    raw: str | None = None


class Found(NamedTuple):
    """Calls that one passage of the final answer writes out."""

    start: int
    end: int
    findings: tuple[Finding, ...]
    code: str
    """Of the format, a key of `formats.FORMATS`."""
