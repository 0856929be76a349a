"""The perturbation types: code, display name, component, method, and the evidence behind each.

The rows are data of the package (`data/taxonomy.json`, `data/evidence.jsonl`) and are published with the
dataset as the configs `taxonomy` and `evidence`. Order is that of the paper's Table 1.
"""

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from .errors import unknown
from .schema import Component

COMPONENTS: tuple[Component, ...] = ("observation", "action", "reward", "transition")

CLEAN = "clean"


class PerturbationType(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the taxonomy."""

    order: int
    code: str
    display_name: str
    """The paper's short name, used in tables beside the code."""
    component: Component
    what_is_modified: str
    method: Literal["llm", "rule", "runtime"]
    """llm: the text is model-written; rule: a pure function; runtime: happens while the tool runs."""
    status: Literal["core", "extension"]
    static: bool
    """False for transition types: their rows equal the clean row."""
    train_augmentable: bool
    sources: tuple[str, ...]
    ground_truth_changes: bool


@cache
def _data() -> dict[str, Any]:
    text = files("robustbench_tc").joinpath("data/taxonomy.json").read_bytes()
    return msgspec.json.decode(text)  # type: ignore[no-any-return]


@cache
def types(status: Literal["core", "extension", "all"] = "core") -> tuple[PerturbationType, ...]:
    """The types in order: the 22 of the benchmark, or with the extensions that this package can build."""
    rows = msgspec.convert(_data()["types"], tuple[PerturbationType, ...])
    return tuple(row for row in rows if status in ("all", row.status))


@cache
def codes() -> tuple[str, ...]:
    """The 22 codes, Table 1's order."""
    return tuple(t.code for t in types())


def get(code: str) -> PerturbationType:
    """The type of that code. Raises UserError with near misses."""
    found = _by_code()
    if code not in found:
        raise unknown("perturbation type", code, found)
    return found[code]


@cache
def _by_code() -> dict[str, PerturbationType]:
    return {t.code: t for t in types("all")}


def component_of(code: str) -> Component | None:
    """The component of a type code; None for `clean`."""
    return None if code == CLEAN else get(code).component


@cache
def evidence() -> tuple[dict[str, Any], ...]:
    """Audited production reports behind the types: repository, number, claim, verdict, role, note."""
    lines = files("robustbench_tc").joinpath("data/evidence.jsonl").read_bytes().splitlines()
    return tuple(msgspec.json.decode(line) for line in lines)


INJECTED_ERRORS: dict[str, str] = {
    "transient_timeout": (
        "Tool execution timed out after the configured request timeout. "
        "The remote endpoint did not respond within the allotted time."
    ),
    "transient_rate_limit": (
        "HTTP 429 Too Many Requests. The provider rejected the call because the per-minute rate limit "
        "has been exceeded."
    ),
    "transient_auth_error": (
        "HTTP 401 Unauthorized. The provider rejected the call because the supplied credentials are "
        "invalid or expired."
    ),
    "transient_server_error": (
        "HTTP 500 Internal Server Error. The remote endpoint failed to handle the request."
    ),
    "transient_malformed_response": (
        "Malformed response from tool execution: the body could not be parsed as JSON."
    ),
    "transient_schema_drift": (
        "Schema validation failed: the response did not match the tool's declared output schema "
        "(extra/missing fields)."
    ),
}
"""Protocol constants: the tool result that a first call meets, letter by letter (paper, appendix G)."""
