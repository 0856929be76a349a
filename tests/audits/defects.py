"""Defects to plant in a copy of a build, each with the check that has to catch it.

A defect of rows changes one row of a config that no other defect touches, and names it, so that all of them
are found in one audit. A defect of the folder changes files or reports, and names what the check must name.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc import taxonomy
from robustbench_tc.schema import GOLD_NOT_STATED, Sample

from ..builders.perturb.planted import defects_of
from . import builds
from .builds import Row


class Defect(NamedTuple):
    name: str
    place: str
    """A config, or "" for a defect of the folder."""
    check: str
    plant: Callable[..., str | None]


class Picker:
    """Rows of one config that no other defect has taken."""

    def __init__(self, rows: list[Row], reserved: set[str]) -> None:
        self.rows = rows
        self.reserved = reserved
        self.taken: list[Row] = []

    def __call__(self, fits: Callable[[Row], Any] = lambda row: True) -> Row:
        for row in self.rows:
            if row["clean_id"] not in self.reserved and not any(row is t for t in self.taken) and fits(row):
                self.taken.append(row)
                return row
        raise AssertionError("no row is left for this defect")


REWRITES = (
    "realistic_typos",
    "query_paraphrase",
    "paraphrase_tool_description",
    "paraphrase_parameter_description",
)

ROWS: list[Defect] = []
FOLDER: list[Defect] = []


def of_rows(
    name: str, config: str, check: str
) -> Callable[[Callable[[Picker], str]], Callable[[Picker], str]]:
    """Of rows that the defect picks itself; it names what its check must name."""

    def add(plant: Callable[[Picker], str]) -> Callable[[Picker], str]:
        ROWS.append(Defect(name, config, check, plant))
        return plant

    return add


def of_row(
    name: str, config: str, check: str, fits: Callable[[Row], Any] = lambda row: True
) -> Callable[[Callable[[Row], None]], None]:
    """Of one row, the first that fits."""

    return lambda spoil: ROWS.append(row_defect(name, config, check, spoil, fits))


def row_defect(
    name: str,
    config: str,
    check: str,
    spoil: Callable[[Row], Any],
    fits: Callable[[Row], Any] = lambda row: True,
) -> Defect:
    def plant(pick: Picker) -> str:
        row = pick(fits)
        spoil(row)
        return str(row["id"])

    return Defect(name, config, check, plant)


def of_folder(name: str, check: str) -> Callable[[Callable[[Path], str]], Callable[[Path], str]]:
    def add(plant: Callable[[Path], str]) -> Callable[[Path], str]:
        FOLDER.append(Defect(name, "", check, plant))
        return plant

    return add


def plant_rows(folder: Path, only: Iterable[str] | None = None) -> dict[str, str]:
    """Plants every defect of rows (or those named); gives defect → the id that its check must name."""
    chosen = [d for d in ROWS if only is None or d.name in only]
    CLEAN.update((row["clean_id"], msgspec.convert(row, Sample)) for row in builds.rows(folder, "clean"))
    reserved: set[str] = set()
    planted: dict[str, str] = {}
    for config in sorted({d.place for d in chosen}, key=lambda c: c != "clean"):
        found = builds.rows(folder, config)
        pick = Picker(found, reserved if config != "clean" else set())
        for defect in (d for d in chosen if d.place == config):
            named = defect.plant(pick)
            assert named is not None
            planted[defect.name] = named
        builds.write(folder, config, found)
        if config == "clean":
            reserved = {row["clean_id"] for row in pick.taken}
    return planted


def reword(row: Row, text: str) -> None:
    """Replaces the rewritten query, in the message and in the diff."""
    (change,) = (c for c in row["changes"] if c["path"].startswith("/messages/"))
    index, at = int(change["path"].split("/")[2]), change["at"]
    content = row["messages"][index]["content"]
    row["messages"][index]["content"] = content[:at] + text + content[at + len(change["after"]) :]
    change["after"] = text


def rewritten(row: Row) -> str:
    return next(str(c["after"]) for c in row["changes"] if c["path"].startswith("/messages/"))


def values(row: Row) -> list[str]:
    """Gold values that are texts of some length."""
    return [
        v
        for answer in row["golden_answers"]
        for call in answer
        for accepted in call["parameters"].values()
        if isinstance(accepted, list)
        for v in accepted
        if isinstance(v, str) and len(v) > 3
    ]


def gold_tool(row: Row) -> Row:
    tool: Row = row["tools"][row["gold_tool_index"]]
    return tool


def counterpart(row: Row) -> Row:
    """The distractor of a reward row."""
    return next(
        t
        for t in row["tools"]
        if t is not gold_tool(row)
        and t["parameters"] == gold_tool(row)["parameters"]
        and ("Price per call" in t["description"] or "response time" in t["description"])
    )


def one_call(row: Row) -> bool:
    return len(row["golden_answers"]) == 1 and len(row["golden_answers"][0]) == 1


# --- golden answers ------------------------------------------------------------------------------------


@of_row("a changed gold value", "query_paraphrase", "rows.gold_is_the_clean_gold", values)
def _(row: Row) -> None:
    call = row["golden_answers"][0][0]
    call["parameters"] = {name: ["something else"] for name in call["parameters"]}


@of_row("an index that means the distractor", "same_name_D", "rows.gold_index_means_the_clean_tool", one_call)
def _(row: Row) -> None:
    name = gold_tool(row)["name"]
    (other,) = (i for i, t in enumerate(row["tools"]) if t["name"] == name and i != row["gold_tool_index"])
    row["gold_tool_index"] = other


ROWS += [
    row_defect(
        "a gold that its scorer refuses",
        "clean",
        "rows.gold_passes_its_scorer",
        lambda row: row["golden_answers"][0][0]["parameters"].update(no_such_parameter=["x"]),
        lambda r: r["source"] == "bfcl_v3" and len(r["golden_answers"][0]) == 1,
    ),
    row_defect(
        "no golden call",
        "transient_timeout",
        "rows.gold_is_there",
        lambda row: row.update(golden_answers=[[]]),
    ),
    row_defect(
        "a gold tool that is not offered",
        "transient_timeout",
        "rows.gold_in_registry",
        lambda row: row["golden_answers"][0][0].update(name="a_tool_of_nowhere"),
        one_call,
    ),
    row_defect(
        "an index that points at another tool",
        "transient_timeout",
        "rows.gold_at_its_index",
        lambda row: row.update(gold_tool_index=(row["gold_tool_index"] + 1) % len(row["tools"])),
        lambda r: len({t["name"] for t in r["tools"]}) == len(r["tools"]) > 1,
    ),
    row_defect(
        "an index beyond the registry",
        "transient_timeout",
        "rows.gold_at_its_index",
        lambda row: row.update(gold_tool_index=99),
    ),
]


# --- rewritten texts -----------------------------------------------------------------------------------


@of_row(
    "a lost digit", "realistic_typos", "rows.digits_kept", lambda r: any(c.isdigit() for c in rewritten(r))
)
def _(row: Row) -> None:
    text = rewritten(row)
    digit = next(i for i, c in enumerate(text) if c.isdigit())
    reword(row, text[:digit] + text[digit + 1 :])


@of_row(
    "a lost gold value",
    "query_paraphrase",
    "rows.gold_values_kept",
    lambda r: any(v in rewritten(r) and v.isalpha() for v in values(r)),
)
def _(row: Row) -> None:
    value = next(v for v in values(row) if v in rewritten(row) and v.isalpha())
    reword(row, rewritten(row).replace(value, "it"))


@of_rows("a rewriting of another sample", "query_paraphrase", "paraphrase.query_paraphrase")
def _(pick: Picker) -> str:
    row, other = pick(), pick()
    reword(row, rewritten(other))
    return str(row["id"])


@of_rows("a rewriting three times as long", "query_paraphrase", "texts.length")
def _(pick: Picker) -> str:
    row = pick(lambda r: len(r["changes"][0]["before"]) > 60)
    reword(row, f"{rewritten(row)} {'And nothing else matters here, as said. ' * 20}")
    return f"{row['id']} {row['changes'][0]['path']}"


@of_row(
    "a rewritten reply of the assistant",
    "query_paraphrase",
    "rows.only_one_user_turn_changes",
    lambda r: "<response>" in r["messages"][-1]["content"],
)
def _(row: Row) -> None:
    message, change = row["messages"][-1], row["changes"][0]
    text = message["content"]
    clean = text[: change["at"]] + change["before"] + text[change["at"] + len(change["after"]) :]
    at = clean.index("<response>") + len("<response>")
    change.update(before=clean[at : at + 5], after="Well, " + clean[at : at + 5], at=at)
    message["content"] = clean[:at] + change["after"] + clean[at + 5 :]


@of_row(
    "a tool renamed in a query type",
    "realistic_typos",
    "rows.changes_only_what_its_type_may",
    lambda r: len(r["tools"]) > 1,
)
def _(row: Row) -> None:
    other = (row["gold_tool_index"] + 1) % len(row["tools"])
    row["tools"][other]["name"] += "_renamed"


@of_row(
    "a row in which nothing changed", "paraphrase_parameter_description", "rows.static_row_differs_from_clean"
)
def _(row: Row) -> None:
    for change in row["changes"]:
        _, _, index, _, *way, last = change["path"].split("/")
        place = row["tools"][int(index)]["parameters"]
        for step in way:
            place = place[step.replace("~1", "/").replace("~0", "~")]
        place[last] = change["before"]
        change["after"] = change["before"]


ROWS += [
    row_defect(
        "a blank rewriting", "query_paraphrase", "rows.texts_are_rewritten", lambda row: reword(row, " ")
    ),
    row_defect(
        "a diff that hides a change",
        "paraphrase_tool_description",
        "rows.diff_explains_the_row",
        lambda row: row["changes"].pop(),
        lambda r: len(r["changes"]) > 1,
    ),
    row_defect(
        "a vendor's key in a new text",
        "realistic_typos",
        "rows.no_new_credential",
        lambda row: reword(row, f"{rewritten(row)} sk-{'a1B2c3D4' * 5}"),
    ),
    row_defect(
        "an e-mail address in a clean row",
        "clean",
        "rows.clean_credentials_reviewed",
        lambda row: row["messages"][-1].update(
            content=row["messages"][-1]["content"] + " Write to mara.lind@harbour-mail.org."
        ),
    ),
]


# --- the registry --------------------------------------------------------------------------------------


@of_row(
    "a distractor with parameters that should have none",
    "same_name_B",
    "rows.distractor_is_of_its_kind",
    one_call,
)
def _(row: Row) -> None:
    name = gold_tool(row)["name"]
    other = next(t for i, t in enumerate(row["tools"]) if t["name"] == name and i != row["gold_tool_index"])
    other["parameters"] = {"type": "object", "properties": {"tint": {"type": "string"}}}


@of_row(
    "a distractor that the golden call fits",
    "same_name_D",
    "rows.distractor_refuses_the_gold_call",
    lambda r: one_call(r) and r["golden_answers"][0][0]["parameters"],
)
def _(row: Row) -> None:
    gold = gold_tool(row)
    other = next(t for t in row["tools"] if t["name"] == gold["name"] and t is not gold)
    (change,) = row["changes"]
    properties = {**gold["parameters"]["properties"], "tint": {"type": "string"}}
    other["parameters"] = change["after"]["parameters"] = {"type": "object", "properties": properties}


@of_row(
    "clean tools in another order",
    "same_name_A",
    "rows.one_distractor_per_gold_tool",
    lambda r: len(r["tools"]) > 3,
)
def _(row: Row) -> None:
    row["tools"].reverse()
    row["gold_tool_index"] = len(row["tools"]) - 1 - row["gold_tool_index"]


@of_row("a redundant tool with a taken name", "redundant", "rows.redundant_tools_are_new")
def _(row: Row) -> None:
    change = row["changes"][0]
    index = int(change["path"].split("/")[2])
    row["tools"][index]["name"] = change["after"]["name"] = gold_tool(row)["name"]


def new_tool(row: Row, change: Callable[[Row], Any]) -> None:
    """Changes the row's first new tool, in the registry and in the diff."""
    entry = row["changes"][0]
    for tool in (row["tools"][int(entry["path"].split("/")[2])], entry["after"]):
        change(tool)


