"""The suites of a build as a folder: which configs and tables there are, and how many rows in each."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from robustbench_tc import sources, taxonomy
from robustbench_tc.builders.configs import PublishedType, published
from robustbench_tc.schema import dumps, loads

from ..folder import TABLES, Folder
from ..own_tools import is_own
from ..report import Check, without
from ..scan import Scan
from .gx import Expectation, compares, frame_of, holds, run

CONFIGS = (taxonomy.CLEAN, *taxonomy.codes())

TABLE_COLUMNS = {
    "taxonomy": set(PublishedType.__struct_fields__),
    "evidence": {"type_code", "repo", "number", "url", "claim", "verdict", "role", "note", "checked_on"},
    "known_issues": {"source", "file", "record", "clean_id", "reason", "detail", "status"},
}


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
    skips, clean = skips_of(folder), scan.present.get(taxonomy.CLEAN, set())
    rows = []
    for config in (*CONFIGS, *TABLES, *sorted(there - {*CONFIGS, *TABLES})):
        sample_config = config not in TABLES
        left_out = own and (config == "known_issues" or _is_skipped_whole(scan, config, skips))
        unstated = config in further  # nobody states how many rows a type has that a generator may write
        present, skipped = scan.present.get(config, set()), skips.get(config, {})
        row: dict[str, Any] = {
            "id": config,
            "complete": "" if config in there or left_out else "the config is missing",
            "known": "" if config in (*CONFIGS, *TABLES, *extensions) else "no config of the benchmark",
            "splits": splits(folder, config) if config in there else None,
            "accounted": (accounted("samples", clean, present, skipped) if config in scan.counts else None),
        }
        if sample_config:
            row |= {
                "rows": scan.counts.get(config, 0),
                "built": None if unstated else papers[config],
                "stated": exact.get(config),
                "floor": floor.get(config),
                "reported": reported.get(config, 0),
            }
        rows.append(row)
    names = "id complete known rows built stated floor reported splits accounted".split()
    checks = run("benchmark_configs", frame_of(names, rows), _CONFIGS_EXPECTATIONS)
    if not exact:
        reason = f"no counts are known beforehand for profile {profile!r}"
        return without(checks, "configs.rows_as_pinned", reason)
    reason, allowed = f"the paper has no profile {profile!r}", "the paper's counts are those of profile paper"
    return checks if floor else without(checks, "configs.rows_at_least_the_papers", reason, allowed)


_CONFIGS_EXPECTATIONS: tuple[Expectation, ...] = (
    holds(
        "configs",
        "complete",
        "All 23 sample configs and 3 tables are there: a dropped type would go unnoticed in a mean.",
    ),
    holds("configs", "known", "No folder pretends to be a config: `load_dataset` would offer it."),
    holds("configs", "splits", "Every config has the one split test, in a complete set of shards."),
    compares(
        "configs",
        "rows_as_pinned",
        "The number of rows of every type (from the paper's sources) is the one that the type states.",
        ("built", "stated"),
        lambda f: (f["built"] == f["stated"]) | f["built"].isna(),
    ),
    compares(
        "configs",
        "rows_at_least_the_papers",
        "Every type has at least the rows that the paper has, but for the two description types.",
        ("rows", "floor"),
        lambda f: (f["rows"] >= f["floor"]) | f["rows"].isna() | f["floor"].isna(),
    ),
    compares(
        "configs",
        "rows_as_reported",
        "The build report is what the card prints: its counts are those of the files.",
        ("rows", "reported"),
        lambda f: (f["rows"] == f["reported"]) | f["rows"].isna(),
    ),
    holds(
        "configs",
        "accounted",
        "Nothing is silently skipped: every (sample, type) pair is a row, or a skip with its reason.",
    ),
)


def splits(folder: Folder, config: str) -> str:
    """What is wrong with the splits of a config, or ""."""
    found = folder.splits(config)
    if found != ["test"]:
        return f"splits {', '.join(found) or 'none'}"
    return "" if folder.shards(config, "test") else "a shard is missing"


def skips_of(folder: Folder) -> dict[str, dict[str, str]]:
    """Config → clean id → reason, of the pairs that the report leaves out."""
    found: dict[str, dict[str, str]] = {}
    listed = folder.report.get("skipped")
    for skip in listed if isinstance(listed, list) else ():
        if isinstance(skip, dict):
            reasons = found.setdefault(str(skip.get("type_code")), {})
            reasons[str(skip.get("clean_id"))] = str(skip.get("reason") or "")
    return found


def accounted(what: str, wanted: set[str], rows: set[str], reasons: Mapping[str, str]) -> str:
    """Whether every clean id (`what` they are) has a row of the config, or a skip with a reason."""
    skipped = {clean_id for clean_id, reason in reasons.items() if reason.strip()}
    if both := rows & skipped:
        return f"{len(both)} {what} are both rows and skips"
    missing = wanted - rows - skipped
    return f"{len(missing)} {what} are neither rows nor skips with a reason" if missing else ""


def _is_skipped_whole(scan: Scan, config: str, skips: dict[str, dict[str, str]]) -> bool:
    """Whether a type has no row because each sample was skipped with a reason, or because nobody wants it."""
    if config not in (scan.folder.report.get("types") or ()):
        return True
    reasons = skips.get(config, {})
    clean = scan.present.get(taxonomy.CLEAN, set())
    return bool(clean) and clean == {one for one, reason in reasons.items() if reason.strip()}


def tables_suite(folder: Folder) -> list[Check]:
    """The three tables: their columns, and the taxonomy as this package has it."""
    found = []
    stated = [kind.code for kind in taxonomy.types("all")]
    built = list(folder.report.get("types") or ())
    types = {kind.code: kind for kind in taxonomy.among((*stated, *built))}
    for table in TABLES:
        if table == "known_issues" and is_own(folder) and table not in folder.configs():
            continue  # nothing was left out, and an empty table could not be loaded
        rows = list(folder.rows(table)) if table in folder.configs() else []
        names = {
            name
            for shard in (folder.columns(table, "test") if table in folder.configs() else {}).values()
            for name, _ in shard
        }
        missing = TABLE_COLUMNS[table] - names
        found.append(
            {
                "id": table,
                "columns": f"columns {', '.join(sorted(missing))} are missing" if missing else "",
                "taxonomy": _taxonomy(rows, types) if table == "taxonomy" else None,
            }
        )
    return run("benchmark_tables", frame_of(("id", "columns", "taxonomy"), found), _TABLES_EXPECTATIONS)


_TABLES_EXPECTATIONS: tuple[Expectation, ...] = (
    holds("tables", "columns", "The tables explain the rows: each has the columns that say how."),
    holds("tables", "taxonomy", "The published taxonomy is the one that rows and reports are made with."),
)


def _taxonomy(rows: list[dict[str, Any]], types: dict[str, taxonomy.PerturbationType]) -> str:
    found = Counter(str(row.get("code")) for row in rows)
    if found != Counter(list(types)):
        return "its codes are not the package's"
    for row in rows:
        mine = loads(dumps(published(types[row["code"]])))
        if any(row.get(name) != value for name, value in mine.items()):
            return f"{row['code']} is described otherwise"
    return ""


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
