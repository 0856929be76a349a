"""One row at a time: decoded once, held against its clean row by every invariant."""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.builders import answerable
from robustbench_tc.builders.perturb import REGISTRY
from robustbench_tc.builders.steps import steps
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import GOLD_NOT_STATED, Sample, Tool, dumps, loads, tool_hash

from .hygiene.rows import HYGIENE, RowTexts
from .invariants import INVARIANTS, Verdict
from .invariants.allowed import other_language, rewritten_texts
from .invariants.base import HOLDS
from .plain_columns import plain_columns

PLAIN = ("id clean_id config type_code component source gold_tool_index tools seed generator digest").split()

OF_THE_BUILDER = {
    "gold_passes_its_scorer": "A golden answer that its own scorer refuses makes every model wrong.",
    "golds_are_classified": "Of every golden value it is known from where a reader could take it.",
    "flag_says_what_the_golds_say": "Rows of samples that nobody could answer carry the flag, and no others.",
    "unit_finds_nothing": "The type's own unit, which made the row, finds nothing wrong with it.",
}

OF_THE_PASS = {
    "decodes": "A row that is not a row of the contract cannot be read by anybody.",
    "json_is_canonical": "JSON columns hold canonical text of the contract's fields: same rows, same bytes.",
    "plain_columns_agree": "Readers see `query` and `gold_call` first: they say what the JSON columns say.",
    "type_is_audited": "A type without facts is held against no rule of its own: its rows would pass unseen.",
    "anchored": "Every row has its clean row in this build, so a drop is measured against the same sample.",
    "clean_credentials_reviewed": "Credential-like strings of clean rows are upstream's, each reviewed once.",
    "no_new_credential": "Text that a perturbation brought in holds no credential, no number of a person.",
}

COLUMNS = (*PLAIN, *OF_THE_PASS, *OF_THE_BUILDER, *HYGIENE, *INVARIANTS)

TEXT_COLUMNS = ("id", "config", "length_ratio", "description_ratio", "translation_ratio")

SHORT = 40
"""Characters from which the length of a rewritten text is compared."""


class Pair(msgspec.Struct, frozen=True):
    """A clean text and its rewriting."""

    kind: str
    before: str
    after: str
    tool: str | None = None
    parameter: str | None = None


class NewTool(msgspec.Struct, frozen=True):
    """A query, and a tool that `redundant` put beside the tools that can answer it."""

    query: str
    name: str
    description: str
    parameters: str
    """JSON text."""
    clean_id: str = ""
    gold: str = ""
    """JSON text of the tool that does answer it: canaries are made of it."""
    registry: str = "[]"
    """JSON text of the tools that the row had before, in their order."""
    together: tuple[str, ...] = ()
    """JSON text of all new tools of the row, sorted: what was judged is the set."""

    @property
    def definition(self) -> str:
        """JSON text of the tool."""
        return dumps(Tool(self.name, self.description, loads(self.parameters)))

    @property
    def hash(self) -> str:
        """Of the sample and what the tool does: under which it was judged."""
        return tool_hash(self.clean_id, self.name, self.description)


class Found(msgspec.Struct):
    """What a stretch of rows amounts to."""

    rows: dict[str, list[Any]] = msgspec.field(default_factory=lambda: {name: [] for name in COLUMNS})
    """Plain columns, and one column of verdicts per invariant: null where it does not apply."""
    texts: dict[str, list[Any]] = msgspec.field(default_factory=lambda: {name: [] for name in TEXT_COLUMNS})
    """One entry per rewritten text."""
    pairs: dict[Pair, str] = {}
    """Distinct rewritten texts, with the first row that holds each."""
    new_tools: dict[NewTool, str] = {}
    """Distinct new tools of `redundant` rows with their queries."""

    def add(self, other: "Found") -> None:
        """Appends what the next stretch amounts to."""
        for mine, theirs in ((self.rows, other.rows), (self.texts, other.texts)):
            for name, column in mine.items():
                column += theirs[name]
        for pair, row in other.pairs.items():
            self.pairs.setdefault(pair, row)
        for tool, row in other.new_tools.items():
            self.new_tools.setdefault(tool, row)