@of_row(
    "a new tool with a key of its own",
    "redundant",
    "rows.redundant_tools_have_their_registrys_style",
    lambda r: r["changes"][0]["after"]["parameters"]["properties"],
)
def _(row: Row) -> None:

    def change(tool: Row) -> None:
        for inner in tool["parameters"]["properties"].values():
            inner["examples"] = []

    new_tool(row, change)


@of_row(
    "a new tool with a type of its own",
    "redundant",
    "rows.redundant_tools_have_their_registrys_style",
    lambda r: r["source"] == "rotbench" and r["changes"][0]["after"]["parameters"]["properties"],
)
def _(row: Row) -> None:

    def change(tool: Row) -> None:
        for inner in tool["parameters"]["properties"].values():
            inner["type"] = "integer"

    new_tool(row, change)


@of_row(
    "a new tool that says what another says",
    "redundant",
    "rows.redundant_tools_differ",
    lambda r: gold_tool(r)["description"],
)
def _(row: Row) -> None:
    said = gold_tool(row)["description"].upper()
    new_tool(row, lambda tool: tool.update(description=said))


ROWS += [
    row_defect(
        "two distractors",
        "same_name_C",
        "rows.one_distractor_per_gold_tool",
        lambda row: row["tools"].append(
            {"name": gold_tool(row)["name"], "description": "", "parameters": {"type": "object"}}
        ),
        one_call,
    ),
    row_defect(
        "a prompt's step taken for a tool",
        "transient_rate_limit",
        "rows.tools_are_tools",
        lambda row: row["tools"].append(
            {"name": "**Think", "description": "", "parameters": {"type": "object"}}
        ),
    ),
]


