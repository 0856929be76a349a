"""The suites of a training build: the configs `full`, `mixed`, `retry` and `paft`, both splits."""

from typing import Any, NamedTuple, TypeAlias

from robustbench_tc import taxonomy
from robustbench_tc.eval.score.reward import earns_maximum
from robustbench_tc.schema import Json, Message, loads

from ..checks import HOLDS, check, columns, given, native, verdicts, verdicts_of
from ..contamination import messages
from ..folder import Folder, type_name
from ..hygiene.training import TRAINING_HYGIENE, TrainingTexts
from ..report import Check
from .gx import run, run_over
from .layout import Column, Named, of_shards

Row: TypeAlias = dict[str, Any]

CONFIGS = ("full", "mixed", "retry", "paft")
SPLITS = ("train", "validation")

_TURNS = type_name("list<struct<role: string, content: string>>")

_FOR_THE_REWARD: list[Named] = [
    ("data_source", "string"),
    ("prompt", _TURNS),
    ("ability", "string"),
    ("reward_model", "struct<style: string, ground_truth: string>"),
    ("extra_info", ""),
]

COLUMNS: dict[str, list[Named]] = {
    "full": _FOR_THE_REWARD,
    "mixed": _FOR_THE_REWARD,
    "retry": _FOR_THE_REWARD,
    "paft": [("messages", _TURNS), ("extra_info", "")],
}
"""Config → its columns."""


def suite(folder: Folder) -> list[Check]:
    """Columns, counts and rows of every config that the build has."""
    shards, splits, rows = list[Column](), list[Split](), list[dict[str, Any]]()
    texts = TrainingTexts()
    reported = folder.report.get("rows") or {}
    there = folder.configs()
    for config, split in ((c, s) for c in dict.fromkeys((*reported, *there)) for s in SPLITS):
        if config in COLUMNS and config in there:
            shards += of_shards(folder, [config], COLUMNS[config], split)
        ids: dict[bool, list[str]] = {True: [], False: []}
        for number, raw in enumerate(folder.rows(config, split) if config in there else ()):
            values, read = _row(config, split, number, raw, texts)
            rows.append(values)
            ids[read is not None and read.perturbed].append(read.clean_id if read else "")
        counts = reported.get(config, {})
        splits.append(Split(f"{config}/{split}", config, split, counts, ids[True], ids[False]))
    return [
        *run_over("training_columns", shards),
        *run_over("training_configs", splits),
        *run("training_rows", columns(rows, ("id", "place"), "training_rows")),
    ]


class Split(NamedTuple):
    """A split of a config, and what the report counts there."""

    id: str
    config: str
    split: str
    reported: dict[str, int]
    perturbed: list[str]
    """Clean ids of its perturbed rows."""
    clean: list[str]


@check("training_configs", "configs")
def known(one: Split) -> None:
    """No folder pretends to be a config: `load_dataset` would offer it."""
    assert one.config in CONFIGS, "no config of the training data"


@check("training_configs", "configs")
def rows_as_reported(one: Split) -> None:
    """The report's counts are those of the files: step counts are computed from them."""
    rows, reported = len(one.perturbed) + len(one.clean), one.reported.get(one.split, -1)
    assert rows == reported, f"rows {rows}, reported {reported}"


@check("training_configs", "configs")
def perturbed_as_reported(one: Split) -> None:
    """The perturbed share is what a config is named after."""
    perturbed = len(one.perturbed)
    train = one.reported.get("perturbed", -1)
    reported = train if one.split == "train" else one.reported.get("validation_perturbed", 0)
    assert perturbed == reported, f"perturbed {perturbed}, reported_perturbed {reported}"


@check("training_configs", "configs")
def paired(one: Split) -> None:
    """What a type costs is measured against the clean row of the same clean id."""
    alone = {*one.perturbed} - {*one.clean}
    assert one.split == "train" or not alone, f"{len(alone)} have no clean row: {min(alone)}"


