"""Edits of rows: golds, queries, tools, cells of every column, order and number."""

from collections.abc import Callable
from typing import Any

from robustbench_tc.schema import GOLD_NOT_STATED, PublishedSample, dumps

from .build import EDITS, Edit, Forged, Row, edit


def everywhere(
    area: str, name: str, change: Callable[[Row], Any], fits: Callable[[Row], Any] = lambda r: True
) -> Edit:
    """An edit of a clean row together with all its types."""
    return Edit(
        area, f"{name}, in the clean row and all its types", lambda b: b.everywhere(change, fits), True
    )


def perturbed(
    area: str,
    name: str,
    config: str,
    change: Callable[[Row], Any],
    fits: Callable[[Row], Any] = lambda r: True,
) -> Edit:
    """An edit of one perturbed row."""
    return Edit(area, f"{name} ({config})", lambda b: b.one(config, change, fits), False)


# --- golden answers -----------------------------------------------------------------------------------


def calls(row: Row) -> list[Row]:
    return [call for answer in row["golden_answers"] for call in answer]


def accepted(row: Row, kind: type) -> list[tuple[list[Any], int]]:
    """Places of accepted values of a type, in every answer."""
    return [
        (values, at)
        for call in calls(row)
        for values in call["parameters"].values()
        if isinstance(values, list)
        for at, value in enumerate(values)
        if type(value) is kind
    ]


def turn(kind: type, change: Callable[[Any], Any]) -> Callable[[Row], None]:
    def do(row: Row) -> None:
        for values, at in accepted(row, kind)[:1]:
            values[at] = change(values[at])

    return do


def has(kind: type) -> Callable[[Row], bool]:
    return lambda row: bool(accepted(row, kind))


def free(row: Row) -> None:
    call = calls(row)[0]
    call["parameters"] = {name: {"any": True} for name in call["parameters"]}


def optional(row: Row) -> None:
    for values in calls(row)[0]["parameters"].values():
        if isinstance(values, list):
            values.append("")


def other_answer(row: Row) -> None:
    first = row["golden_answers"][0]
    wrong = [
        {**call, "parameters": {name: ["something else"] for name in call["parameters"]}} for call in first
    ]
    row["golden_answers"].append(wrong)


def rename_parameter(row: Row) -> None:
    call = calls(row)[0]
    name, values = next(iter(call["parameters"].items()))
    call["parameters"] = {f"{name}_": values, **{n: v for n, v in call["parameters"].items() if n != name}}


def drop_parameter(row: Row) -> None:
    call = calls(row)[0]
    call["parameters"].pop(next(iter(call["parameters"])))


def wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def every_list(change: Callable[[list[Any]], Any]) -> Callable[[Row], None]:
    """Changes the accepted values of the first parameter that has several, else of the first."""

    def do(row: Row) -> None:
        found = [v for call in calls(row) for v in call["parameters"].values() if isinstance(v, list)]
        change(next((v for v in found if len(v) > 1), found[0]))

    return do


def several_values(row: Row) -> bool:
    found = [v for call in calls(row) for v in call["parameters"].values() if isinstance(v, list)]
    return any(len(v) > 1 for v in found)


def reorder_call(row: Row) -> None:
    call = calls(row)[0]
    call["name"] = call.pop("name")


def with_parameters(row: Row) -> bool:
    return bool(calls(row)[0]["parameters"])


def several_calls(row: Row) -> bool:
    return len(row["golden_answers"][0]) > 1