# --- reward --------------------------------------------------------------------------------------------


def annotate(row: Row, tool: Row, description: str) -> None:
    """Replaces a description in the row and in the diff."""
    for change in row["changes"]:
        if change["after"] == tool["description"]:
            change["after"] = description
        elif isinstance(change["after"], dict) and change["after"].get("name") == tool["name"]:
            change["after"]["description"] = description
    tool["description"] = description


@of_row("a swapped price", "CD", "rows.annotations_in_order", one_call)
def _(row: Row) -> None:
    cheap, dear = gold_tool(row), counterpart(row)
    ours, theirs = cheap["description"], dear["description"]
    annotate(row, cheap, theirs)
    annotate(row, dear, ours)


@of_row(
    "another tool with a price",
    "TD_NT",
    "rows.other_tools_look_no_better",
    lambda r: one_call(r) and len(r["tools"]) > 2,
)
def _(row: Row) -> None:
    other = next(t for t in row["tools"] if t not in (gold_tool(row), counterpart(row)))
    other["description"] += " Typical response time: 5 ms."


@of_row("a preference of the other kind", "TD", "rows.preference_as_its_type_says")
def _(row: Row) -> None:
    change = next(c for c in row["changes"] if c["path"].startswith("/messages/"))
    reword(row, f"{change['before']} Please keep the cost of the call as low as possible.")


