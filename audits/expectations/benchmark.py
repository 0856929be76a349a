"""The suites of a benchmark build's rows: columns, rows, rewritten texts."""

from collections.abc import Mapping
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from robustbench_tc import sources, taxonomy
from robustbench_tc.schema import PublishedSample, arrow_schema

from ..folder import TABLES, Folder, type_name
from ..hygiene.rows import HYGIENE
from ..invariants import INVARIANTS
from ..own_tools import is_own
from ..report import Check
from ..rows import OF_THE_BUILDER, OF_THE_PASS
from ..scan import Scan
from .gx import Expectation, all_hold, compares, frame, frame_of, holds, native, run

if TYPE_CHECKING:
    import pandas as pd


def columns_suite(folder: Folder) -> list[Check]:
    """Every shard of every sample config has the contract's columns, in order, with the contract's types."""
    wanted = [(field.name, type_name(field.type)) for field in arrow_schema(PublishedSample)]
    rows = list[dict[str, str]]()
    for config in sorted({*folder.configs()} - {*TABLES}):
        for shard, found in folder.columns(config, "test").items():
            pairs = zip_longest(wanted, found, fillvalue=("(none)", "(none)"))
            rows += [
                dict(zip(_COLUMNS, (f"{config}/{shard}.{place}", *expected, *there), strict=True))
                for place, (expected, there) in enumerate(pairs)
            ]
    return run("benchmark_columns", frame_of(_COLUMNS, rows), _COLUMNS_EXPECTATIONS)


_COLUMNS = ("id", "column", "type", "found_column", "found_type")


_COLUMNS_EXPECTATIONS: tuple[Expectation, ...] = (
    compares(
        "columns",
        "are_the_contracts",
        "Every sample config has the same columns in the same order, so one reader reads them all.",
        ("column", "found_column"),
        lambda f: f["column"] == f["found_column"],
    ),
    compares(
        "columns",
        "have_the_contracts_types",
        "A column that changes its type breaks every reader of the version before.",
        ("type", "found_type"),
        lambda f: f["type"] == f["found_type"],
    ),
)


def rows_suite(scan: Scan) -> list[Check]:
    """Every row on its own, and against its clean row."""
    columns = frame(scan.found.rows)
    seed = scan.folder.report.get("seed")
    columns["build_seed"] = seed
    return run("benchmark_rows", columns, _rows_expectations(frozenset(scan.counts), is_own(scan.folder)))


@cache
def _rows_expectations(configs: frozenset[str], own: bool) -> tuple[Expectation, ...]:
    """Those of a build with these configs: an invariant for types of other packs only is none of them."""
    core = {taxonomy.CLEAN, *taxonomy.codes()}
    invariants = [
        holds("rows", name, found.protects)
        for name, found in INVARIANTS.items()
        if any(map(found.of_type, core | configs))
    ]
    components = {t.code: t.component for t in taxonomy.known_with(configs)}
    codes = [taxonomy.CLEAN, *components]
    return (
        *all_hold("rows", OF_THE_PASS),
        native(
            "rows",
            "ids_are_unique",
            "Predictions are kept under a row's id: two rows under one id would share an answer.",
            "ExpectColumnValuesToBeUnique",
            column="id",
        ),
        native(
            "rows",
            "type_is_known",
            "A type code that the taxonomy does not have belongs to no channel.",
            "ExpectColumnValuesToBeInSet",
            column="type_code",
            value_set=codes,
        ),
        native(
            "rows",
            "source_is_known",
            "A source has a scorer: no scorer, no score.",
            "ExpectColumnValuesToBeInSet",
            column="source",
            value_set=[sources.OWN] if own else list(sources.names()),
        ),
        native(
            "rows",
            "no_two_rows_of_a_type_are_equal",
            "A row that stands twice in a type counts twice in its accuracy.",
            "ExpectCompoundColumnsToBeUnique",
            column_list=["config", "digest"],
        ),
        *_parts_agree(components),
        *all_hold("rows", OF_THE_BUILDER),
        *invariants,
        *all_hold("hygiene", HYGIENE),
    )


def _parts_agree(components: Mapping[str, str]) -> tuple[Expectation, ...]:
    """What a row says of itself twice."""
    return (
        compares(
            "rows",
            "id_is_made_of_its_parts",
            "The id is clean_id::type_code, so that rows, predictions and reports find each other.",
            ("id", "clean_id", "type_code"),
            lambda f: f["id"] == f["clean_id"] + "::" + f["type_code"],
        ),
        compares(
            "rows",
            "config_holds_its_type",
            '`load_dataset(…, "CD_AB")` gives rows of CD_AB and nothing else.',
            ("config", "type_code"),
            lambda f: f["config"] == f["type_code"],
        ),
        compares(
            "rows",
            "component_is_its_types",
            "The channel of a row is the taxonomy's: component means are made of it.",
            ("type_code", "component"),
            lambda f: f["type_code"].map(components).fillna("") == f["component"].fillna(""),
        ),
        compares(
            "rows",
            "source_is_the_ids_prefix",
            "The source decides the scorer and stands in the id: both say the same.",
            ("clean_id", "source"),
            lambda f: f["clean_id"].str.partition("__")[0] == f["source"],
        ),
        compares(
            "rows",
            "seed_is_the_builds",
            "A row can be made again from its seed; a clean row has none.",
            ("type_code", "seed", "build_seed"),
            lambda f: (f["seed"] == f["build_seed"]) | (f["type_code"] == taxonomy.CLEAN),
        ),
        compares(
            "rows",
            "gold_tool_index_is_in_the_registry",
            "`gold_tool_index` is a place of the registry; it is null where no call is right.",
            ("type_code", "source", "gold_tool_index", "tools"),
            lambda f: (
                ((f["gold_tool_index"] >= 0) & (f["gold_tool_index"] < f["tools"]))
                | (
                    (_wants_nothing(f["type_code"]) | (f["source"] == sources.OWN))
                    & f["gold_tool_index"].isna()
                )
            ),
        ),
    )


def _wants_nothing(codes: "pd.Series[str]") -> "pd.Series[bool]":
    """Rows of the types in which no call is right."""
    known = [code for code in codes.unique() if isinstance(code, str) and taxonomy.known(code)]
    return codes.isin([code for code in known if taxonomy.get(code).no_call == "right"])


def texts_suite(scan: Scan) -> list[Check]:
    """The lengths of rewritten texts, and of translations where the build holds any."""
    texts = scan.found.texts
    translated = any(ratio is not None for ratio in texts.get("translation_ratio", ()))
    return run("benchmark_texts", frame(texts), _texts_expectations(translated))


@cache
def _texts_expectations(translated: bool) -> tuple[Expectation, ...]:
    always = (
        native(
            "texts",
            "length",
            "A rewritten text (40 characters or more) is half to twice as long: else facts left or came in.",
            "ExpectColumnValuesToBeBetween",
            column="length_ratio",
            min_value=0.5,
            max_value=2.0,
        ),
        native(
            "texts",
            "tool_description_length",
            "95 % of tool descriptions keep their length within 20 %: length alone moves a model's choice.",
            "ExpectColumnValuesToBeBetween",
            column="description_ratio",
            min_value=0.8,
            max_value=1.2,
            mostly=0.95,
        ),
    )
    translations = native(
        "texts",
        "translation_length",
        "A translation (of 40 characters or more) is an eighth to twice as long: Chinese is that dense.",
        "ExpectColumnValuesToBeBetween",
        column="translation_ratio",
        min_value=0.125,
        max_value=2.0,
    )
    return (*always, translations) if translated else always
