"""Oracle vectors: what upstream's programs decided, held against our parser and scorers.

A vector file is JSON Lines, one candidate per row with upstream's verdict (`upstream_…` columns). A row
agrees, or it disagrees in a way that scoring.md section 10 lists, or it is a defect (`unlisted`). Classes are
decided by rule from the row's contents and only where our verdict is the one that the class states.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError

from .apibank import check_apibank_damo, check_apibank_toolrl
from .bfcl import check_bfcl, check_bfcl_decoder
from .replies import ReplyResult, check_replies, is_reply_file
from .rotbench import check_rotbench
from .rows import AGREED, UNLISTED, Check, Row
from .toolrl import check_toolrl_decoder

__all__ = [
    "AGREED",
    "CHECKS",
    "CLASSES",
    "MULTI_TURN",
    "UNLISTED",
    "Check",
    "FileResult",
    "ReplyResult",
    "kind_of",
    "run_vectors",
]

_NOT_CHECKED = "not checked"

MULTI_TURN = "bfcl_multi_turn"
"""Rows of this kind need BFCL's world: `bfcl_multi_turn.MultiTurn` is handed in where there is one."""

CHECKS: dict[str, Check] = {
    "bfcl": check_bfcl,
    "bfcl_decoder": check_bfcl_decoder,
    "apibank_toolrl": check_apibank_toolrl,
    "apibank_damo": check_apibank_damo,
    "rotbench": check_rotbench,
    "toolrl_bfcl_decoder": check_toolrl_decoder,
}

CLASSES: dict[str, tuple[str, ...]] = {
    "bfcl": ("upstream_crash", "tuple"),
    "bfcl_decoder": (
        "tolerant",
        "json_literal",
        "unary",
        "arithmetic",
        "nonliteral",
        "expansion",
        "empty_name",
        "lambda",
    ),
    "apibank_toolrl": ("tolerant_text", "declared_number", "exact_calls", "malformed_item", "python_list"),
    "apibank_damo": ("background",),
    "rotbench": (
        "spacing",
        "python_dict_input",
        "parameterless",
        "numeric_text",
        "control_tool",
        "several_actions",
        "noisy_ask_to_user",
    ),
    "toolrl_bfcl_decoder": ("several_blocks", "tolerant"),
    "toolrl_reward": ("upstream_crash",),
    "bfcl_multi_turn": ("upstream_crash",),
}
"""The closed list of allowed disagreements, by kind of row (scoring.md section 10)."""


class FileResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one file. Every row is counted once."""

    name: str
    rows: int
    agreed: int
    listed: dict[str, int]
    """Disagreements by class."""
    not_checked: int
    """Rows of a kind that no checker is at hand for."""
    unlisted: tuple[Row, ...]
    """The defects, whole rows; under `error` the exception where our side raised one."""
    replies: ReplyResult | None = None
    """Of a file of replies: what came of each style. Its failed replies are defects where a bar is missed."""


def run_vectors(folder: Path, extra: Mapping[str, Check] | None = None) -> list[FileResult]:
    """Checks every `*.jsonl` of a folder, in name order.

    `extra` brings checkers for further kinds (a row's `source`, e.g. `toolrl_reward`); each returns `agreed`,
    a class of `CLASSES`, or `unlisted`. Raises UserError for a folder or file that cannot be read.
    """
    paths = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
    if not paths:
        raise UserError(f"{folder}: no *.jsonl files there; give the folder that holds the vector files")
    checks = {**CHECKS, **(extra or {})}
    return [_check_file(path, checks) for path in paths]


def _check_file(path: Path, checks: Mapping[str, Check]) -> FileResult:
    rows = list(_rows(path))
    if is_reply_file(rows):
        return _check_replies(path, rows)
    outcomes: Counter[str] = Counter()
    unlisted: list[Row] = []
    for row in rows:
        kind = kind_of(row, path.name)
        check = checks.get(kind)
        if check is None:
            outcomes[_NOT_CHECKED] += 1
            continue
        try:
            outcome = check(row)
        except Exception as error:  # ours must never raise on a row; the row is shown with it
            row = {**row, "error": f"{type(error).__name__}: {error}"}
            outcome = UNLISTED
        if outcome != AGREED and outcome not in CLASSES.get(kind, ()):
            outcome = UNLISTED
        if outcome == UNLISTED:
            unlisted.append(row)
        outcomes[outcome] += 1
    return FileResult(
        name=path.name,
        rows=outcomes.total(),
        agreed=outcomes[AGREED],
        listed={name: n for name, n in outcomes.items() if name not in (AGREED, UNLISTED, _NOT_CHECKED)},
        not_checked=outcomes[_NOT_CHECKED],
        unlisted=tuple(unlisted),
    )


def _check_replies(path: Path, rows: list[Row]) -> FileResult:
    found = check_replies(rows, str(path))
    failed = len(found.failed)
    return FileResult(
        name=path.name,
        rows=len(rows) - 1,
        agreed=len(rows) - 1 - failed,
        listed={"within_the_bar": failed} if failed and found.passed else {},
        not_checked=0,
        unlisted=() if found.passed else found.failed,
        replies=found,
    )


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise UserError(
                    f"{path}:{number}: not JSON ({error}); the file is cut or not a vector file"
                ) from None
            if not isinstance(row, dict):
                raise UserError(f"{path}:{number}: a vector is a JSON object, this is {type(row).__name__}")
            yield row


def kind_of(row: Row, file_name: str) -> str:
    """The kind of a row: its `source`, split where one source has several oracles; else the file's name."""
    source = row.get("source") or file_name.removesuffix(".jsonl")
    if file_name.startswith(MULTI_TURN):
        return MULTI_TURN
    if source == "apibank" or file_name.startswith("apibank"):
        return "apibank_damo" if "damo" in (row.get("judge") or file_name) else "apibank_toolrl"
    if source in ("bfcl", "bfcl_nonlive", "bfcl_live", "bfcl_java_js"):
        language = row.get("language") or ("java" if "java" in file_name else "python")
        return "bfcl" if language == "python" else "bfcl_java_js"
    return {"bfcl_decode": "bfcl_decoder", "toolrl_decode": "toolrl_bfcl_decoder"}.get(source, str(source))