@of_row(
    "a preference before an executed call",
    "TD_NT",
    "rows.preference_bears_on_the_scored_call",
    lambda r: "</user>" in r["messages"][-1]["content"].partition("<obs>")[0],
)
def _(row: Row) -> None:
    message = row["messages"][-1]
    (change,) = (c for c in row["changes"] if c["path"].startswith("/messages/"))
    clean = message["content"].replace(change["after"], change["before"], 1)
    at = clean.index("<user>") + len("<user>")
    first = clean[at : clean.index("</user>", at)]
    wish = change["after"][len(change["before"]) :]
    change.update(before=first, after=first + wish, at=at)
    message["content"] = clean[:at] + first + wish + clean[at + len(first) :]


@of_row("a schema changed by a reward type", "TD", "rows.clean_schemas_stand", lambda r: len(r["tools"]) > 2)
def _(row: Row) -> None:
    other = next(t for t in row["tools"] if t not in (gold_tool(row), counterpart(row)))
    other["parameters"] = {"type": "object", "properties": {"tint": {"type": "string"}}}


@of_row("a gold name that is not an abbreviation", "CD_AB", "rows.gold_name_is_an_abbreviation", one_call)
def _(row: Row) -> None:
    gold_tool(row)["name"] = row["golden_answers"][0][0]["name"] = "zz"


ROWS += [
    row_defect(
        "an offer as good as the gold tool's",
        "CD_NT",
        "rows.gold_is_the_unique_best",
        lambda row: annotate(row, counterpart(row), gold_tool(row)["description"]),
        one_call,
    ),
    row_defect(
        "a second counterpart",
        "TD",
        "rows.exactly_one_counterpart",
        lambda row: row["tools"].append({**counterpart(row), "name": counterpart(row)["name"] + "_2"}),
        one_call,
    ),
    row_defect(
        "a counterpart whose name promises nothing",
        "CD",
        "rows.counterpart_is_named_as_its_type_says",
        lambda row: counterpart(row).update(name=counterpart(row)["name"] + "_or_not"),
        one_call,
    ),
    row_defect(
        "a telling transcript without its flag",
        "CD_AB",
        "rows.telling_history_is_flagged",
        lambda row: row.update(flags=[]),
        lambda r: "history_names_distractor" in r["flags"],
    ),
]


# --- transition ----------------------------------------------------------------------------------------


