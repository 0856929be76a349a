"""The suites of a benchmark build: columns, configs, tables, rows, rewritten texts."""

from collections import Counter
from typing import Any, NamedTuple

from robustbench_tc import sources, taxonomy
from robustbench_tc.builders.configs import PublishedType, published
from robustbench_tc.schema import PublishedSample, dumps, loads

from ..checks import DoesNotApply, check, native, rules
from ..folder import TABLES, Folder
from ..invariants.base import is_for
from ..own_tools import is_own
from ..report import Check, without
from ..scan import Scan
from . import configs as configs_of
from .columns import Column, beside, contract
from .configs import Config
from .gx import run, run_over

CONFIGS = (taxonomy.CLEAN, *taxonomy.codes())

TABLE_COLUMNS = {
    "taxonomy": set(PublishedType.__struct_fields__),
    "evidence": {"type_code", "repo", "number", "url", "claim", "verdict", "role", "note", "checked_on"},
    "known_issues": {"source", "file", "record", "clean_id", "reason", "detail", "status"},
}


# --- columns ------------------------------------------------------------------------------------------


def columns_suite(folder: Folder) -> list[Check]:
    """Every shard of every sample config has the contract's columns, in order, with the contract's types."""
    wanted = contract(PublishedSample)
    there = sorted({*folder.configs()} - {*TABLES})
    shards = ((config, *shard) for config in there for shard in folder.columns(config, "test").items())
    found = (one for config, name, columns in shards for one in beside(f"{config}/{name}", wanted, columns))
    return run_over("benchmark_columns", found)


@check("benchmark_columns", "columns")
def are_the_contracts(one: Column) -> None:
    """Every sample config has the same columns in the same order, so one reader reads them all."""
    column, found = one.expected[0], one.found[0]
    assert column == found, f"column {column}, found_column {found}"


@check("benchmark_columns", "columns")
def have_the_contracts_types(one: Column) -> None:
    """A column that changes its type breaks every reader of the version before."""
    kind, found = one.expected[1], one.found[1]
    assert kind == found, f"type {kind or '(none)'}, found_type {found or '(none)'}"


# --- configs ------------------------------------------------------------------------------------------


def configs_suite(scan: Scan) -> list[Check]:
    """The set of configs, and the number of rows in each."""
    folder, report = scan.folder, scan.folder.report
    there = set(folder.configs())
    profile, own = str(report.get("profile")), is_own(folder)
    exact, floor = pinned(profile), papers_floor() if profile == "paper" else {}
    # All clean rows; per type those from the paper's sources, of which the types' counts speak.
    five = {source.name for source in sources.sources() if source.paper}
    columns = zip(scan.found.rows["config"], scan.found.rows["source"], strict=True)
    papers = Counter(config for config, source in columns if source in five or config == taxonomy.CLEAN)
    reported = {code: sum(n.values()) for code, n in dict(report.get("rows") or {}).items()}
    extensions = {t.code for t in taxonomy.known_with(there) if t.status == "extension"}
    further = extensions - {t.code for t in taxonomy.types("all")}
    skips, clean = configs_of.skips_of(folder), scan.present.get(taxonomy.CLEAN, set())
    found = []
    for config in (*CONFIGS, *TABLES, *sorted(there - {*CONFIGS, *TABLES})):
        skipped = skips.get(config, {})
        whole = clean == {one for one, reason in skipped.items() if reason.strip()} != set()
        unwanted = config not in (report.get("types") or ())
        left_out = own and (config == "known_issues" or whole or (config not in TABLES and unwanted))
        one = Config(
            folder,
            config,
            "" if config in (*CONFIGS, *TABLES, *extensions) else "no config of the benchmark",
            config not in there and not left_out,
            clean=clean if config in scan.counts else None,
            present=scan.present.get(config, set()),
            skips=skipped,
        )
        if config not in TABLES:
            one = one._replace(
                rows=scan.counts.get(config, 0),
                # Nobody states how many rows a type has that a generator may write.
                built=None if config in further else papers[config],
                stated=exact.get(config),
                floor=floor.get(config),
                reported=reported.get(config, 0),
            )
        found.append(one)
    checks = run_over("benchmark_configs", found)
    if not exact:
        reason = f"no counts are known beforehand for profile {profile!r}"
        return without(checks, "configs.rows_as_pinned", reason)
    reason, allowed = f"the paper has no profile {profile!r}", "the paper's counts are those of profile paper"
    return checks if floor else without(checks, "configs.rows_at_least_the_papers", reason, allowed)


def pinned(profile: str) -> dict[str, int]:
    """Config → rows that a build of the profile has; {} where that is not known beforehand."""
    clean = [getattr(source.rows, profile, None) for source in sources.sources()]
    if any(rows is None for rows in clean):
        return {}
    rows = {kind.code: getattr(kind.rows, profile, None) for kind in taxonomy.types("all")}
    return {
        taxonomy.CLEAN: sum(found for found in clean if found is not None),
        **{code: found for code, found in rows.items() if found is not None},
    }