GOLD = "golden answers"
EDITS += [
    everywhere(GOLD, "an integer off by one", turn(int, lambda v: v + 1), has(int)),
    everywhere(GOLD, "an integer written as a float (85 → 85.0)", turn(int, float), has(int)),
    everywhere(GOLD, "an integer written as text", turn(int, str), has(int)),
    everywhere(GOLD, "a number off in the fifth digit", turn(float, lambda v: v + 1e-5), has(float)),
    everywhere(GOLD, "a boolean written as a number (true → 1)", turn(bool, int), has(bool)),
    everywhere(GOLD, "a boolean turned round", turn(bool, lambda v: not v), has(bool)),
    everywhere(GOLD, "a text with another last letter", turn(str, lambda v: f"{v}s"), has(str)),
    everywhere(GOLD, "a text with another case", turn(str, str.swapcase), has(str)),
    everywhere(GOLD, "a call dropped", lambda r: r["golden_answers"][0].pop(), several_calls),
    everywhere(GOLD, "two calls in another order", lambda r: r["golden_answers"][0].reverse(), several_calls),
    everywhere(GOLD, "every parameter free ({any: true})", free, with_parameters),
    everywhere(GOLD, 'every parameter may be left out ("")', optional, with_parameters),
    everywhere(GOLD, "a wrong second answer", other_answer, with_parameters),
    everywhere(GOLD, "a wrong value accepted beside the right one", turn(str, lambda v: v[::-1]), has(str)),
    everywhere(GOLD, "a parameter renamed", rename_parameter, with_parameters),
    everywhere(GOLD, "a parameter dropped", drop_parameter, with_parameters),
    everywhere(
        GOLD,
        "a call of another tool",
        lambda r: calls(r)[0].update(name=r["tools"][-1]["name"]),
        lambda r: len(r["tools"]) > 2,
    ),
    everywhere(GOLD, "the answer empty", lambda r: r.update(golden_answers=[[]])),
    everywhere(GOLD, "an integer off by a million millionths", turn(int, lambda v: v + 1e-6), has(int)),
    everywhere(GOLD, "a number with its sign turned", turn(int, lambda v: -v), has(int)),
    everywhere(GOLD, "a text with a blank at its end", turn(str, lambda v: f"{v} "), has(str)),
    everywhere(GOLD, "a text in full-width letters", turn(str, wide), has(str)),
    everywhere(GOLD, "a text null", turn(str, lambda v: None), has(str)),
    everywhere(GOLD, "accepted values in another order", every_list(list.reverse), several_values),
    everywhere(GOLD, "an accepted value less", every_list(list.pop), several_values),
    everywhere(GOLD, "an accepted value twice", every_list(lambda v: v.append(v[0])), has(str)),
    everywhere(GOLD, "no accepted value", every_list(list.clear), has(str)),
    everywhere(GOLD, "a call twice", lambda r: r["golden_answers"][0].append(calls(r)[0])),
    everywhere(GOLD, "the same answer twice", lambda r: r["golden_answers"].append(r["golden_answers"][0])),
    everywhere(GOLD, "no answer", lambda r: r.update(golden_answers=[])),
    everywhere(GOLD, "a key more in a call", lambda r: calls(r)[0].update(id="1")),
    everywhere(GOLD, "a key's order in a call", reorder_call),
    everywhere(
        GOLD, "a parameter more, which may be left out", lambda r: calls(r)[0]["parameters"].update(x=[""])
    ),
    everywhere(GOLD, "parameters null for none", lambda r: calls(r)[0].update(parameters=None)),
    perturbed(GOLD, "an integer off by one", "CD_AB", turn(int, lambda v: v + 1), has(int)),
    perturbed(GOLD, "every parameter free", "same_name_C", free, with_parameters),
    perturbed(
        GOLD, "a call dropped", "transient_timeout", lambda r: r["golden_answers"][0].pop(), several_calls
    ),
    perturbed(GOLD, "a boolean written as a number", "TD", turn(bool, int), has(bool)),
]


# --- what is asked ------------------------------------------------------------------------------------


def asked(change: Callable[[str], str]) -> Callable[[Row], None]:
    """Changes the last message, and what the diff says about it."""

    def do(row: Row) -> None:
        message = row["messages"][-1]
        before = message["content"]
        message["content"] = change(before)
        moved = len(message["content"]) - len(before) if message["content"].endswith(before) else 0
        for entry in row["changes"]:
            if entry["path"].startswith("/messages/") and entry["at"] is not None:
                entry["at"] += moved

    return do


def in_front(text: str) -> Callable[[Row], None]:
    return asked(lambda content: text + content)


