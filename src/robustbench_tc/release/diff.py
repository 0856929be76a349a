"""`rbtc data diff`: what two versions of a dataset say differently, which of it can move a score, and by how
much their version numbers must differ."""

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from .. import live_types, schema, taxonomy
from ..audits.folder import type_name
from ..errors import UserError
from ..io import parquet
from ..schema import ASKED_COLUMNS, dumps, loads
from ..shown import Part, Table
from .versions import STEPS, Step

MOVING = {
    "messages",
    "tools",
    "golden_answers",
    "gold_tool_index",
    "injected_error",
    "output_format",
    "source",
}
"""Columns of the benchmark that a model is shown or judged by. The others describe."""

MOVING_TRAINING = {"data_source", "prompt", "reward_model", "messages", "extra_info"}
"""Columns of the training data that a model is trained on."""

MEANING = ("component", "static", "ground_truth_changes")
"""Columns of the table `taxonomy` that say what a type's config is."""

MOVING_LIVE = {
    "world",
    "turns",
    "tools",
    "initial_state",
    "golden_calls",
    "gold_state_sha256",
    "fault",
    "label",
}
"""Columns of the live dataset that an episode or its verdict depends on."""

PLAYED = {"world", "turns", "tools", "initial_state", "fault"}
"""Columns of the live dataset that an episode depends on: with others its verdict alone is another."""

DESCRIBING_EXTRA = ("generator", "flags", "changes")
"""Keys of `extra_info` that describe a training row."""

Row = dict[str, Any]


class Change(msgspec.Struct, frozen=True):
    """A row that both versions have, with different values."""

    id: str
    fields: tuple[str, ...]
    moves_scores: bool


class ConfigDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One config. Rows are named by their id, rows of a table by their content."""

    config: str
    before: int
    """Rows of A."""
    after: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[Change, ...] = ()
    reanchored: tuple[str, ...] = ()
    """Equal rows whose clean row has other tools now: scorers judge against the clean tool's schema."""
    table: bool = False
    """Describes the benchmark; holds no samples."""
    redefined: tuple[str, ...] = ()
    """Columns that are gone or have another type, and types that the table `taxonomy` defines otherwise."""
    dropped: bool = False
    """Only A has this config."""
    asked_again: int | None = None
    """Rows of B that ask what no row of A asks under the same id: an answer to A's row is none to them. None
    of tables and training data, whose rows nobody is asked."""

    @property
    def is_equal(self) -> bool:
        """Whether rows, columns and definitions are the same."""
        differs = self.added or self.removed or self.changed or self.reanchored or self.redefined
        return not (differs or self.dropped)

    @property
    def moves_scores(self) -> bool:
        """Whether a model's scores can differ between the two versions."""
        if self.table:
            return False
        moving = any(change.moves_scores for change in self.changed)
        return bool(self.added or self.removed or self.reanchored or moving)

    @property
    def step(self) -> Step:
        """Of the version number: major for columns and definitions, minor for scores, else patch."""
        if self.redefined or self.dropped:
            return "major"
        return "none" if self.is_equal else "minor" if self.moves_scores else "patch"