class RowChecks:
    """Holds rows against the clean rows that it has seen."""

    def __init__(self, *, own: bool = False) -> None:
        self._unstated: dict[str, tuple[str, str | None]] = {}
        """Clean id → what is wrong with the classes of its golden values, and why nobody could answer."""
        self._texts = RowTexts(own=own)
        self._clean: dict[str, Sample] = {}
        self._asked: dict[str, bytes] = {}
        """Clean id → digest of what its scorer judges against."""
        self._scored: dict[bytes, str] = {}
        self._held: dict[str, list[tuple[str, Callable[[Sample, Sample], Verdict]]]] = {}
        """Type code → the invariants for its rows."""

    def clean_rows(self) -> Iterator[Sample]:
        """The clean rows, in order; of two with the same clean id the first."""
        return iter(self._clean.values())

    def check(self, config: str, first: int, raws: list[dict[str, Any]]) -> Found:
        """The verdicts on consecutive rows of a config, of which the first has the number `first`."""
        found = Found()
        columns = [(name, column.append) for name, column in found.rows.items()]
        for number, raw in enumerate(raws, first):
            get = self._row(config, number, raw, found).get
            for name, append in columns:
                append(get(name))
        return found

    def _row(self, config: str, number: int, raw: dict[str, Any], found: Found) -> dict[str, Any]:
        """One row's values by column; columns left out do not apply."""
        values: dict[str, Any] = {"id": raw.get("id") or f"{config}[{number}]", "config": config}
        try:
            row, canonical = _decode(raw)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            return values | {"decodes": f"it does not decode: {str(error)[:160]}"}
        registry_and_gold = _digest(raw["tools"], raw["golden_answers"])
        values |= {
            "clean_id": row.clean_id,
            "type_code": row.type_code,
            "component": row.component,
            "source": row.source,
            "gold_tool_index": row.gold_tool_index,
            "tools": len(row.tools),
            "seed": row.seed,
            "generator": row.generator,
            "digest": _digest(dumps(row.messages)) + registry_and_gold,
            "decodes": HOLDS,
            "json_is_canonical": HOLDS
            if canonical
            else "a JSON column is not canonical, or holds other fields",
        }
        values["plain_columns_agree"] = _verdict(lambda row, _: plain_columns(raw, row), row, row)
        audited = row.type_code == taxonomy.CLEAN or taxonomy.known(row.type_code)
        values["type_is_audited"] = HOLDS if audited else "the audit knows no type of that code"
        if row.type_code == taxonomy.CLEAN:
            if config == taxonomy.CLEAN and row.clean_id not in self._clean:
                self._clean[row.clean_id] = row
                self._asked[row.clean_id] = registry_and_gold
            clean: Sample | None = row
        else:
            clean = self._clean.get(row.clean_id)
            values["anchored"] = "no clean row has its clean_id" if clean is None else HOLDS
        values |= self._text_verdicts(raw, row, clean)
        if clean is None:
            return values
        for name, holds in self._invariants(row.type_code):
            values[name] = _verdict(holds, row, clean)
        anchor = None if row is clean else clean
        values["gold_passes_its_scorer"] = self._scores(row, anchor, registry_and_gold)
        values |= self._answerable(row, clean)
        if anchor is not None:
            values["unit_finds_nothing"] = _verdict(
                lambda row, clean: "; ".join(REGISTRY[row.type_code].problems(clean, row)[:3]), row, clean
            )
            _collect_steps(row, clean, found)
        return values

    def _text_verdicts(self, raw: dict[str, Any], row: Sample, clean: Sample | None) -> dict[str, Verdict]:
        """What the row's texts hold; a row whose texts cannot be looked at fails every check of them."""
        try:
            return self._texts.verdicts(raw, row, None if row is clean else clean)
        except Exception as error:
            return dict.fromkeys(HYGIENE, f"it could not be checked: {type(error).__name__}")

    def _invariants(self, code: str) -> list[tuple[str, Callable[[Sample, Sample], Verdict]]]:
        found = self._held.get(code)
        if found is None:
            found = [(name, one.verdict) for name, one in INVARIANTS.items() if one.of_type(code)]
            self._held[code] = found
        return found

    def _answerable(self, row: Sample, clean: Sample) -> dict[str, Verdict]:
        """Whether every golden value of the clean row has a class, and the row's flag fits its own."""
        if row.source == sources.OWN:
            return {}  # what may stand in an own argument is the case's to say
        try:
            if clean.clean_id not in self._unstated:
                classes, missing = answerable.classes(clean, clean)
                values = sum(len(call.parameters) for answer in clean.golden_answers for call in answer)
                known = sum(1 for one in classes if one)
                wrong = HOLDS if known == values else f"{known} of {values} golden values have a class"
                self._unstated[clean.clean_id] = wrong, missing
            wrong, missing = self._unstated[clean.clean_id]
            if row.golden_answers != clean.golden_answers:
                missing = answerable.classes(row, clean)[1]
        except Exception as error:
            said = f"it could not be checked: {type(error).__name__}"
            return {"golds_are_classified": said, "flag_says_what_the_golds_say": said}
        flagged, says = GOLD_NOT_STATED in row.flags, HOLDS
        if flagged and missing is None:
            says = (
                f"flag {GOLD_NOT_STATED!r}, though its golden answer can be taken from what is said or known"
            )
        if missing is not None and not flagged:
            says = f"no flag {GOLD_NOT_STATED!r}: {missing}"
        found: dict[str, Verdict] = {"flag_says_what_the_golds_say": says}
        return found | ({"golds_are_classified": wrong} if row is clean else {})

    def _scores(self, row: Sample, clean: Sample | None, registry_and_gold: bytes) -> str:
        """The scorer's verdict on the golden answer, once per distinct (tools, gold, clean tools)."""
        key = b"" if clean is None else self._asked[clean.clean_id]
        key += registry_and_gold + f"{row.source}/{row.category}".encode()
        known = self._scored.get(key)
        if known is None:
            known = _verdict(lambda row, _: self_check(row, clean) or HOLDS, row, row) or HOLDS
            self._scored[key] = known
        return known