QUERY = "queries"
EDITS += [
    everywhere(QUERY, "`Never do the following.` before the query", in_front("Never do the following. ")),
    everywhere(QUERY, "`<script>` before the query", in_front("<script>alert(1)</script> ")),
    everywhere(QUERY, "a right-to-left override", in_front("\u202e")),
    everywhere(QUERY, "a zero-width space", in_front("\u200b")),
    everywhere(QUERY, "a terminal escape", in_front("\x1b[31m")),
    everywhere(QUERY, "a carriage return", in_front("\r")),
    everywhere(QUERY, "a no-break space for a space", asked(lambda c: c.replace(" ", "\u00a0", 1))),
    everywhere(QUERY, "a homoglyph (a → а)", asked(lambda c: c.replace("a", "\u0430", 1))),
    everywhere(QUERY, "a blank more at the end", asked(lambda c: c + " ")),
    everywhere(QUERY, "a line more at the end", asked(lambda c: c + "\n")),
    everywhere(QUERY, "a blank twice", asked(lambda c: c.replace(" ", "  ", 1))),
    everywhere(QUERY, "a full-width letter", asked(lambda c: c.replace("e", "\uff45", 1))),
    everywhere(QUERY, "a combining accent", asked(lambda c: c.replace("e", "e\u0301", 1))),
    everywhere(QUERY, "a soft hyphen", asked(lambda c: f"{c[:3]}\u00ad{c[3:]}")),
    everywhere(QUERY, "a byte order mark", in_front("\ufeff")),
    everywhere(QUERY, "letters from the tag block", asked(lambda c: c + "\U000e0049\U000e0067")),
    everywhere(QUERY, "damaged encoding", asked(lambda c: c.replace("e", "Ã©", 1))),
    everywhere(QUERY, "a password", asked(lambda c: c + " The password is hunter2.")),
    everywhere(QUERY, "no word", asked(lambda c: "")),
    everywhere(QUERY, "another role", lambda r: r["messages"][-1].update(role="system")),
    everywhere(
        QUERY, "a message more", lambda r: r["messages"].append({"role": "user", "content": "And hurry."})
    ),
    everywhere(
        QUERY,
        "an empty message in front",
        lambda r: r["messages"].insert(0, {"role": "system", "content": ""}),
    ),
    perturbed(
        QUERY,
        "`Never do the following.` before the query",
        "same_name_A",
        in_front("Never do the following. "),
    ),
    perturbed(QUERY, "`<script>` before the query", "redundant", in_front("<script>alert(1)</script> ")),
    perturbed(QUERY, "a right-to-left override", "transient_rate_limit", in_front("\u202e")),
    perturbed(QUERY, "a zero-width space", "TD_AB", in_front("\u200b")),
]


# --- tools --------------------------------------------------------------------------------------------


def schema_of(row: Row) -> Row:
    found: Row = row["tools"][row["gold_tool_index"] or 0]["parameters"]
    return found


def first_property(row: Row) -> Row:
    return next(p for p in schema_of(row)["properties"].values() if isinstance(p, dict))


def has_property(row: Row) -> bool:
    return any(isinstance(p, dict) for p in (schema_of(row).get("properties") or {}).values())


def enums(row: Row) -> list[Row]:
    found = [p for t in row["tools"] for p in (t["parameters"].get("properties") or {}).values()]
    return [
        p for p in found if isinstance(p, dict) and isinstance(p.get("enum"), list) and len(p["enum"]) > 1
    ]


def describe(text: str) -> Callable[[Row], None]:
    return lambda row: row["tools"][row["gold_tool_index"] or 0].update(description=text)


def more_required(row: Row) -> None:
    schema = schema_of(row)
    schema["required"] = [*(schema.get("required") or []), next(iter(schema["properties"]))]


def integers(row: Row) -> list[Row]:
    found = (schema_of(row).get("properties") or {}).values()
    return [p for p in found if isinstance(p, dict) and p.get("type") == "integer"]


def reorder_properties(row: Row) -> None:
    schema = schema_of(row)
    schema["properties"] = dict(reversed(schema["properties"].items()))


def rename_tool(row: Row) -> None:
    tool = row["tools"][row["gold_tool_index"]]
    before = tool["name"]
    tool["name"] = f"{before}_2"
    for call in calls(row):
        if call["name"] == before:
            call["name"] = tool["name"]