class Diff(msgspec.Struct, frozen=True):
    """A against B."""

    configs: tuple[ConfigDiff, ...]

    @property
    def is_equal(self) -> bool:
        return all(config.is_equal for config in self.configs)

    @property
    def asked_again(self) -> int:
        """Rows of B that a run over A has no answer to."""
        return sum(config.asked_again or 0 for config in self.configs)

    @property
    def rows(self) -> int:
        """Rows of B that a model is asked."""
        return sum(config.after for config in self.configs if config.asked_again is not None)

    @property
    def moved(self) -> dict[Step, tuple[str, ...]]:
        """Step → the configs that move the version that far; the largest step first."""
        found: dict[Step, list[str]] = {}
        for config in self.configs:
            found.setdefault(config.step, []).append(config.config)
        return {step: tuple(found[step]) for step in reversed(STEPS[1:]) if step in found}

    @property
    def moves_scores(self) -> bool:
        return any(config.moves_scores for config in self.configs)

    @property
    def step(self) -> Step:
        """By which step B's version must follow A's."""
        return max((config.step for config in self.configs), key=STEPS.index, default="none")

    def shown(self) -> Iterator[Part]:
        """The configs that differ, and what that means for scores and runs."""
        columns = (
            "config",
            "step",
            "fields",
            "A",
            "B",
            "added",
            "removed",
            "changed",
            "can move scores",
            "to ask again",
        )
        rows = []
        for one in self.configs:
            fields = dict.fromkeys(field for change in one.changed for field in change.fields)
            moving = sum(change.moves_scores for change in one.changed) + len(one.reanchored)
            moving += 0 if one.table else len(one.added) + len(one.removed)
            counts = (one.before, one.after, len(one.added), len(one.removed), len(one.changed), moving)
            if not one.is_equal:
                rows.append(
                    (one.config, one.step, ", ".join(fields), *map(str, (*counts, one.asked_again or 0)))
                )
        yield Table(columns, rows, folded=("step", "fields"))
        for one in self.configs:
            if one.dropped:
                yield f"{one.config} is gone"
            elif one.redefined:
                yield f"{one.config} changes its meaning: {', '.join(one.redefined)}"
        if reanchored := sum(len(one.reanchored) for one in self.configs):
            yield f"{reanchored} equal rows are judged against a clean row whose tools changed"
        equal = sum(one.is_equal for one in self.configs)
        verdict = "can move scores" if self.moves_scores else "no change can move a score"
        yield f"{verdict}; {equal} of {len(self.configs)} configs are equal"
        for step, configs in self.moved.items():
            yield f"{step}: {', '.join(configs)}"
        if self.rows:
            is_live = any(one.config == schema.TASKS for one in self.configs)
            rest = (
                "a live run carries no answers over"
                if is_live
                else "rbtc eval --reuse carries the others over"
            )
            yield f"a run has to ask {self.asked_again} of {self.rows} rows again ({rest})"

    def plain(self) -> dict[str, Any]:
        """For `--json`."""
        configs = [
            {**msgspec.to_builtins(config), "moves_scores": config.moves_scores, "step": config.step}
            for config in self.configs
            if not config.is_equal
        ]
        return {
            "equal": self.is_equal,
            "moves_scores": self.moves_scores,
            "step": self.step,
            "asked_again": self.asked_again,
            "configs": configs,
        }


class Differing(NamedTuple):
    """Two versions and what differs between them."""

    a: str
    b: str
    diff: Diff
    next_version: str | None
    """The lowest that B may have, where A has a version."""

    def shown(self) -> Iterator[Part]:
        """As the difference, and the step of the version."""
        if self.diff.is_equal:
            yield f"{self.a} and {self.b} hold the same rows"
            return
        yield from self.diff.shown()
        follows = (
            "" if self.next_version is None else f": B follows A as version {self.next_version} or higher"
        )
        yield f"{self.diff.step} step{follows}"

    def json(self) -> dict[str, Any]:
        """Everything, row by row."""
        return {**self.diff.plain(), "next_version": self.next_version}


def diff(a: Path, b: Path) -> Diff:
    """Compares two dataset folders, config by config. UserError where one holds no config at all."""
    ours, theirs = configs_of(a), configs_of(b)
    order = [taxonomy.CLEAN, *(t.code for t in taxonomy.known_with((*ours, *theirs)))]
    order += [schema.TASKS, *map(live_types.type_code, schema.KINDS)]
    names = sorted(
        {*ours, *theirs}, key=lambda name: (order.index(name) if name in order else len(order), name)
    )
    clean_tools = _clean_tools(a), _clean_tools(b)
    reanchored = {id_ for id_, tools in clean_tools[0].items() if clean_tools[1].get(id_, tools) != tools}
    return Diff(
        tuple(_config(name, ours.get(name, []), theirs.get(name, []), reanchored, names) for name in names)
    )


