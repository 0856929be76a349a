"""The suites of a benchmark build: columns, configs, tables, rows, rewritten texts."""

from collections import Counter

from robustbench_tc import sources, taxonomy
from robustbench_tc.schema import PublishedSample

from ..checks import native, rules
from ..folder import TABLES, Folder
from ..invariants.base import is_for
from ..report import Check, without
from ..scan import Scan
from .gx import run, run_over
from .layout import Config, contract, of_shards, skips_of

CONFIGS = (taxonomy.CLEAN, *taxonomy.codes())


# --- columns ------------------------------------------------------------------------------------------


def columns_suite(folder: Folder) -> list[Check]:
    """Every shard of every sample config has the contract's columns, in order, with the contract's types."""
    there = sorted({*folder.configs()} - {*TABLES})
    return run_over("benchmark_columns", of_shards(folder, there, contract(PublishedSample)))


# --- configs ------------------------------------------------------------------------------------------


def configs_suite(scan: Scan) -> list[Check]:
    """The set of configs, and the number of rows in each."""
    folder, report = scan.folder, scan.folder.report
    there = set(folder.configs())
    profile, own = str(report.get("profile")), folder.is_own
    exact = pinned(profile)
    # All clean rows; per type those from the paper's sources, of which the types' counts speak.
    five = {source.name for source in sources.sources() if source.paper}
    columns = zip(scan.found.rows["config"], scan.found.rows["source"], strict=True)
    papers = Counter(config for config, source in columns if source in five or config == taxonomy.CLEAN)
    reported = {code: sum(n.values()) for code, n in dict(report.get("rows") or {}).items()}
    extensions = {t.code for t in taxonomy.known_with(there) if t.status == "extension"}
    further = extensions - {t.code for t in taxonomy.types("all")}
    skips, clean = skips_of(folder), scan.present.get(taxonomy.CLEAN, set())
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
                reported=reported.get(config, 0),
            )
        found.append(one)
    checks = run_over("benchmark_configs", found)
    reason = f"no counts are known beforehand for profile {profile!r}"
    return checks if exact else without(checks, "configs.rows_as_pinned", reason)


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
