"""The self-check: every golden answer, written in its source's format, must score 1.0 by its own scorer."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.io import not_live
from robustbench_tc.io.parquet import read_rows, shards
from robustbench_tc.schema import Call, Json, Sample, dumps, record
from robustbench_tc.taxonomy import CLEAN

from .agents.base import DECLINED
from .parse import parse
from .render import concrete, render_calls, with_surfaces
from .score import score, scoring_tools

TABLES = frozenset({"taxonomy", "evidence", "known_issues"})
"""Configs of a release that hold no samples."""


def self_check(sample: Sample, clean: Sample | None = None) -> str | None:
    """Why some golden answer of `sample` does not score 1.0 against `clean` (default: itself), or None.

    Each answer goes through parser and scorer twice: as text in the sample's output format, and as native
    calls. Builders refuse samples with a reason.
    """
    clean = clean or sample
    tools = scoring_tools(sample, clean)
    if not sample.golden_answers:
        return "no golden answer"
    for number, golden in enumerate(sample.golden_answers):
        calls = concrete(golden, tools, source=sample.source)
        text = render_calls(calls, sample.output_format) if calls else DECLINED
        for way, raw, native in (("text", text, None), ("native", None, _native(calls))):
            parsed = parse(raw, source=sample.source, tools=sample.tools, tool_calls=native)
            if parsed.calls != calls:
                return f"answer {number} as {way}: reads back as {_shown(parsed.calls)}"
            found = score(
                parsed.calls,
                source=sample.source,
                category=sample.category,
                golden_answers=sample.golden_answers,
                tools=tools,
            )
            if not found.correct:
                return f"answer {number} as {way}: scores {found.score:g} ({found.reason})"
    return None


def taken(sample: Sample, surfaces: Mapping[str, str]) -> bool:
    """Whether the scorer takes the sample's first golden call with `surfaces` in the place of its values."""
    tools = scoring_tools(sample, sample)
    calls = concrete(with_surfaces(sample.golden_answers[0], surfaces), tools, source=sample.source)
    return score(
        calls,
        source=sample.source,
        category=sample.category,
        golden_answers=sample.golden_answers,
        tools=tools,
    ).correct


def _native(calls: tuple[Call, ...]) -> list[Json]:
    return [
        {"id": f"call_{number}", "name": call.name, "arguments": json.dumps(call.parameters)}
        for number, call in enumerate(calls)
    ]


def _shown(calls: tuple[Call, ...]) -> str:
    text = dumps(calls)
    return text if len(text) <= 200 else text[:200] + "…"


class ConfigReport(msgspec.Struct, frozen=True, kw_only=True):
    """The self-check of one config."""

    config: str
    rows: int
    failed: dict[str, str]
    """Reasons by row id."""

    @property
    def passed(self) -> int:
        return self.rows - len(self.failed)


def validate_release(folder: Path) -> list[ConfigReport]:
    """Self-checks every row of every config of a release folder, each against its clean row.

    Raises UserError where the folder holds no release, or a file is cut or of another shape.
    """
    not_live.refuse_run(folder)
    not_live.refuse_dataset(folder)
    configs = {path.parent.name for path in folder.glob("*/test-*.parquet")} - TABLES
    if CLEAN not in configs:
        raise UserError(
            f"{folder}: no release there (no clean/test-*.parquet); run rbtc build, or name another"
        )
    clean = {row.clean_id: row for row in _rows(folder / CLEAN)}
    return [
        _check_config(folder, name, clean) for name in sorted(configs, key=lambda name: (name != CLEAN, name))
    ]


def _check_config(folder: Path, config: str, clean: dict[str, Sample]) -> ConfigReport:
    rows = 0
    failed: dict[str, str] = {}
    for row in _rows(folder / config):
        rows += 1
        anchor = clean.get(row.clean_id)
        reason = "its clean row is not in the release" if anchor is None else self_check(row, anchor)
        if reason is not None:
            failed[row.id] = reason
    return ConfigReport(config=config, rows=rows, failed=failed)


def _rows(folder: Path) -> Iterator[Sample]:
    for row in read_rows(shards(folder)):
        try:
            yield record(row, Sample)
        except ValueError as error:
            raise UserError(
                f"{folder}: a row is not of this release's shape ({error}); build it again"
            ) from None
