"""The rows that a recipe trains on: what its switches make of a dataset.

`alpha` is the share of the rows that are perturbed or meet an error: as many rows as the two kinds allow, or
so many as are asked for, drawn and ordered by the seed. Under `retry` the other kind are the rows of `full`.
Each row says how it is rolled out (`extra_info.rollout`); what is left out of the train rows is counted.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from robustbench_tc import schema, seeding
from robustbench_tc.builders.toolrl_dr import conversation
from robustbench_tc.builders.training_rows import TRAINING_SOURCE, FineTuningRow, TrainingRow
from robustbench_tc.errors import UserError, unknown
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.io import folders, parquet
from robustbench_tc.io.resolve import resolve_dataset
from robustbench_tc.schema import DATASET, LiveRow, LiveTool, Message, dumps
from robustbench_tc.worlds.find import BFCL

from . import validation
from .recipe import SEVERAL_TURNS, Recipe
from .reward import LIVE, RETRY, SINGLE

CONFIGS = {"clean": "retry", "dr-full": "full", "dr-mixed": "mixed", "paft": "paft", "retry": "retry"}
"""Data → the config of `rbtc build toolrl-dr` that has its rows; clean ones are those of `retry`, without
their errors."""

Row = TrainingRow | FineTuningRow

VALIDATES_WITH = {"retry": ("full",)}
"""Config → others whose validation rows are answered too, where they are there: what an error costs is
measured against the clean row of the same clean id."""


class Shards(NamedTuple):
    """The files of one config."""

    train: list[Path]
    validation: list[Path]


class Rows(NamedTuple):
    """What is trained on and validated with."""

    train: list[Any]
    validation: list[Any]
    left_out: dict[str, int]
    """Reason → train rows that were left out."""


def choose(dataset: str, recipe: Recipe, limit: int | None = None, seed: int = 0) -> Rows:
    """The rows of a dataset under a recipe's switches; for `sft` conversations. Raises UserError."""
    there, held = (
        [live_rows(dataset, split) for split in ("train", "validation")]
        if recipe.data == "live"
        else _built(dataset, recipe)
    )
    train, left_out = there, {}
    if recipe.hold_out is not None:
        sources, components = ({parts(row)[place] for row in there} for place in (0, 1))
        if recipe.hold_out not in sources | components:
            raise UserError(
                f"hold_out={recipe.hold_out}: no train row is of it; what can be held out are the sources "
                f"({', '.join(sorted(sources))}) and the components ({', '.join(sorted(components))})"
            )
        train = [row for row in there if recipe.hold_out not in parts(row)]
        left_out["held out"] = len(there) - len(train)
    if recipe.alpha is not None:
        key, plain = ("rollout", SINGLE) if recipe.data == "retry" else ("type_code", "clean")
        kinds = [
            [row for row in train if (row.extra_info[key] == plain) is wanted] for wanted in (True, False)
        ]
        sizes = shares(len(kinds[0]), len(kinds[1]), recipe.alpha, limit)
        train = []
        for name, kind, size in zip(("plain", "disturbed"), kinds, sizes, strict=True):
            train += seeding.rng(seed, "mixture", name).sample(kind, size)
            left_out[f"{name}, beyond alpha"] = len(kind) - size
        seeding.rng(seed, "mixture", "order").shuffle(train)  # no batch is of one kind, whoever reads it
    elif limit is not None:
        left_out["beyond --rows"] = max(0, len(train) - limit)
        train = train[:limit]
    if not train:
        raise UserError(f"{dataset} has no train row for data={recipe.data} under these switches")
    return Rows(_finished(train, recipe), _finished(held, recipe), left_out)


def parts(row: Row) -> tuple[str, str]:
    """The source of a row (a world, or `rlla`: ToolRL's files do not say which of its own sources a row is
    of), and what it is perturbed in, as validation names it."""
    return str(row.extra_info.get("source") or TRAINING_SOURCE), validation.component(row.extra_info)


def shares(plain: int, disturbed: int, alpha: float, rows: int | None = None) -> tuple[int, int]:
    """How many rows of each kind are taken: the most, or `rows`, with a share `alpha` of disturbed ones (the
    nearest row).

    Raises UserError for a share that leaves no row of one kind, and for more rows than there are at it.
    """

    def part(rows: int) -> int:
        return math.floor(rows * alpha + 0.5)

    rows_down = range(plain + disturbed, -1, -1)
    most = next(n for n in rows_down if part(n) <= disturbed and n - part(n) <= plain)
    there = f"{plain} plain rows and {disturbed} that are perturbed or meet an error"
    if rows is not None and rows > most:
        raise UserError(f"--rows {rows}: {there} give at most {most} at alpha={alpha:g}")
    total = most if rows is None else rows
    if not 0 < part(total) < total:
        raise UserError(f"alpha={alpha:g}: of {there} none of one kind is left: choose another share")
    return total - part(total), part(total)


def write(rows: Rows, out: Path) -> Shards:
    """Rows as the files that verl reads; what is there already is taken as it is."""
    if not out.is_dir():
        with folders.atomic_dir(out, kind="training-rows") as folder:
            for split in ("train", "validation"):
                found = getattr(rows, split)
                table = schema.arrow_table(found, type(found[0]))
                parquet.write_shards([table], folder, split, table.schema)
    return Shards(parquet.shards(out, "train"), parquet.shards(out, "validation"))