ROWS += [
    row_defect(
        "a transition row with another query",
        "transient_auth_error",
        "rows.changes_only_what_its_type_may",
        lambda row: row["messages"][-1].update(content=row["messages"][-1]["content"] + " Please."),
    ),
    row_defect(
        "an injected text with another full stop",
        "transient_auth_error",
        "rows.injected_text_is_the_protocols",
        lambda row: row.update(injected_error=row["injected_error"].rstrip(".")),
    ),
    row_defect(
        "the flag of samples that nobody could answer",
        "clean",
        "rows.flag_says_what_the_golds_say",
        lambda row: row.update(flags=[GOLD_NOT_STATED]),
        lambda r: r["source"] == "bfcl_v3",
    ),
    row_defect(
        "a golden answer of a source that nobody knows",
        "clean",
        "rows.golds_are_classified",
        lambda row: row.update(source="rotbank"),
        lambda r: r["source"] == "rotbench",
    ),
    row_defect(
        "a flag that its type does not explain",
        "transient_auth_error",
        "rows.flags_are_its_types",
        lambda row: row.update(flags=["seen_before"]),
    ),
]


# --- ids, origin, form ---------------------------------------------------------------------------------


@of_rows("a duplicate id", "transient_server_error", "rows.ids_are_unique")
def _(pick: Picker) -> str:
    row, other = pick(), pick()
    row["id"] = other["id"]
    return str(other["id"])


@of_rows("a row twice", "same_name_E", "rows.no_two_rows_of_a_type_are_equal")
def _(pick: Picker) -> str:
    row = pick()
    pick.rows.append({**row, "seed": 99})
    return str(row["id"])


@of_row("an unanchored row", "TD_AB", "rows.anchored")
def _(row: Row) -> None:
    row["clean_id"] = f"{row['source']}__nobody_knows"
    row["id"] = f"{row['clean_id']}::TD_AB"


ROWS += [
    row_defect(
        "an id of other parts",
        "transient_server_error",
        "rows.id_is_made_of_its_parts",
        lambda row: row.update(id=row["id"] + "_2"),
    ),
    row_defect(
        "a row of another type",
        "TD_AB",
        "rows.config_holds_its_type",
        lambda row: row.update(type_code="CD_AB", id=f"{row['clean_id']}::CD_AB_2"),
    ),
    row_defect(
        "an unknown type",
        "transient_server_error",
        "rows.type_is_audited",
        lambda row: row.update(type_code="transient_mood", id=f"{row['clean_id']}::transient_mood"),
    ),
    row_defect(
        "a row of a type without facts",
        "transient_server_error",
        "rows.type_is_audited",
        lambda row: row.update(type_code="my_type", id=f"{row['clean_id']}::my_type"),
    ),
    row_defect(
        "another channel",
        "transient_server_error",
        "rows.component_is_its_types",
        lambda row: row.update(component="action"),
    ),
    row_defect(
        "another source than the id says",
        "transient_server_error",
        "rows.source_is_the_ids_prefix",
        lambda row: row.update(source="apibank"),
        lambda r: r["source"] == "bfcl_v3",
    ),
    row_defect(
        "an unknown source",
        "transient_server_error",
        "rows.output_format_of_its_source",
        lambda row: row.update(source="hearsay"),
    ),
    row_defect(
        "another category than the clean row's",
        "transient_schema_drift",
        "rows.same_origin_as_clean",
        lambda row: row.update(category="another"),
    ),
    row_defect(
        "another output format",
        "transient_schema_drift",
        "rows.output_format_of_its_source",
        lambda row: row.update(output_format="react"),
        lambda r: r["source"] == "bfcl_v3",
    ),
    row_defect(
        "a row that asks nothing",
        "transient_schema_drift",
        "rows.asks_something",
        lambda row: row.update(messages=[{"role": "user", "content": "  "}]),
    ),
    row_defect(
        "a text by nobody", "redundant", "rows.generator_is_named", lambda row: row.update(generator="rule")
    ),
    row_defect(
        "a seed of another build",
        "transient_schema_drift",
        "rows.seed_is_the_builds",
        lambda row: row.update(seed=12345),
    ),
    row_defect(
        "JSON that ends too soon",
        "transient_malformed_response",
        "rows.decodes",
        lambda row: row.update(tools='[{"name": '),
    ),
    row_defect(
        "a row that its own unit refuses",
        "transient_malformed_response",
        "rows.unit_finds_nothing",
        lambda row: row["tools"].append(
            {"name": "one_more", "description": "", "parameters": {"type": "object"}}
        ),
    ),
]


