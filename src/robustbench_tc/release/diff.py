"""`rbtc data diff`: what two versions of a dataset say differently, which of it can move a score, and by how
much their version numbers must differ."""

from collections import Counter
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

MEANING = ("component", "static", "ground_truth_changes")
"""Columns of the table `taxonomy` that say what a type's config is."""

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
    order += [schema.TASKS, *live_types.type_codes()]
    place = {name: at for at, name in reversed([*enumerate(order)])}
    names = sorted({*ours, *theirs}, key=lambda name: (place.get(name, len(order)), name))
    before, after = (_tools(found.get(taxonomy.CLEAN, ())) for found in (ours, theirs))
    reanchored = {id_ for id_, tools in before.items() if after.get(id_, tools) != tools}
    return Diff(
        tuple(_config(name, ours.get(name, []), theirs.get(name, []), reanchored, names) for name in names)
    )


def _tools(clean: Iterable[Path]) -> dict[str, str]:
    """Clean id → its tools as text; empty where there is no config `clean`."""
    return {row["clean_id"]: row["tools"] for row in parquet.read_rows(clean, ["clean_id", "tools"])}


def configs_of(folder: Path) -> dict[str, list[Path]]:
    """Config → its Parquet files, all splits. UserError if there are none."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*/*-*.parquet")):
        found.setdefault(path.parent.name, []).append(path)
    if not found:
        raise UserError(f"{folder} holds no <config>/<split>-*.parquet: name a build or a release folder")
    return found


class _Kind(NamedTuple):
    """Configs of one kind."""

    column: str
    """Only they have it."""
    moving: frozenset[str]
    """Columns that a model is shown, trained on or judged by. The others describe; of a table all do."""
    asked: frozenset[str]
    """Columns that decide what is asked: with others the verdict alone is another."""
    key: Callable[[Row, str], str]
    """What names a row of a split."""


def _of_training(row: Row, split: str) -> str:
    """Its key; what describes it is taken out of what it is trained on."""
    extra = loads(row["extra_info"])
    described = {name: extra.pop(name, None) for name in DESCRIBING_EXTRA}
    row |= {"extra_info": extra, "split": split, "described": described}
    return f"{split}/{extra.get('clean_id')}/{extra.get('copy', 0)}"


_KINDS = (
    _Kind(
        "extra_info",
        frozenset(("data_source", "prompt", "reward_model", "messages", "extra_info")),
        frozenset(),
        _of_training,
    ),
    _Kind(
        "gold_state_sha256",
        frozenset(
            (
                "world",
                "turns",
                "tools",
                "initial_state",
                "golden_calls",
                "gold_state_sha256",
                "fault",
                "label",
            )
        ),
        frozenset(("world", "turns", "tools", "initial_state", "fault")),
        lambda row, split: str(row["id"]),
    ),
    _Kind(
        "golden_answers",
        frozenset((*ASKED_COLUMNS, "golden_answers", "gold_tool_index", "source")),
        frozenset(ASKED_COLUMNS),
        lambda row, split: str(row["id"]),
    ),
    _Kind("", frozenset(), frozenset(), lambda row, split: dumps(row)),
)
"""Training data, the live dataset, the benchmark, tables: the first whose column a config has."""


def _config(
    name: str, ours: list[Path], theirs: list[Path], reanchored: set[str], names: Collection[str]
) -> ConfigDiff:
    """What became of a config; `names` are all that either folder has."""
    before_columns, after_columns = _columns(ours), _columns(theirs)
    kind = next(kind for kind in _KINDS if kind.column in {**before_columns, **after_columns, "": ""})
    before, after = _rows(kind, ours), _rows(kind, theirs)
    redefined = []
    if ours and theirs:
        redefined = [f"column {one}" for one, its in before_columns.items() if after_columns.get(one) != its]
    if name == "taxonomy":
        redefined += _redefined_types(before.values(), after.values(), names)
    differing = {
        key: tuple(field for field in {**before[key], **row} if before[key].get(field) != row.get(field))
        for key, row in after.items()
        if key in before
    }
    changed = [
        Change(key, fields, not kind.moving.isdisjoint(fields)) for key, fields in differing.items() if fields
    ]
    anchored = kind.moving and name != taxonomy.CLEAN
    added = tuple(key for key in after if key not in before)
    again = [change.id for change in changed if not kind.asked.isdisjoint(change.fields)]
    return ConfigDiff(
        config=name,
        before=len(before),
        after=len(after),
        added=added,
        removed=tuple(key for key in before if key not in after),
        changed=tuple(changed),
        reanchored=tuple(
            key
            for key, fields in differing.items()
            if anchored and not fields and after[key].get("clean_id") in reanchored
        ),
        table=not kind.moving,
        redefined=tuple(redefined),
        dropped=not theirs,
        asked_again=len(again) + len(added) if kind.asked else None,
    )


def _columns(files: Iterable[Path]) -> dict[str, str]:
    """Column → its type."""
    schemas = (parquet.about(path).schema.to_arrow_schema() for path in files)
    return {field.name: type_name(field.type) for found in schemas for field in found}


def _redefined_types(before: Iterable[Row], after: Iterable[Row], built: Collection[str]) -> list[str]:
    """Types with rows in either folder that both tables hold, with another meaning."""
    now = {row.get("code"): row for row in after if row.get("code") in built}
    return [
        f"type {row['code']}"
        for row in before
        if row.get("code") in now and any(row.get(key) != now[row["code"]].get(key) for key in MEANING)
    ]


def _rows(kind: _Kind, files: list[Path]) -> dict[str, Row]:
    """Rows by key; a repeated key gets a number, so that no row hides another."""
    found: dict[str, Row] = {}
    times: Counter[str] = Counter()
    for path in files:
        for row in parquet.read_rows([path]):
            key = kind.key(row, path.name.split("-")[0])
            times[key] += 1
            found[key if times[key] == 1 else f"{key} #{times[key]}"] = row
    return found