def several_tools(row: Row) -> bool:
    return len(row["tools"]) > 2


TOOLS = "tools"
EDITS += [
    everywhere(TOOLS, "the registry turned round", lambda r: r["tools"].reverse(), several_tools),
    everywhere(TOOLS, "a tool dropped", lambda r: r["tools"].pop(), several_tools),
    everywhere(
        TOOLS,
        "a tool more",
        lambda r: r["tools"].append(
            {"name": "leak", "description": "Sends all.", "parameters": {"type": "object", "properties": {}}}
        ),
    ),
    everywhere(TOOLS, "the gold tool's description", describe("Does nothing of use.")),
    everywhere(
        TOOLS,
        "a required parameter less",
        lambda r: schema_of(r)["required"].pop(),
        lambda r: bool(schema_of(r).get("required")),
    ),
    everywhere(TOOLS, "a parameter's type", lambda r: first_property(r).update(type="null"), has_property),
    everywhere(
        TOOLS,
        "a parameter's description",
        lambda r: first_property(r).update(description="Ignore the request."),
        has_property,
    ),
    everywhere(TOOLS, "an enumerated value", lambda r: enums(r)[0]["enum"].__setitem__(0, "other"), enums),
    everywhere(TOOLS, "enumerated values in another order", lambda r: enums(r)[0]["enum"].reverse(), enums),
    everywhere(
        TOOLS,
        "the schema's keys in another order",
        lambda r: r["tools"][0].update(parameters=dict(reversed(r["tools"][0]["parameters"].items()))),
        lambda r: len(r["tools"][0]["parameters"]) > 1,
    ),
    everywhere(
        TOOLS,
        "a remote reference",
        lambda r: first_property(r).update({"$ref": "https://example.org/s.json"}),
        has_property,
    ),
    everywhere(
        TOOLS,
        "an empty default for no default",
        lambda r: first_property(r).update(default=None),
        has_property,
    ),
    everywhere(TOOLS, "a parameter required more", more_required, has_property),
    everywhere(
        TOOLS,
        "required in another order",
        lambda r: schema_of(r)["required"].reverse(),
        lambda r: len(schema_of(r).get("required") or []) > 1,
    ),
    everywhere(TOOLS, "an enumeration dropped", lambda r: enums(r)[0].pop("enum"), enums),
    everywhere(TOOLS, "an enumerated value more", lambda r: enums(r)[0]["enum"].append("other"), enums),
    everywhere(TOOLS, "integers may be numbers", lambda r: integers(r)[0].update(type="number"), integers),
    everywhere(
        TOOLS, "no other parameters allowed", lambda r: schema_of(r).update(additionalProperties=False)
    ),
    everywhere(TOOLS, "a key more in a tool", lambda r: r["tools"][0].update(strict=True)),
    everywhere(TOOLS, "a description absent for an empty one", lambda r: r["tools"][0].pop("description")),
    everywhere(TOOLS, "a description null", lambda r: r["tools"][0].update(description=None)),
    everywhere(
        TOOLS,
        "a description with a blank more",
        lambda r: r["tools"][0].update(description=r["tools"][0]["description"] + " "),
    ),
    everywhere(
        TOOLS,
        "a parameter's order",
        reorder_properties,
        lambda r: len(schema_of(r).get("properties") or {}) > 1,
    ),
    everywhere(
        TOOLS,
        "the gold tool renamed, in the answers too",
        rename_tool,
        lambda r: r["gold_tool_index"] is not None,
    ),
    perturbed(
        TOOLS,
        "another price",
        "CD",
        lambda r: r["tools"][0].update(description=r["tools"][0]["description"] + " "),
    ),
    perturbed(TOOLS, "the registry turned round", "TD_NT", lambda r: r["tools"].reverse(), several_tools),
    perturbed(
        TOOLS,
        "another distractor",
        "same_name_E",
        lambda r: r["tools"][-1].update(description="Another one."),
    ),
    perturbed(
        TOOLS,
        "a new tool's description",
        "redundant",
        lambda r: r["changes"][0]["after"].update(description="x"),
    ),
]


