"""The suites of a benchmark build: its columns, its configs, its rows, its rewritten texts, its tables."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.schema import SOURCES, sample_features

from ..folder import Folder, type_name
from ..invariants import INVARIANTS
from ..report import Check, check
from ..rows import HANDED_IN, OF_THE_PASS
from ..scan import Scan
from .gx import Expectation, Suites, run

if TYPE_CHECKING:
    import pandas as pd

SUITES = Suites("benchmark")

TABLES = ("taxonomy", "evidence", "known_issues")

CONFIGS = (taxonomy.CLEAN, *taxonomy.codes())

PINNED = Path(__file__).parents[1] / "pinned_counts.json"

TABLE_COLUMNS = {
    "taxonomy": set(taxonomy.PerturbationType.__struct_fields__),
    "evidence": {"type_code", "repo", "number", "url", "claim", "verdict", "role", "note", "checked_on"},
    "known_issues": {"source", "file", "record", "clean_id", "reason", "detail"},
}


def columns_suite(folder: Folder) -> list[Check]:
    """Every shard of every sample config has the contract's columns, in order, with the contract's types."""
    wanted = [(field.name, type_name(field.type)) for field in sample_features().arrow_schema]
    data: dict[str, list[Any]] = {n: [] for n in ("id", "column", "type", "found_column", "found_type")}
    extensions = {t.code for t in taxonomy.types("all")}
    for config in folder.configs():
        if config not in (taxonomy.CLEAN, *extensions):
            continue
        for shard, found in folder.columns(config, "test").items():
            for place in range(max(len(wanted), len(found))):
                expected = wanted[place] if place < len(wanted) else ("(none)", "(none)")
                there = found[place] if place < len(found) else ("(none)", "(none)")
                data["id"].append(f"{config}/{shard}.{place}")
                for name, value in zip(
                    ("column", "type", "found_column", "found_type"), (*expected, *there), strict=True
                ):
                    data[name].append(value)
    return run("benchmark_columns", _frame(data), _columns_expectations())


@cache
def _columns_expectations() -> tuple[Expectation, ...]:
    return (
        SUITES.compares(
            "columns",
            "are_the_contracts",
            "Every sample config has the same columns in the same order, so one reader reads them all.",
            ("column", "found_column"),
            lambda f: f["column"] == f["found_column"],
        ),
        SUITES.compares(
            "columns",
            "have_the_contracts_types",
            "A column that changes its type breaks every reader of the version before.",
            ("type", "found_type"),
            lambda f: f["type"] == f["found_type"],
        ),
    )


def configs_suite(scan: Scan) -> list[Check]:
    """The set of configs, and the number of rows in each."""
    folder, report = scan.folder, scan.folder.report
    there = set(folder.configs())
    pins = pinned().get(str(report.get("profile")), {})
    exact, floor = pins.get("rows", {}), pins.get("paper_rows", {})
    reported = {code: sum(n.values()) for code, n in dict(report.get("rows") or {}).items()}
    extensions = {t.code for t in taxonomy.types("all") if t.status == "extension"}
    data: dict[str, list[Any]] = {
        n: []
        for n in ("id", "complete", "known", "rows", "pinned", "floor", "reported", "splits", "accounted")
    }
    skips = _skips(report)
    for config in (*CONFIGS, *TABLES, *sorted(there - {*CONFIGS, *TABLES})):
        sample_config = config not in TABLES
        data["id"].append(config)
        data["complete"].append("" if config in there else "the config is missing")
        data["known"].append(
            "" if config in (*CONFIGS, *TABLES, *extensions) else "no config of the benchmark"
        )
        data["rows"].append(scan.counts.get(config, 0) if sample_config else None)
        data["pinned"].append(exact.get(config) if sample_config else None)
        data["floor"].append(floor.get(config) if sample_config else None)
        data["reported"].append(reported.get(config, 0) if sample_config else None)
        data["splits"].append(_splits(folder, config) if config in there else None)
        data["accounted"].append(_accounted(scan, config, skips) if config in scan.counts else None)
    checks = run("benchmark_configs", _frame(data), _configs_expectations())
    names = [c.id for c in checks]
    if not exact:
        at = names.index("configs.rows_as_pinned")
        checks[at] = msgspec.structs.replace(
            checks[at],
            status="not_run",
            reason=f"no counts are pinned for profile {report.get('profile')!r} (audits/pinned_counts.json)",
        )
    if exact and not floor:
        at = names.index("configs.rows_at_least_the_papers")
        checks[at] = msgspec.structs.replace(
            checks[at],
            status="not_run",
            reason=f"the paper has no profile {report.get('profile')!r}",
            may_be_left_out="issue 2: the paper's counts are those of profile paper",
        )
    return checks


@cache
def _configs_expectations() -> tuple[Expectation, ...]:
    return (
        SUITES.holds(
            "configs",
            "complete",
            "All 23 sample configs and 3 tables are there: a dropped type would go unnoticed in a mean.",
        ),
        SUITES.holds("configs", "known", "No folder pretends to be a config: `load_dataset` would offer it."),
        SUITES.holds(
            "configs", "splits", "Every config has the one split test, in a complete set of shards."
        ),
        SUITES.compares(
            "configs",
            "rows_as_pinned",
            "The number of rows of every type is the one that was agreed on for this profile.",
            ("rows", "pinned"),
            lambda f: (f["rows"] == f["pinned"]) | f["rows"].isna(),
        ),
        SUITES.compares(
            "configs",
            "rows_at_least_the_papers",
            "Every type has at least the rows that the paper has, but for the two description types.",
            ("rows", "floor"),
            lambda f: (f["rows"] >= f["floor"]) | f["rows"].isna() | f["floor"].isna(),
        ),
        SUITES.compares(
            "configs",
            "rows_as_reported",
            "The build report is what the card prints: its counts are those of the files.",
            ("rows", "reported"),
            lambda f: (f["rows"] == f["reported"]) | f["rows"].isna(),
        ),
        SUITES.holds(
            "configs",
            "accounted",
            "Nothing is silently skipped: every (sample, type) pair is a row, or a skip with its reason.",
        ),
    )


def _splits(folder: Folder, config: str) -> str:
    splits = folder.splits(config)
    if splits != ["test"]:
        return f"splits {', '.join(splits) or 'none'}"
    return "" if folder.shards(config, "test") else "a shard is missing"


def _skips(report: dict[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for skip in report.get("skipped") or ():
        found.setdefault(str(skip.get("type_code")), {})[str(skip.get("clean_id"))] = str(
            skip.get("reason") or ""
        )
    return found


def _accounted(scan: Scan, config: str, skips: dict[str, dict[str, str]]) -> str:
    if config == taxonomy.CLEAN:
        return ""
    clean, rows = scan.present.get(taxonomy.CLEAN, set()), scan.present[config]
    skipped = {clean_id for clean_id, reason in skips.get(config, {}).items() if reason.strip()}
    if both := rows & skipped:
        return f"{len(both)} samples are both rows and skips"
    missing = clean - rows - skipped
    return f"{len(missing)} samples are neither rows nor skips with a reason" if missing else ""


def rows_suite(scan: Scan) -> list[Check]:
    """Every row on its own, and against its clean row."""
    frame = _frame(scan.found.rows)
    seed = scan.folder.report.get("seed")
    frame["build_seed"] = seed
    return run("benchmark_rows", frame, _rows_expectations())


@cache
def _rows_expectations() -> tuple[Expectation, ...]:
    from_the_scan = [SUITES.holds("rows", name, protects) for name, protects in OF_THE_PASS.items()]
    from_the_units = [SUITES.holds("rows", name, protects) for name, protects in HANDED_IN.items()]
    invariants = [SUITES.holds("rows", name, found.protects) for name, found in INVARIANTS.items()]
    components = {t.code: t.component for t in taxonomy.types("all")}
    codes = [taxonomy.CLEAN, *components]
    return (
        *from_the_scan,
        SUITES.native(
            "rows",
            "ids_are_unique",
            "Predictions are kept under a row's id: two rows under one id would share an answer.",
            "ExpectColumnValuesToBeUnique",
            column="id",
        ),
        SUITES.native(
            "rows",
            "type_is_known",
            "A type code that the taxonomy does not have belongs to no channel.",
            "ExpectColumnValuesToBeInSet",
            column="type_code",
            value_set=codes,
        ),
        SUITES.native(
            "rows",
            "source_is_known",
            "A source has a scorer: no scorer, no score.",
            "ExpectColumnValuesToBeInSet",
            column="source",
            value_set=list(SOURCES),
        ),
        SUITES.native(
            "rows",
            "no_two_rows_of_a_type_are_equal",
            "A row that stands twice in a type counts twice in its accuracy.",
            "ExpectCompoundColumnsToBeUnique",
            column_list=["config", "digest"],
        ),
        SUITES.compares(
            "rows",
            "id_is_made_of_its_parts",
            "The id is clean_id::type_code, so that rows, predictions and reports find each other.",
            ("id", "clean_id", "type_code"),
            lambda f: f["id"] == f["clean_id"] + "::" + f["type_code"],
        ),
        SUITES.compares(
            "rows",
            "config_holds_its_type",
            '`load_dataset(…, "CD_AB")` gives rows of CD_AB and nothing else.',
            ("config", "type_code"),
            lambda f: f["config"] == f["type_code"],
        ),
        SUITES.compares(
            "rows",
            "component_is_its_types",
            "The channel of a row is the taxonomy's: component means are made of it.",
            ("type_code", "component"),
            lambda f: f["type_code"].map(components).fillna("") == f["component"].fillna(""),
        ),
        SUITES.compares(
            "rows",
            "source_is_the_ids_prefix",
            "The source decides the scorer and stands in the id: both say the same.",
            ("clean_id", "source"),
            lambda f: f["clean_id"].str.partition("__")[0] == f["source"],
        ),
        SUITES.compares(
            "rows",
            "seed_is_the_builds",
            "A row can be made again from its seed; a clean row has none.",
            ("type_code", "seed", "build_seed"),
            lambda f: (f["seed"] == f["build_seed"]) | (f["type_code"] == taxonomy.CLEAN),
        ),
        SUITES.compares(
            "rows",
            "gold_tool_index_is_in_the_registry",
            "`gold_tool_index` is a place of the registry.",
            ("gold_tool_index", "tools"),
            lambda f: (f["gold_tool_index"] >= 0) & (f["gold_tool_index"] < f["tools"]),
        ),
        *from_the_units,
        *invariants,
    )


def texts_suite(scan: Scan) -> list[Check]:
    """The lengths of rewritten texts."""
    return run("benchmark_texts", _frame(scan.found.texts), _texts_expectations())


@cache
def _texts_expectations() -> tuple[Expectation, ...]:
    return (
        SUITES.native(
            "texts",
            "length",
            "A rewritten text (40 characters or more) is half to twice as long: else facts left or came in.",
            "ExpectColumnValuesToBeBetween",
            column="length_ratio",
            min_value=0.5,
            max_value=2.0,
        ),
        SUITES.native(
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


def tables_suite(folder: Folder) -> list[Check]:
    """The three tables: their columns, and the taxonomy as this package has it."""
    data: dict[str, list[Any]] = {"id": [], "columns": [], "taxonomy": []}
    types = {t.code: t for t in taxonomy.types("all")}
    for table in TABLES:
        data["id"].append(table)
        rows = list(folder.rows(table)) if table in folder.configs() else []
        names = {
            name
            for shard in (folder.columns(table, "test") if table in folder.configs() else {}).values()
            for name, _ in shard
        }
        missing = TABLE_COLUMNS[table] - names
        data["columns"].append(f"columns {', '.join(sorted(missing))} are missing" if missing else "")
        data["taxonomy"].append(_taxonomy(rows, types) if table == "taxonomy" else None)
    return run("benchmark_tables", _frame(data), _tables_expectations())


@cache
def _tables_expectations() -> tuple[Expectation, ...]:
    return (
        SUITES.holds("tables", "columns", "The tables explain the rows: each has the columns that say how."),
        SUITES.holds(
            "tables", "taxonomy", "The published taxonomy is the one that rows and reports are made with."
        ),
    )


def _taxonomy(rows: list[dict[str, Any]], types: dict[str, taxonomy.PerturbationType]) -> str:
    found = Counter(str(row.get("code")) for row in rows)
    if found != Counter(list(types)):
        return "its codes are not the package's"
    for row in rows:
        mine = msgspec.to_builtins(types[row["code"]])
        if any(
            row.get(name) != (list(value) if isinstance(value, tuple) else value)
            for name, value in mine.items()
        ):
            return f"{row['code']} is described otherwise"
    return ""


@cache
def pinned() -> dict[str, dict[str, dict[str, int]]]:
    """Profile → `rows` (exact) and `paper_rows` (at least) → config → rows."""
    return msgspec.json.decode(PINNED.read_bytes(), type=dict[str, dict[str, dict[str, int]]])


def unreadable(folder: Folder) -> Check:
    """Whatever could not be read on the way."""
    return check(
        "files.readable",
        "Every Parquet file can be read and every set of shards is complete.",
        max(1, len(folder.configs())),
        folder.unreadable,
    )


def _frame(data: dict[str, list[Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame({name: pd.Series(values, dtype=_dtype(name)) for name, values in data.items()})


def _dtype(name: str) -> Any:
    numbers = (
        "length_ratio",
        "description_ratio",
        "rows",
        "pinned",
        "floor",
        "reported",
        "gold_tool_index",
        "tools",
    )
    return "float64" if name in numbers else "object"