def _collect_steps(row: Sample, clean: Sample, found: Found) -> None:
    """What a row, or each step of a mixed type's row, holds for the audits that look at texts and tools."""
    if not taxonomy.parts(row.type_code):
        return _collect(row, found)
    try:
        parts = steps(row, clean)
    except ValueError:
        return  # a check of its own says so
    for _, after in parts:
        _collect(msgspec.structs.replace(after, id=row.id), found)


def _collect(row: Sample, found: Found) -> None:
    """The row's rewritten texts and new tools, for the audits that look at those."""
    judged = taxonomy.known(row.type_code) and taxonomy.get(row.type_code).judged_as is not None
    for path, tool, parameter, before, after in rewritten_texts(row):
        if not judged or row.generator == "rule":
            break
        found.pairs.setdefault(Pair(row.type_code, before, after, tool, parameter), row.id)
        ratio = len(after) / len(before) if len(before) >= SHORT else None
        described = tool is not None and parameter is None
        translated = other_language(row.type_code)
        ratios = (None if translated else ratio, ratio if described else None, ratio if translated else None)
        entry = (f"{row.id} {path}", row.type_code, *ratios)
        for name, value in zip(TEXT_COLUMNS, entry, strict=True):
            found.texts[name].append(value)
    if not taxonomy.known(row.type_code) or taxonomy.get(row.type_code).channel != "siblings":
        return
    query = next((m.content for m in reversed(row.messages) if m.role == "user"), "")
    brought = [c.after for c in row.changes if c.before is None and isinstance(c.after, dict)]
    registry = dumps([tool for tool in map(msgspec.to_builtins, row.tools) if tool not in brought])
    together = tuple(sorted(map(dumps, brought)))
    at = row.gold_tool_index
    gold = dumps(row.tools[at]) if at is not None and 0 <= at < len(row.tools) else ""
    for new in brought:
        shown = str(new["name"]), str(new["description"]), dumps(new["parameters"])
        found.new_tools.setdefault(NewTool(query, *shown, row.clean_id, gold, registry, together), row.id)


def _decode(raw: dict[str, Any]) -> tuple[Sample, bool]:
    """The row, and whether its JSON columns are the canonical text of what was read."""
    plain = dict(raw)
    for name in ("tools", "golden_answers", "changes"):
        plain[name] = loads(raw[name])
    row = msgspec.convert(plain, Sample)
    canonical = all(dumps(getattr(row, name)) == raw[name] for name in ("tools", "golden_answers", "changes"))
    return row, canonical


def _verdict(holds: Callable[[Sample, Sample], Verdict], row: Sample, clean: Sample) -> Verdict:
    """The verdict; a row so odd that the question cannot be asked fails it."""
    try:
        return holds(row, clean)
    except Exception as error:
        return f"it could not be checked: {type(error).__name__}: {str(error)[:120]}"


def _digest(*parts: str) -> bytes:
    total = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.digest()