class Read(NamedTuple):
    """A training row as it was read."""

    config: str
    split: str
    raw: Row
    info: Row
    changes: list[dict[str, Json]]
    code: str
    clean_id: str
    gold: str
    turns: list[Message]

    @property
    def perturbed(self) -> bool:
        return self.code != taxonomy.CLEAN

    @property
    def kind(self) -> taxonomy.PerturbationType | None:
        """Its type, if the taxonomy has it."""
        return next((kind for kind in taxonomy.types("known") if kind.code == self.code), None)


given(
    "training_rows",
    "rows",
    {
        "decodes": "A row that is not a training row stops the trainer, or is dropped without a word.",
        "no_new_credential": "Credentials, and persons' numbers and addresses, are upstream's made-up ones.",
    },
)
given("training_rows", "hygiene", TRAINING_HYGIENE)
native(
    "training_rows",
    "rows.no_version_stands_twice",
    "A perturbed version that stands twice in a split is learnt twice.",
    "ExpectColumnValuesToBeUnique",
    column="place",
)


@check("training_rows")
def asks_something(row: Read) -> None:
    """A prompt ends with what a user says."""
    asked = row.turns[:-1] if row.config == "paft" else row.turns
    assert asked and asked[-1].role == "user" and asked[-1].content.strip(), "no last turn of a user"


@check("training_rows")
def gold_earns_the_maximum(row: Read) -> None:
    """A gold text that does not earn the highest reward teaches the wrong answer; one whose calls do not
    decode stops the training."""
    assert earns_maximum(row.gold), "its gold earns less than the maximum"


@check("training_rows")
def type_fits_the_config(row: Read) -> None:
    """`full` is perturbed, validation outside `full` and `mixed` is clean, run-time errors are for `retry`
    only."""
    train = row.split == "train"
    may = row.config in ("full", "mixed") or (row.config == "paft" and train)
    fits = (row.kind is None or row.kind.static) if may else not row.perturbed
    fits = fits and (row.perturbed or row.config != "full" or not train)
    known = row.kind is not None or not row.perturbed
    assert fits and known, f"{row.code} has no place in {row.config}/{row.split}"


@check("training_rows")
def component_is_its_types(row: Read) -> None:
    """The channel of a row is the taxonomy's."""
    component = row.kind.component if row.kind else None
    assert row.info.get("component") == component, "component is not its type's"


@check("training_rows")
def anchored(row: Read) -> None:
    """Every row names the source row that it was made of."""
    assert row.clean_id.strip() and row.clean_id != "None", "it names no source row"


@check("training_rows")
def says_what_changed(row: Read) -> None:
    """A perturbed row says what was changed, a clean one changes nothing."""
    assert bool(row.changes) == row.perturbed, "its changes are not those of its type"


@check("training_rows", for_=lambda config: config == "retry")
def retry_error_is_the_protocols(row: Read) -> None:
    """The injected texts are the benchmark's, letter by letter."""
    error = row.info.get("retry")
    if error is not None:
        text = taxonomy.injected_error(str(error.get("type_code"))) if isinstance(error, dict) else None
        assert text is not None and error.get("error") == text, (
            "the injected error is not the protocol's text"
        )


def _row(
    config: str, split: str, number: int, raw: Row, texts: TrainingTexts
) -> tuple[dict[str, Any], Read | None]:
    """One row's verdicts (those left out do not apply), and what was read."""
    values: dict[str, Any] = {"id": f"{config}/{split}[{number}]"}
    try:
        info = raw["extra_info"]
        info = loads(info) if isinstance(info, str) else info
        gold = raw["reward_model"]["ground_truth"] if config != "paft" else raw["messages"][-1]["content"]
        named = str(info["type_code"]), str(info["clean_id"])
        turns = messages(raw)
        read = Read(config, split, raw, info, loads(info["changes"]), *named, gold, turns)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return {**values, "decodes": f"it does not decode: {type(error).__name__} {str(error)[:100]}"}, None
    whole = len(read.turns) == len(raw.get("prompt") or raw.get("messages") or ())
    values |= {
        "place": f"{config}/{split}/{info.get('index')}" if read.perturbed else None,
        "decodes": HOLDS if whole else "a turn is malformed",
        **verdicts("training_rows", read, kind=config),
        **verdicts_of(TRAINING_HYGIENE, texts.verdicts, [turn.content for turn in turns], gold, read.changes),
    }
    return values, read
