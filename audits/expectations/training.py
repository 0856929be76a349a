"""The suite of a training build: the configs `full`, `mixed`, `retry` and `paft`, both splits."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, TypeAlias

from robustbench_tc import taxonomy
from robustbench_tc.eval.score.reward import earns_maximum
from robustbench_tc.schema import Json, loads

from ..contamination import messages
from ..folder import Folder, type_name
from ..hygiene.training import TRAINING_HYGIENE, TrainingTexts
from ..invariants.base import held
from ..report import Check
from .gx import Expectation, all_hold, compares, frame_of, holds, native, run

Row: TypeAlias = dict[str, Any]

CONFIGS = ("full", "mixed", "retry", "paft")
SPLITS = ("train", "validation")

_FOR_THE_REWARD = {
    "data_source": "string",
    "prompt": "list<struct<role: string, content: string>>",
    "ability": "string",
    "reward_model": "struct<style: string, ground_truth: string>",
    "extra_info": None,
}

COLUMNS: dict[str, dict[str, str | None]] = {
    "full": _FOR_THE_REWARD,
    "mixed": _FOR_THE_REWARD,
    "retry": _FOR_THE_REWARD,
    "paft": {"messages": "list<struct<role: string, content: string>>", "extra_info": None},
}
"""Config → column → type; None for JSON, whose Arrow type depends on the writer."""

_CALLS = re.compile(r"<tool_call>\n?(.*?)\n?</tool_call>", re.DOTALL)

VERDICTS = {
    "decodes": "A row that is not a training row stops the trainer, or is dropped without a word.",
    "asks_something": "A prompt ends with what a user says.",
    "gold_decodes": "A gold text whose calls do not decode raises inside the reward and stops training.",
    "gold_earns_the_maximum": "A gold text that does not earn the highest reward teaches the wrong answer.",
    "type_fits_the_config": "`full` is perturbed, validation outside `full` and `mixed` is clean, run-time "
    "errors are for `retry` only.",
    "component_is_its_types": "The channel of a row is the taxonomy's.",
    "anchored": "Every row names the source row that it was made of.",
    "says_what_changed": "A perturbed row says what was changed, a clean one changes nothing.",
    "retry_error_is_the_protocols": "The injected texts are the benchmark's, letter by letter.",
    "no_new_credential": "Credentials, and persons' numbers and addresses, are upstream's made-up ones.",
}


def suite(folder: Folder) -> list[Check]:
    """Columns, counts and rows of every config that the build has."""
    columns, counts, rows = list[Row](), list[Row](), list[Row]()
    texts = TrainingTexts()
    reported = folder.report.get("rows") or {}
    there = folder.configs()
    for config in dict.fromkeys((*reported, *there)):
        for split in SPLITS:
            if config in COLUMNS and config in there:
                columns += _columns(folder, config, split)
            number = perturbed = 0
            ids: dict[bool, set[str]] = {True: set(), False: set()}
            for raw in folder.rows(config, split) if config in there else ():
                values = _row(config, split, number, raw, texts)
                rows.append(values)
                number += 1
                perturbed += bool(values["perturbed"])
                ids[bool(values["perturbed"])].add(values.pop("clean_id", ""))
            train = split == "train"
            named = "perturbed" if train else "validation_perturbed"
            alone = ids[True] - ids[False]
            counts.append(
                {
                    "id": f"{config}/{split}",
                    "known": held(config in CONFIGS, "no config of the training data"),
                    "rows": number,
                    "reported": reported.get(config, {}).get(split, -1),
                    "perturbed": perturbed,
                    "reported_perturbed": reported.get(config, {}).get(named, -1 if train else 0),
                    "paired": "" if train or not alone else f"{len(alone)} have no clean row: {min(alone)}",
                }
            )
    counted = ("id", "known", "rows", "reported", "perturbed", "reported_perturbed", "paired")
    of_a_row = ("id", "config", "place", *VERDICTS, *TRAINING_HYGIENE)
    return [
        *run("training_columns", frame_of(("id", "expected", "found"), columns), _COLUMNS_EXPECTATIONS),
        *run("training_configs", frame_of(counted, counts), _CONFIGS_EXPECTATIONS),
        *run("training_rows", frame_of(of_a_row, rows), _ROWS_EXPECTATIONS),
    ]


_COLUMNS_EXPECTATIONS: tuple[Expectation, ...] = (
    compares(
        "columns",
        "are_as_the_trainer_reads_them",
        "verl reads these columns by name and type, and ignores or drops what it does not know.",
        ("expected", "found"),
        lambda f: f["expected"] == f["found"],
    ),
)


_CONFIGS_EXPECTATIONS: tuple[Expectation, ...] = (
    holds("configs", "known", "No folder pretends to be a config: `load_dataset` would offer it."),
    compares(
        "configs",
        "rows_as_reported",
        "The report's counts are those of the files: step counts are computed from them.",
        ("rows", "reported"),
        lambda f: f["rows"] == f["reported"],
    ),
    compares(
        "configs",
        "perturbed_as_reported",
        "The perturbed share is what a config is named after.",
        ("perturbed", "reported_perturbed"),
        lambda f: f["perturbed"] == f["reported_perturbed"],
    ),
    holds("configs", "paired", "What a type costs is measured against the clean row of the same clean id."),
)


_ROWS_EXPECTATIONS: tuple[Expectation, ...] = (
    *all_hold("rows", VERDICTS),
    *all_hold("hygiene", TRAINING_HYGIENE),
    native(
        "rows",
        "no_version_stands_twice",
        "A perturbed version that stands twice in a split is learnt twice.",
        "ExpectColumnValuesToBeUnique",
        column="place",
    ),
)


def _columns(folder: Folder, config: str, split: str) -> Iterator[Row]:
    for shard, found in folder.columns(config, split).items():
        pairs = zip_longest(COLUMNS[config].items(), found, fillvalue=("(none)", ""))
        for place, ((name, kind), (there, its_kind)) in enumerate(pairs):
            yield {
                "id": f"{config}/{shard}.{place}",
                "expected": f"{name} {type_name(kind)}" if kind else name,
                "found": f"{there} {its_kind}" if kind else there,
            }


def _row(
    config: str,
    split: str,
    number: int,
    raw: dict[str, Any],
    texts: TrainingTexts,
) -> dict[str, Any]:
    """One row's verdicts; those left out do not apply."""
    values: dict[str, Any] = {"id": f"{config}/{split}[{number}]", "config": config, "perturbed": False}
    try:
        info = raw["extra_info"]
        info = loads(info) if isinstance(info, str) else info
        changes = loads(info["changes"])
        code, clean_id = str(info["type_code"]), str(info["clean_id"])
        gold = raw["reward_model"]["ground_truth"] if config != "paft" else raw["messages"][-1]["content"]
        turns = messages(raw)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return values | {"decodes": f"it does not decode: {type(error).__name__} {str(error)[:100]}"}
    perturbed = code != taxonomy.CLEAN
    known = {t.code: t for t in taxonomy.types("known")}
    kind = known.get(code)
    asked = turns[:-1] if config == "paft" else turns
    may = config in ("full", "mixed") or (config == "paft" and split == "train")
    fits = (kind is None or kind.static) if may else not perturbed
    return values | {
        "perturbed": perturbed,
        "clean_id": clean_id,
        "place": f"{config}/{split}/{info.get('index')}" if perturbed else None,
        "decodes": ""
        if len(turns) == len(raw.get("prompt") or raw.get("messages") or ())
        else "a turn is malformed",
        "asks_something": held(
            bool(asked) and asked[-1].role == "user" and bool(asked[-1].content.strip()),
            "no last turn of a user",
        ),
        "gold_decodes": _gold(gold),
        "gold_earns_the_maximum": held(earns_maximum(gold), "its gold earns less than the maximum"),
        "type_fits_the_config": held(
            fits and (perturbed or config != "full" or split != "train") and (code in known or not perturbed),
            f"{code} has no place in {config}/{split}",
        ),
        "component_is_its_types": held(
            info.get("component") == (kind.component if kind else None), "component is not its type's"
        ),
        "anchored": held(bool(clean_id.strip()) and clean_id != "None", "it names no source row"),
        "says_what_changed": held(bool(changes) == perturbed, "its changes are not those of its type"),
        "retry_error_is_the_protocols": _retry(info) if config == "retry" else None,
        **_texts(texts, [turn.content for turn in turns], gold, changes),
    }


