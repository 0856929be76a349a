"""One row at a time: decoded once, held against its clean row by every invariant."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.builders import answerable
from robustbench_tc.builders.perturb import REGISTRY
from robustbench_tc.builders.steps import steps
from robustbench_tc.eval.validate import self_check
from robustbench_tc.schema import GOLD_NOT_STATED, Sample, Tool, dumps, loads, tool_hash

from .checks import (
    HOLDS,
    DoesNotApply,
    Rule,
    Verdict,
    by_itself,
    check,
    columns,
    given,
    rules,
    verdict,
    verdicts_of,
)
from .hygiene.rows import HYGIENE, RowTexts
from .invariants import INVARIANTS
from .invariants.allowed import other_language, rewritten_texts
from .invariants.base import is_for, verdict_on

PLAIN = ("id", "clean_id", "config", "type_code", "source", "digest")
"""Columns that expectations look at, or that other audits need."""

FLAG, CLASSIFIED = "flag_says_what_the_golds_say", "golds_are_classified"
"""Checks that look at where golden values can be taken from."""

given(
    "benchmark_rows",
    "rows",
    {
        "decodes": "A row that is not a row of the contract cannot be read by anybody.",
        "clean_credentials_reviewed": "Credential-like strings of clean rows are upstream's, each "
        "reviewed once.",
        "no_new_credential": "Text that a perturbation brought in holds no credential, no number of a "
        "person.",
        "gold_passes_its_scorer": "A golden answer that its own scorer refuses makes every model wrong.",
        CLASSIFIED: "Of every golden value it is known from where a reader could take it.",
        FLAG: "Rows of samples that nobody could answer carry the flag, and no others.",
        "unit_finds_nothing": "The type's own unit, which made the row, finds nothing wrong with it.",
    },
)
given("benchmark_rows", "hygiene", HYGIENE)


class Read(NamedTuple):
    """How a row was read."""

    config: str
    clean: Sample | None
    """The row itself, if it is a clean one; None where there is none."""
    build_seed: object


@check("benchmark_rows", for_=by_itself)
def type_is_audited(row: Sample, read: Read) -> None:
    """A type without facts is held against no rule of its own: its rows would pass unseen."""
    known = row.type_code == taxonomy.CLEAN or taxonomy.known(row.type_code)
    assert known, "the audit knows no type of that code"


@check("benchmark_rows", for_=by_itself)
def anchored(row: Sample, read: Read) -> None:
    """Every row has its clean row in this build, so a drop is measured against the same sample."""
    if row.type_code == taxonomy.CLEAN:
        raise DoesNotApply
    assert read.clean is not None, "no clean row has its clean_id"


@check("benchmark_rows", for_=by_itself)
def id_is_made_of_its_parts(row: Sample, read: Read) -> None:
    """The id is clean_id::type_code, so that rows, predictions and reports find each other."""
    named = f"id {row.id}, clean_id {row.clean_id}, type_code {row.type_code}"
    assert row.id == f"{row.clean_id}::{row.type_code}", named


@check("benchmark_rows", for_=by_itself)
def config_holds_its_type(row: Sample, read: Read) -> None:
    """`load_dataset(…, "CD_AB")` gives rows of CD_AB and nothing else."""
    assert read.config == row.type_code, f"config {read.config}, type_code {row.type_code}"


@check("benchmark_rows", for_=by_itself)
def component_is_its_types(row: Sample, read: Read) -> None:
    """The channel of a row is the taxonomy's: component means are made of it."""
    wanted = taxonomy.get(row.type_code).component if taxonomy.known(row.type_code) else None
    assert row.component == wanted, f"type_code {row.type_code}, component {row.component}"


@check("benchmark_rows", for_=by_itself)
def source_is_the_ids_prefix(row: Sample, read: Read) -> None:
    """The source decides the scorer and stands in the id: both say the same."""
    same = row.clean_id.partition("__")[0] == row.source
    assert same, f"clean_id {row.clean_id}, source {row.source}"


@check("benchmark_rows", for_=by_itself)
def seed_is_the_builds(row: Sample, read: Read) -> None:
    """A row can be made again from its seed; a clean row has none."""
    same = row.type_code == taxonomy.CLEAN or row.seed == read.build_seed
    assert same, f"type_code {row.type_code}, seed {row.seed}, build_seed {read.build_seed}"


BY_ITSELF = [rule for rule in rules("benchmark_rows") if rule.for_ is by_itself]
"""Checks that a row without a clean row is held against too."""