def configs_of(folder: Path) -> dict[str, list[Path]]:
    """Config → its Parquet files, all splits. UserError if there are none."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*/*-*.parquet")):
        found.setdefault(path.parent.name, []).append(path)
    if not found:
        raise UserError(f"{folder} holds no <config>/<split>-*.parquet: name a build or a release folder")
    return found


def _config(
    name: str, ours: list[Path], theirs: list[Path], reanchored: set[str], names: Collection[str]
) -> ConfigDiff:
    """What became of a config; `names` are all that either folder has."""
    before_columns, after_columns = _columns(ours), _columns(theirs)
    columns = {**before_columns, **after_columns}
    redefined = [
        f"column {column}" for column, kind in before_columns.items() if after_columns.get(column) != kind
    ]
    if not ours or not theirs:
        redefined = []
    if "extra_info" in columns:
        before, after, moving, asked = _training_rows(ours), _training_rows(theirs), MOVING_TRAINING, set()
    elif "clean_id" in columns and "type_code" in columns:
        before, after, moving, asked = _sample_rows(ours), _sample_rows(theirs), MOVING, set(ASKED_COLUMNS)
        if "gold_state_sha256" in columns:
            moving, asked = MOVING_LIVE, PLAYED
    else:
        before, after = _table_rows(ours), _table_rows(theirs)
        new, gone = set(after) - set(before), set(before) - set(after)
        if name == "taxonomy":
            redefined += _redefined_types(before.values(), after.values(), names)
        return ConfigDiff(
            config=name,
            before=len(before),
            after=len(after),
            added=tuple(key for key in after if key in new),
            removed=tuple(key for key in before if key in gone),
            table=True,
            redefined=tuple(redefined),
            dropped=not theirs,
        )
    changed, moved_anchor = [], []
    for key, row in after.items():
        if key not in before:
            continue
        old = before[key]
        fields = tuple(field for field in {**old, **row} if old.get(field) != row.get(field))
        if fields:
            changed.append(Change(key, fields, not moving.isdisjoint(fields)))
        elif name != taxonomy.CLEAN and row.get("clean_id") in reanchored:
            moved_anchor.append(key)
    added = tuple(key for key in after if key not in before)
    again = [change.id for change in changed if not asked.isdisjoint(change.fields)]
    return ConfigDiff(
        config=name,
        before=len(before),
        after=len(after),
        asked_again=len(again) + len(added) if asked else None,
        added=added,
        removed=tuple(key for key in before if key not in after),
        changed=tuple(changed),
        reanchored=tuple(moved_anchor),
        redefined=tuple(redefined),
        dropped=not theirs,
    )


def _columns(files: Iterable[Path]) -> dict[str, str]:
    """Column → its type."""
    found: dict[str, str] = {}
    for path in files:
        schema = parquet.about(path).schema.to_arrow_schema()
        found |= {field.name: type_name(field.type) for field in schema}
    return found


def _redefined_types(before: Iterable[Row], after: Iterable[Row], built: Collection[str]) -> list[str]:
    """Types with rows in either folder that both tables hold, with another meaning."""
    now = {row.get("code"): row for row in after if row.get("code") in built}
    return [
        f"type {row['code']}"
        for row in before
        if row.get("code") in now and any(row.get(key) != now[row["code"]].get(key) for key in MEANING)
    ]


def _keyed(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, Row]:
    """Rows by key; a repeated key gets a number, so that no row hides another."""
    found: dict[str, Row] = {}
    for row in rows:
        name = key(row)
        number = 2
        unique = name
        while unique in found:
            unique, number = f"{name} #{number}", number + 1
        found[unique] = row
    return found


def _sample_rows(files: list[Path]) -> dict[str, Row]:
    return _keyed(parquet.read_rows(files), lambda row: str(row["id"]))


def _training_rows(files: list[Path]) -> dict[str, Row]:
    def rows() -> Iterable[Row]:
        for path in files:
            split = path.name.split("-")[0]
            for row in parquet.read_rows([path]):
                extra = loads(row["extra_info"])
                described = {name: extra.pop(name, None) for name in DESCRIBING_EXTRA}
                yield {**row, "extra_info": extra, "split": split, "described": described}

    def key(row: Row) -> str:
        extra = row["extra_info"]
        return f"{row['split']}/{extra.get('clean_id')}/{extra.get('copy', 0)}"

    return _keyed(rows(), key)


def _table_rows(files: list[Path]) -> dict[str, Row]:
    return _keyed(parquet.read_rows(files), dumps)


def _clean_tools(folder: Path) -> dict[str, str]:
    """Clean id → its tools as text; empty where there is no config `clean`."""
    files = sorted((folder / taxonomy.CLEAN).glob("*.parquet"))
    return {row["clean_id"]: row["tools"] for row in parquet.read_rows(files, ["clean_id", "tools"])}