def _gold(gold: str) -> str:
    """Calls are one JSON object per line of the first block, with a name and an object of parameters."""
    block = _CALLS.search(gold)
    if block is None:
        return held("<tool_call>" not in gold, "its call block does not close")
    try:
        calls = [loads(line) for line in block.group(1).splitlines()]
    except ValueError:
        return "a line of its call block is not JSON"
    good = all(
        isinstance(c, dict) and isinstance(c.get("name"), str) and isinstance(c.get("parameters"), dict)
        for c in calls
    )
    return held(bool(calls) and good, "its call block holds no calls")


def _retry(info: dict[str, Json]) -> str:
    error = info.get("retry")
    if error is None:
        return ""
    text = taxonomy.injected_error(str(error.get("type_code"))) if isinstance(error, dict) else None
    return (
        ""
        if text is not None and error.get("error") == text
        else "the injected error is not the protocol's text"
    )


def _texts(
    texts: TrainingTexts, turns: list[str], gold: str, changes: list[dict[str, Json]]
) -> dict[str, str]:
    """What the row's texts hold; a row whose texts cannot be looked at fails every check of them."""
    try:
        return texts.verdicts(turns, gold, changes)
    except Exception as error:
        return dict.fromkeys(TRAINING_HYGIENE, f"it could not be checked: {type(error).__name__}")