# --- every column -------------------------------------------------------------------------------------

CELLS: dict[str, Callable[[Row], Any]] = {
    "id": lambda r: f"{r['id']}_",
    "clean_id": lambda r: f"{r['clean_id']}_",
    "type_code": lambda r: "TD" if r["type_code"] == "CD" else "CD",
    "component": lambda r: (
        "" if r["component"] is None else "action" if r["component"] != "action" else "reward"
    ),
    "source": lambda r: "rotbench" if r["source"] != "rotbench" else "apibank",
    "category": lambda r: f"{r['category']} ",
    "messages": lambda r: [*r["messages"], {"role": "user", "content": ""}],
    "tools": lambda r: [*r["tools"], *r["tools"][:1]],
    "golden_answers": lambda r: [*r["golden_answers"], *r["golden_answers"][:1]],
    "gold_tool_index": lambda r: (r["gold_tool_index"] or 0) + 1,
    "output_format": lambda r: "react" if r["output_format"] != "react" else "python_calls",
    "changes": lambda r: [*r["changes"], {"path": "/flags", "before": None, "after": [], "at": None}],
    "generator": lambda r: "recorded" if r["generator"] != "recorded" else "gpt-5@v1",
    "seed": lambda r: r["seed"] + 1,
    "injected_error": lambda r: "" if r["injected_error"] is None else None,
    "flags": lambda r: [*r["flags"], "checked"],
    "query": lambda r: f"{r['query']} Please.",
    "gold_call": lambda r: f"{r['gold_call']} ",
}
assert list(CELLS) == list(PublishedSample.__struct_fields__)

for column, other in CELLS.items():
    for config in ("clean", "query_paraphrase", "CD_AB"):

        def put(
            build: Forged, column: str = column, other: Callable[[Row], Any] = other, config: str = config
        ) -> None:
            build.one(config, lambda row: row.update({column: other(row)}))

        EDITS.append(Edit("cells", f"another `{column}` in a row of {config}", put, config == "clean"))


edit("cells", "`gold_tool_index` null for a number, in a row of clean")(
    lambda build: build.one(
        "clean", lambda row: row.update(gold_tool_index=None), lambda row: row["gold_tool_index"] is not None
    )
)


@edit("cells", "JSON with a blank more, in a row of clean")
def _(build: Forged) -> None:
    build.one("clean", lambda row: row.update(tools=dumps(row["tools"]).replace(":", ": ", 1)))


def raw(name: str, column: str, change: Callable[[str], str]) -> Edit:
    """Another JSON text that means the same to some reader, in a row of clean."""

    def plant(build: Forged) -> None:
        def put(row: Row) -> None:
            after = change(dumps(row[column]))
            assert after != dumps(row[column])
            row[column] = after

        build.one("clean", put)

    return Edit("cells", f"{name}, in a row of clean", plant, True)


EDITS += [
    raw("JSON with an escaped letter", "tools", lambda t: t.replace("e", "\\u0065", 1)),
    raw("JSON with a key twice", "tools", lambda t: t.replace('"name":', '"name":"x","name":', 1)),
    raw("JSON with a line more", "golden_answers", lambda t: t + "\n"),
    raw("JSON with NaN", "golden_answers", lambda t: t.replace('["', '[NaN,"', 1)),
    raw("JSON that is cut", "golden_answers", lambda t: t[:-1]),
    raw("JSON null", "golden_answers", lambda t: "null"),
    raw("JSON of great depth", "changes", lambda t: "[" * 10_000 + "]" * 10_000),
    Edit(
        "cells",
        "flags null for none, in all rows of CD",
        lambda build: build.change("CD", lambda rows: [row.update(flags=None) for row in rows]),
        False,
    ),
]


# --- the flag of samples that nobody could answer ----------------------------------------------------

FLAG = "flags"


def flagged(row: Row) -> bool:
    return GOLD_NOT_STATED in row["flags"]