JSON = ("tools", "golden_answers", "changes")
"""Columns that hold JSON text."""


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

    rows: dict[str, list[Any]] = msgspec.field(default_factory=lambda: columns([], PLAIN, "benchmark_rows"))
    """Plain columns, and one column of verdicts per check: null where it does not apply."""
    texts: dict[str, list[Any]] = msgspec.field(default_factory=lambda: columns([], TEXT_COLUMNS))
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

    def __init__(self, *, own: bool = False, seed: object = None) -> None:
        self._seed = seed
        self._unstated: dict[str, tuple[str, str | None]] = {}
        """Clean id → what is wrong with the classes of its golden values, and why nobody could answer."""
        self._texts = RowTexts(own=own)
        self._clean: dict[str, Sample] = {}
        self._asked: dict[str, bytes] = {}
        """Clean id → digest of what its scorer judges against."""
        self._scored: dict[bytes, Verdict] = {}
        self._of_type: dict[str, list[Rule]] = {}
        """Type code → the checks that its rows are held against beside their clean row."""

    def clean_rows(self) -> Iterator[Sample]:
        """The clean rows, in order; of two with the same clean id the first."""
        return iter(self._clean.values())

    def check(self, config: str, first: int, raws: list[dict[str, Any]]) -> Found:
        """The verdicts on consecutive rows of a config, of which the first has the number `first`."""
        found = Found()
        read = [self._row(config, number, raw, found) for number, raw in enumerate(raws, first)]
        found.rows = columns(read, PLAIN, "benchmark_rows")
        return found

    def _row(self, config: str, number: int, raw: dict[str, Any], found: Found) -> dict[str, Any]:
        """One row's values by column; columns left out do not apply."""
        values: dict[str, Any] = {"id": raw.get("id") or f"{config}[{number}]", "config": config}
        try:
            row = msgspec.convert(raw | {name: loads(raw[name]) for name in JSON}, Sample)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            return values | {"decodes": f"it does not decode: {str(error)[:160]}"}
        registry_and_gold = _digest(raw["tools"], raw["golden_answers"])
        if row.type_code == taxonomy.CLEAN:
            if config == taxonomy.CLEAN and row.clean_id not in self._clean:
                self._clean[row.clean_id] = row
                self._asked[row.clean_id] = registry_and_gold
            clean: Sample | None = row
        else:
            clean = self._clean.get(row.clean_id)
        anchor = None if row is clean else clean
        values |= {
            "clean_id": row.clean_id,
            "type_code": row.type_code,
            "source": row.source,
            "digest": _digest(dumps(row.messages)) + registry_and_gold,
            "decodes": HOLDS,
            **{rule.name: rule.verdict(row, Read(config, clean, self._seed)) for rule in BY_ITSELF},
            **verdicts_of(HYGIENE, self._texts.verdicts, raw, row, anchor),
        }
        if clean is None:
            return values
        if row.type_code not in self._of_type:
            self._of_type[row.type_code] = [one for one in INVARIANTS.values() if is_for(one, row.type_code)]
        for rule in self._of_type[row.type_code]:
            values[rule.name] = verdict_on(rule, row, clean)
        values["gold_passes_its_scorer"] = self._scores(row, anchor, registry_and_gold)
        if row.source != sources.OWN:  # what may stand in an own argument is the case's to say
            values |= verdicts_of((FLAG, CLASSIFIED), self._answerable, row, clean)
        if anchor is not None:
            values["unit_finds_nothing"] = verdict(_unit, row, anchor)
            _collect_steps(row, anchor, found)
        return values

    def _answerable(self, row: Sample, clean: Sample) -> dict[str, Verdict]:
        """Whether every golden value of the clean row has a class, and the row's flag fits its own."""
        if clean.clean_id not in self._unstated:
            classes, missing = answerable.classes(clean, clean)
            values = sum(len(call.parameters) for answer in clean.golden_answers for call in answer)
            known = sum(1 for one in classes if one)
            wrong = HOLDS if known == values else f"{known} of {values} golden values have a class"
            self._unstated[clean.clean_id] = wrong, missing
        wrong, missing = self._unstated[clean.clean_id]
        if row.golden_answers != clean.golden_answers:
            missing = answerable.classes(row, clean)[1]
        flagged, says = GOLD_NOT_STATED in row.flags, HOLDS
        if flagged and missing is None:
            says = (
                f"flag {GOLD_NOT_STATED!r}, though its golden answer can be taken from what is said or known"
            )
        if missing is not None and not flagged:
            says = f"no flag {GOLD_NOT_STATED!r}: {missing}"
        return {FLAG: says, CLASSIFIED: wrong if row is clean else None}

    def _scores(self, row: Sample, clean: Sample | None, registry_and_gold: bytes) -> Verdict:
        """The scorer's verdict on the golden answer, once per distinct (tools, gold, clean tools)."""
        key = b"" if clean is None else self._asked[clean.clean_id]
        key += registry_and_gold + f"{row.source}/{row.category}".encode()
        if key not in self._scored:
            self._scored[key] = verdict(_scorer, row, clean)
        return self._scored[key]


def _scorer(row: Sample, clean: Sample | None) -> None:
    assert not (wrong := self_check(row, clean)), wrong


def _unit(row: Sample, clean: Sample) -> None:
    assert not (wrong := REGISTRY[row.type_code].problems(clean, row)), "; ".join(wrong[:3])


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
    if not taxonomy.known(row.type_code):
        return
    kind = taxonomy.get(row.type_code)
    judged = kind.judged_as is not None and row.generator != "rule"
    for path, tool, parameter, before, after in rewritten_texts(row) if judged else ():
        found.pairs.setdefault(Pair(row.type_code, before, after, tool, parameter), row.id)
        ratio = len(after) / len(before) if len(before) >= SHORT else None
        described = tool is not None and parameter is None
        translated = other_language(row.type_code)
        ratios = (None if translated else ratio, ratio if described else None, ratio if translated else None)
        entry = (f"{row.id} {path}", row.type_code, *ratios)
        for name, value in zip(TEXT_COLUMNS, entry, strict=True):
            found.texts[name].append(value)
    if kind.channel != "siblings":
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


def _digest(*parts: str) -> bytes:
    total = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.digest()