# --- what each type says that it could get wrong -------------------------------------------------------


def _own(spoil: Callable[[Sample, Sample], Sample]) -> Callable[[Picker], str]:
    """Plants a type's own defect in the first row that it changes."""

    def plant(pick: Picker) -> str:
        def spoiled(row: Row) -> Sample | None:
            sample = msgspec.convert(row, Sample)
            made = spoil(CLEAN[sample.clean_id], sample)
            return None if made == sample else made

        row = pick(spoiled)
        row.update(msgspec.to_builtins(spoiled(row)))
        return str(row["id"])

    return plant


CLEAN: dict[str, Sample] = {}
"""The clean rows of the build that defects are planted in, by clean id."""

for _code in taxonomy.codes():
    for _check, _spoil in defects_of(_code):
        of_rows(f"the planted defect of {_code}", _code, f"rows.{_check}")(_own(_spoil))


# --- the folder ----------------------------------------------------------------------------------------


def _only(folder: Path, config: str) -> Path:
    (found,) = (folder / config).glob("test-*.parquet")
    return found


def _table(folder: Path, config: str, change: Callable[[pa.Table], pa.Table]) -> None:
    path = _only(folder, config)
    pq.write_table(change(pq.read_table(path)), path)


def _report(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "build_report.json"
    report = json.loads(path.read_text())
    change(report)
    path.write_text(json.dumps(report))


@of_folder("a dropped type", "configs.complete")
def _(folder: Path) -> str:
    shutil.rmtree(folder / "CD_AB")
    return "CD_AB"


@of_folder("an extra column", "columns.are_the_contracts")
def _(folder: Path) -> str:
    _table(folder, "TD_AB", lambda t: t.append_column("note", pa.array(["x"] * t.num_rows)))
    return "TD_AB/test-00000-of-00001.parquet.18"


@of_folder("a column of another type", "columns.are_the_contracts")
def _(folder: Path) -> str:
    def wider(table: pa.Table) -> pa.Table:
        at = table.column_names.index("gold_tool_index")
        return table.set_column(at, "gold_tool_index", table.column(at).cast(pa.int64()))

    _table(folder, "CD_NT", wider)
    return "CD_NT/test-00000-of-00001.parquet.9"


@of_folder("a folder that is not a config", "configs.known")
def _(folder: Path) -> str:
    shutil.copytree(folder / "clean", folder / "CD_AB_draft")
    return "CD_AB_draft"


@of_folder("a type that a blind rule solves, and no reason for it", "shortcuts.named")
def _(folder: Path) -> str:
    def empty(rows: list[Row]) -> None:
        for row in rows:
            for tool in row["tools"]:
                if tool["name"] == gold_tool(row)["name"] and tool is not gold_tool(row):
                    tool["description"], tool["parameters"] = "", {"type": "object", "properties": {}}

    builds.edit(folder, "same_name_E", empty)
    return "same_name_E"


@of_folder("a second split", "configs.splits")
def _(folder: Path) -> str:
    shutil.copy(_only(folder, "same_name_A"), folder / "same_name_A" / "train-00000-of-00001.parquet")
    return "same_name_A"


@of_folder("a file cut short", "files.readable")
def _(folder: Path) -> str:
    path = _only(folder, "transient_timeout")
    path.write_bytes(path.read_bytes()[:-200])
    return "transient_timeout/test"


@of_folder("a row less", "configs.rows_as_pinned")
def _(folder: Path) -> str:
    _table(folder, "TD_NT", lambda t: t.slice(1))
    return "TD_NT"


@of_folder("a count that the report has otherwise", "configs.rows_as_reported")
def _(folder: Path) -> str:
    _report(folder, lambda r: r["rows"]["TD"].update(bfcl_v3=1))
    return "TD"


@of_folder("a skip without a reason", "configs.accounted")
def _(folder: Path) -> str:
    def forget(report: dict[str, Any]) -> None:
        next(s for s in report["skipped"] if s["type_code"] == "same_name_B")["reason"] = ""

    _report(folder, forget)
    return "same_name_B"


@of_folder("a type without evidence", "evidence.every_type")
def _(folder: Path) -> str:
    _table(
        folder,
        "evidence",
        lambda t: t.filter(pa.array([c != "redundant" for c in t["type_code"].to_pylist()])),
    )
    return "redundant"