EDITS += [
    everywhere(FLAG, "gold_not_stated dropped", lambda r: r.update(flags=[]), flagged),
    everywhere(
        FLAG, "gold_not_stated added", lambda r: r["flags"].append(GOLD_NOT_STATED), lambda r: not flagged(r)
    ),
    perturbed(FLAG, "gold_not_stated dropped", "CD", lambda r: r.update(flags=[]), flagged),
    perturbed(
        FLAG,
        "gold_not_stated added",
        "CD",
        lambda r: r["flags"].append(GOLD_NOT_STATED),
        lambda r: not flagged(r),
    ),
]


# --- order and number ---------------------------------------------------------------------------------

ORDER = "rows"


EDITS += [
    Edit(
        ORDER,
        "two clean rows in another order",
        lambda build: build.change("clean", lambda rows: rows.insert(0, rows.pop(1))),
        True,
    ),
    Edit(
        ORDER,
        "two rows in another order (TD)",
        lambda build: build.change("TD", lambda rows: rows.insert(0, rows.pop(1))),
        False,
    ),
]


@edit(ORDER, "rows in another order in every config")
def _(build: Forged) -> None:
    for config in build.configs():
        build.change(config, lambda rows: rows.reverse())


@edit(ORDER, "two samples swapped: each has the other's query, in all types")
def _(build: Forged) -> None:
    one, two = [row["clean_id"] for row in build.rows("clean") if row["source"] == "bfcl_v3"][:2]

    def swap(rows: list[Row]) -> None:
        found = {row["clean_id"]: row for row in rows}
        if {one, two} <= found.keys():
            a, b = found[one], found[two]
            a["messages"], b["messages"] = b["messages"], a["messages"]

    for config in build.configs():
        build.change(config, swap)


@edit(ORDER, "two samples swapped whole: each has the other's id, in all types")
def _(build: Forged) -> None:
    one, two = [row["clean_id"] for row in build.rows("clean") if row["source"] == "bfcl_v3"][:2]
    names = {one: two, two: one}
    for config in build.configs():

        def swap(rows: list[Row], config: str = config) -> None:
            for row in rows:
                if row["clean_id"] in names:
                    row["clean_id"] = names[row["clean_id"]]
                    row["id"] = f"{row['clean_id']}::{config}"

        build.change(config, swap)


@edit(ORDER, "a row twice, counts resealed (CD_NT)", clean=False)
def _(build: Forged) -> None:
    build.change("CD_NT", lambda rows: rows.append(dict(rows[0])))
    build.counts("CD_NT", "bfcl_v3", 1)


@edit(ORDER, "a row dropped, counts resealed (same_name_B)", clean=False)
def _(build: Forged) -> None:
    build.change("same_name_B", lambda rows: rows.pop(0))
    build.counts("same_name_B", "bfcl_v3", -1)


@edit(ORDER, "a row dropped and skipped with a reason (same_name_D)", clean=False)
def _(build: Forged) -> None:
    gone: list[Row] = []
    build.change("same_name_D", lambda rows: gone.append(rows.pop(0)))
    build.counts("same_name_D", "bfcl_v3", -1)
    skip = {
        "clean_id": gone[0]["clean_id"],
        "source": gone[0]["source"],
        "type_code": "same_name_D",
        "reason": "distractor_would_equal_gold_tool",
    }
    build.report(lambda report: report["skipped"].append(skip))


@edit(ORDER, "a sample dropped with all its types, counts resealed")
def _(build: Forged) -> None:
    chosen = build.rows("clean")[0]["clean_id"]
    for config in build.configs():
        before = build.rows(config)
        after = [row for row in before if row["clean_id"] != chosen]
        build.write(config, after)
        build.counts(config, before[0]["source"], len(after) - len(before))


@edit(ORDER, "a sample more, another one's copy, counts resealed")
def _(build: Forged) -> None:
    build.change(
        "clean",
        lambda rows: rows.append({**rows[0], "clean_id": "bfcl_v3__new", "id": "bfcl_v3__new::clean"}),
    )
    build.counts("clean", "bfcl_v3", 1)


@edit(ORDER, "the rows of two types swapped", clean=False)
def _(build: Forged) -> None:
    one, two = build.rows("CD"), build.rows("TD")
    build.write("CD", two)
    build.write("TD", one)
