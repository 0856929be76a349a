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
from .replies import ReplyResult, check_replies
from .rotbench import check_rotbench
from .rows import AGREED, UNLISTED, Check, Row
from .toolrl import check_toolrl_decoder, check_toolrl_reward

_NOT_CHECKED = "not checked"
_WITHIN_THE_BAR = "within_the_bar"

MULTI_TURN = "bfcl_multi_turn"
"""Rows of this kind need BFCL's world: `bfcl_multi_turn.MultiTurn` is handed in where there is one."""

CHECKS: dict[str, Check] = {
    "bfcl": check_bfcl,
    "bfcl_decoder": check_bfcl_decoder,
    "apibank_toolrl": check_apibank_toolrl,
    "apibank_damo": check_apibank_damo,
    "rotbench": check_rotbench,
    "toolrl_bfcl_decoder": check_toolrl_decoder,
    "toolrl_reward": check_toolrl_reward,
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
}
"""The closed list of allowed disagreements, by kind of row (scoring.md section 10)."""


LIVE_CLASSES: dict[str, tuple[str, ...]] = {MULTI_TURN: ("upstream_crash",)}
"""The same for rows of the live mode (docs/live-data.md)."""


class FileResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one file. Every row is counted once."""

    name: str
    outcomes: Counter[str]
    """Rows by outcome: `agreed`, a class, `unlisted`, or `not checked` where no checker is at hand."""
    unlisted: tuple[Row, ...]
    """The defects, whole rows; under `error` the exception where our side raised one."""
    replies: ReplyResult | None = None
    """Of a file of replies: what came of each style. Its failed replies are defects where a bar is missed."""

    @property
    def rows(self) -> int:
        return self.outcomes.total()

    @property
    def listed(self) -> dict[str, int]:
        """Disagreements by class."""
        return {name: n for name, n in self.outcomes.items() if name not in (AGREED, UNLISTED, _NOT_CHECKED)}

    @property
    def not_checked(self) -> int:
        return self.outcomes[_NOT_CHECKED]


def run_vectors(folder: Path, checks: Mapping[str, Check] = CHECKS) -> list[FileResult]:
    """Checks every `*.jsonl` of a folder, in name order, by the kind of its rows.

    A check returns `agreed`, a class of `CLASSES`, or `unlisted`. Raises UserError for a folder or file that
    cannot be read.
    """
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise UserError(f"{folder}: no *.jsonl files there; give the folder that holds the vector files")
    return [_check_file(path, checks) for path in paths]


def _check_file(path: Path, checks: Mapping[str, Check]) -> FileResult:
    rows = list(rows_of(path))
    if rows and rows[0].keys() == {"tools"}:
        found = check_replies(rows)
        failed = UNLISTED if not found.passed else _WITHIN_THE_BAR
        outcomes = Counter({AGREED: len(rows) - 1 - len(found.failed), failed: len(found.failed)})
        unlisted = () if found.passed else found.failed
        return FileResult(name=path.name, outcomes=+outcomes, unlisted=unlisted, replies=found)
    outcomes = Counter()
    defects: list[Row] = []
    for row in rows:
        kind = kind_of(row, path.name)
        if kind not in checks:
            outcomes[_NOT_CHECKED] += 1
            continue
        try:
            outcome = checks[kind](row)
        except Exception as error:  # ours must never raise on a row; the row is shown with it
            row = {**row, "error": f"{type(error).__name__}: {error}"}
            outcome = UNLISTED
        if outcome not in (AGREED, *(CLASSES | LIVE_CLASSES).get(kind, ())):
            outcome = UNLISTED
            defects.append(row)
        outcomes[outcome] += 1
    return FileResult(name=path.name, outcomes=outcomes, unlisted=tuple(defects))


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a vector file. Raises UserError for a line that is none."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield msgspec.json.decode(line, type=Row)
            except msgspec.DecodeError as error:
                raise UserError(f"{path}:{number}: no JSON object ({error}); not a vector file") from None


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