def _built(dataset: str, recipe: Recipe) -> tuple[list[Any], list[Any]]:
    shards = locate(dataset, CONFIGS[recipe.data])
    if recipe.data == "paft":
        return [*_read(shards.train, FineTuningRow)], [*_read(shards.validation, FineTuningRow)]
    rollout = RETRY if recipe.data == "retry" else SINGLE
    train = [_rolled_out(row, rollout) for row in _read(shards.train, TrainingRow)]
    own = [path for path in shards.validation if path.parent.name == CONFIGS[recipe.data]]
    validation = [_rolled_out(row, rollout) for row in _read(own, TrainingRow)]
    others = [path for path in shards.validation if path not in own]
    if others:  # rows of `full` stand beside: clean ones, and those under a type
        validation = [row for row in validation if row.extra_info.get("retry")]
        validation = [*(_rolled_out(row, SINGLE) for row in _read(others, TrainingRow)), *validation]
    if recipe.data == "retry" and recipe.alpha is not None:
        full = locate(dataset, CONFIGS["dr-full"]).train
        train = [*(_rolled_out(row, SINGLE) for row in _read(full, TrainingRow)), *train]
    return train, validation


def locate(dataset: str, config: str) -> Shards:
    """The shards of `config` in a folder, or of `org/name[@revision]` on the Hub (downloaded).

    A folder with a revision is taken only if that is the version of its manifest. Raises UserError.
    """
    name, _, revision = dataset.partition("@")
    others = VALIDATES_WITH.get(config, ())
    patterns = [f"{config}/*.parquet", "manifest.json", *(f"{one}/validation-*.parquet" for one in others)]
    folder = resolve_dataset(name, revision or None, patterns=patterns)
    known = sorted(path.parent.name for path in folder.glob("*/train-*.parquet"))
    if not known:
        raise UserError(f"{dataset} holds no training rows: it is not what `rbtc build toolrl-dr` makes")
    if config not in known:
        raise unknown(f"config of {dataset}", config, set(known))
    there = [config, *(one for one in others if (folder / one).is_dir())]
    validation = [path for one in there for path in parquet.shards(folder / one, "validation")]
    found = Shards(parquet.shards(folder / config, "train"), validation)
    for path in (*found.train, *found.validation):
        parquet.about(path)
    return found


def _read(paths: Sequence[Path], kind: type[Any]) -> Iterator[Any]:
    try:
        for row in parquet.read_rows(paths):
            yield schema.record(row, kind)
    except (ValueError, RecursionError) as error:  # msgspec's, and of the JSON inside
        raise UserError(f"{paths[0].parent}: not rows of `rbtc build toolrl-dr`: {error}") from None


def _rolled_out(row: TrainingRow, rollout: str) -> TrainingRow:
    told = {**row.extra_info, "rollout": rollout}
    if rollout == SINGLE:
        told.pop("retry", None)
    return msgspec.structs.replace(row, extra_info=told)


def _finished(rows: Sequence[Row], recipe: Recipe) -> list[Row]:
    """Conversations for `sft`; rows of several configs with their place, by which verl knows them."""
    if recipe.name == "sft":
        return [conversation(row) if isinstance(row, TrainingRow) else row for row in rows]
    if recipe.data not in SEVERAL_TURNS:
        return [*rows]
    return [
        msgspec.structs.replace(row, extra_info={**row.extra_info, "index": number})
        for number, row in enumerate(rows)
    ]


# --- live rows ----------------------------------------------------------------------------------------

SYSTEM = """You help a user with the tools below. Each of your answers begins with what you think:

<think> your thought </think>

then come either calls, one JSON object a line,

<tool_call>
{"name": "tool", "parameters": {"parameter": "value"}}
</tool_call>

whose results you get between <obs> and </obs>, or, once nothing is left to call, your answer to the user:

<response> your answer </response>

**Available Tools**
"""
"""Ours, in the form of rlla's system texts: thought, calls, response, and the list of tools."""


def _parameters(tool: LiveTool) -> str:
    declared = {}
    for name, about in tool.plain.properties.items():
        optional = "" if name in tool.plain.required else ", optional"
        declared[name] = about | {"type": f"{about.get('type', 'string')}{optional}"}
    return json.dumps(declared, ensure_ascii=False)


def split_of(clean_id: str) -> str:
    """`train` or `validation`, by the task."""
    return "validation" if seeding.rng(0, "split", clean_id).random() < 0.2 else "train"


def _training_row(row: LiveRow) -> TrainingRow:
    """One prompt for GRPO; `extra_info.live_row` is the row as JSON text."""
    listed = [  # every tool at once: the bundled tasks add none later
        f"{number}. Name: {tool.name}\nDescription: {tool.description}\nParameters: {_parameters(tool)}"
        for number, tool in enumerate(row.tools, 1)
    ]
    gold = [call for turn in row.golden_calls for call in turn]
    lines = [dumps({"name": call.name, "parameters": call.parameters}) for call in gold]
    return TrainingRow(
        data_source=DATASET,
        prompt=(Message("system", SYSTEM + "\n".join(listed)), *row.turns[0].messages),
        reward_model={"style": "rule", "ground_truth": "\n".join(lines)},
        extra_info={
            "clean_id": row.clean_id,
            "source": row.world,
            "type_code": row.type_code,
            "split": split_of(row.clean_id),
            "rollout": LIVE,
            "live_row": dumps(schema.plain_row(row)),
        },
    )


def live_rows(dataset: str, split: str | None = None) -> list[TrainingRow]:
    """A live dataset as rows for GRPO: the registry and the first turn as a prompt, the row itself beside it.

    A task is in one split with all its rows: one in five, by its id, is for validation; None is both. BFCL's
    tasks are for measuring, and left out. Raises UserError where there is no row.
    """
    own = [row for row in load_live(dataset).rows if row.world != BFCL]
    found = [_training_row(row) for row in own if split in (None, split_of(row.clean_id))]
    if not found:
        raise UserError(f"{dataset} gives no row for {split}: it has too few tasks of its own")
    return found