def papers_floor() -> dict[str, int]:
    """Config → rows that profile `paper` has at least: the paper's, less those with nothing to rewrite."""
    core = ((kind.code, kind.paper_rows, kind.paper_unchanged) for kind in taxonomy.types())
    return {
        taxonomy.CLEAN: pinned("paper")[taxonomy.CLEAN],
        **{code: rows - unchanged for code, rows, unchanged in core if rows is not None},
    }


# --- tables -------------------------------------------------------------------------------------------


class Published(NamedTuple):
    """One of the tables beside the rows."""

    id: str
    columns: set[str]
    rows: list[dict[str, Any]]
    types: dict[str, taxonomy.PerturbationType]


def tables_suite(folder: Folder) -> list[Check]:
    """The three tables: their columns, and the taxonomy as this package has it."""
    stated = [kind.code for kind in taxonomy.types("all")]
    built = list(folder.report.get("types") or ())
    types = {kind.code: kind for kind in taxonomy.among((*stated, *built))}
    there = folder.configs()
    shards = {table: folder.columns(table, "test").values() for table in TABLES if table in there}
    return run_over(
        "benchmark_tables",
        [
            Published(
                table,
                {name for shard in shards.get(table, ()) for name, _ in shard},
                list(folder.rows(table)) if table in there else [],
                types,
            )
            for table in TABLES
            # Own cases: nothing was left out, and an empty table could not be loaded.
            if table in there or table != "known_issues" or not is_own(folder)
        ],
    )


@check("benchmark_tables", "tables")
def columns(one: Published) -> None:
    """The tables explain the rows: each has the columns that say how."""
    missing = TABLE_COLUMNS[one.id] - one.columns
    assert not missing, f"columns {', '.join(sorted(missing))} are missing"


@check("benchmark_tables", "tables")
def taxonomy_(one: Published) -> None:
    """The published taxonomy is the one that rows and reports are made with."""
    if one.id != "taxonomy":
        raise DoesNotApply
    found = Counter(str(row.get("code")) for row in one.rows)
    assert found == Counter(one.types.keys()), "its codes are not the package's"
    for row in one.rows:
        mine = loads(dumps(published(one.types[row["code"]])))
        same = all(row.get(name) == value for name, value in mine.items())
        assert same, f"{row['code']} is described otherwise"


# --- rows ---------------------------------------------------------------------------------------------


def rows_suite(scan: Scan) -> list[Check]:
    """Every row on its own, and against its clean row.

    A check that is for types of other packs only is none of a build without them.
    """
    codes = {taxonomy.CLEAN, *taxonomy.codes(), *scan.counts}
    wanted = [rule for rule in rules("benchmark_rows") if any(is_for(rule, code) for code in codes)]
    return run("benchmark_rows", scan.found.rows, wanted)


native(
    "benchmark_rows",
    "rows.ids_are_unique",
    "Predictions are kept under a row's id: two rows under one id would share an answer.",
    "ExpectColumnValuesToBeUnique",
    column="id",
)
native(
    "benchmark_rows",
    "rows.no_two_rows_of_a_type_are_equal",
    "A row that stands twice in a type counts twice in its accuracy.",
    "ExpectCompoundColumnsToBeUnique",
    column_list=["config", "digest"],
)


# --- texts --------------------------------------------------------------------------------------------


def texts_suite(scan: Scan) -> list[Check]:
    """The lengths of rewritten texts, and of translations where the build holds any."""
    texts = scan.found.texts
    translated = any(ratio is not None for ratio in texts.get("translation_ratio", ()))
    wanted = [rule for rule in rules("benchmark_texts") if translated or rule.name != "translation_length"]
    return run("benchmark_texts", texts, wanted)


native(
    "benchmark_texts",
    "texts.length",
    "A rewritten text (40 characters or more) is half to twice as long: else facts left or came in.",
    "ExpectColumnValuesToBeBetween",
    column="length_ratio",
    min_value=0.5,
    max_value=2.0,
)
native(
    "benchmark_texts",
    "texts.tool_description_length",
    "95 % of tool descriptions keep their length within 20 %: length alone moves a model's choice.",
    "ExpectColumnValuesToBeBetween",
    column="description_ratio",
    min_value=0.8,
    max_value=1.2,
    mostly=0.95,
)
native(
    "benchmark_texts",
    "texts.translation_length",
    "A translation (of 40 characters or more) is an eighth to twice as long: Chinese is that dense.",
    "ExpectColumnValuesToBeBetween",
    column="translation_ratio",
    min_value=0.125,
    max_value=2.0,
)
