"""The texts of a benchmark row against the rules, its language, and whether a text names the answer.

A clean row holds nothing that a rule finds, but for what was reviewed. A perturbed row may hold what its
clean row holds, and a text of upstream's that was reviewed (a donor's); what else it holds is a finding.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.builders.plain import other_script, own_words
from robustbench_tc.errors import need_extra
from robustbench_tc.eval.prompts.calls import earlier_calls
from robustbench_tc.own import schemas as own_schemas
from robustbench_tc.schema import Message, Sample, Tool, dumps, loads

from ..checks import Verdict
from ..invariants.allowed import added_tools, rewritten_texts
from ..invariants.base import of_channels
from ..invariants.conversation import gold_values
from . import lengths, schemas
from .characters import scripts
from .texts import (
    CREDENTIAL,
    RULES,
    Find,
    Flagged,
    Known,
    Leaf,
    Scope,
    Texts,
    finds as finds_in,
    finds_by_rule,
    in_short,
    known,
    leaves,
)

OF_A_ROW = {
    "length": "A row beyond all bounds fits no context, and hides what is in it.",
    "language": "A rewritten text keeps its language and script, or has its type's: another one is another "
    "perturbation.",
    "answer_leaks": "A text that names the gold tool gives the answer away.",
    "tools_are_schemas": "A tool's parameters are a JSON Schema without remote or circular references: "
    "what validates or serves a call must neither fetch nor loop.",
}
"""Checks that look at a row, beside the rules that look at a text."""

HYGIENE = {**{name: rule.protects for name, rule in RULES.items()}, **OF_A_ROW}
"""Every check `hygiene.NAME` with its sentence."""

DIALOGUE_TAGS = re.compile(r"</?(?:user|response|tool_call|obs|think)>")
"""The tags that API-Bank's dialogues, and the training data made like them, are written in."""

_CALL_TAGS = re.compile(r"(?m)^</?tool_call>$")
"""The lines around an assistant's earlier calls."""

_JSON_COLUMNS = ("tools", "golden_answers", "changes")


WRITES_TOOLS = of_channels("siblings")
"""Types that bring new tools in."""


class RowTexts(Texts):
    """Looks at the texts of benchmark rows."""

    def __init__(self, allowed: frozenset[str] | None = None, *, own: bool = False) -> None:
        """`own`: rows of somebody's own tools, whose requests may name persons and orders."""
        super().__init__(allowed, Scope(guess=not own, persons=not own))
        self._own = own
        self._clean: dict[str, Known] = {}

    def verdicts(self, raw: dict[str, Any], row: Sample, clean: Sample | None) -> dict[str, Verdict]:
        """The verdicts on a row by column; `clean` is None for a clean row.

        `raw` is the row as Parquet has it: its JSON text is looked at once however many rows share it.
        """
        found = self.flagged(raw, row)
        if clean is None:
            new = finds_by_rule(self.unreviewed(found))
            credentials = "clean_credentials_reviewed"
        else:
            new = finds_by_rule(self.brought_in(found, self._known(clean))) if found else {}
            credentials = "no_new_credential"
        return {
            credentials: in_short(new.get(CREDENTIAL, ())),
            **{name: in_short(new.get(name, ())) for name in RULES},
            **self._of_the_row(raw, row, clean),
        }

    def flagged(self, raw: dict[str, Any], row: Sample) -> list[Flagged]:
        """Every text of the row in which something was found."""
        tagged = row.output_format == "tool_call_tags"
        plain = {
            "id": row.id,
            "category": row.category,
            "generator": row.generator,
            "injected_error": row.injected_error or "",
            **{f"flags/{index}": flag for index, flag in enumerate(row.flags)},
            **{f"messages/{index}": message.content for index, message in enumerate(row.messages)},
        }
        roles = {f"messages/{index}": message.role for index, message in enumerate(row.messages)}
        found = []
        for place, text in plain.items():
            bare = Leaf(_bare(text, tagged, roles.get(place) == "assistant"))
            if finds := finds_in(bare, self.scope):
                found.append(Flagged(place, text, finds))
        for name in _JSON_COLUMNS:
            found += _column(name, raw[name], tagged, self.scope)
        return found

    def to_review(self, raw: dict[str, Any], row: Sample) -> Iterator[tuple[Flagged, Find]]:
        """What of a clean row nobody looked at yet, for the eyes of whoever does."""
        yield from self.unreviewed(self.flagged(raw, row))
        for leak in leaked(row, None):
            find = Find("answer_leaks", leak.said, leak.said)
            yield from self.unreviewed([Flagged(leak.place, leak.text, (find,))])

    def _known(self, clean: Sample) -> Known:
        if clean.clean_id not in self._clean:
            columns = {name: dumps(getattr(clean, name)) for name in _JSON_COLUMNS}
            whole = "\n".join((*columns.values(), *(message.content for message in clean.messages)))
            self._clean[clean.clean_id] = known(self.flagged(columns, clean), whole)
        return self._clean[clean.clean_id]

    def _of_the_row(self, raw: dict[str, Any], row: Sample, clean: Sample | None) -> dict[str, Verdict]:
        kind = taxonomy.get(row.type_code) if taxonomy.known(row.type_code) else None
        written = added_tools(row, clean) or [] if clean is not None and WRITES_TOOLS(kind) else []
        too_long, no_schema = _of_the_tools(raw["tools"], self._own)
        wordy = [tool.name[:40] for tool in written if len(tool.description) > lengths.NEW_DESCRIPTION]
        long = [*lengths.too_long(row), *too_long, *(f"the description of new tool {name}" for name in wordy)]
        return {
            "length": in_short(long),
            "language": None if clean is None else _languages(row, clean, written),
            "answer_leaks": in_short(self._leaks(row, clean)),
            "tools_are_schemas": in_short(no_schema),
        }

    def _leaks(self, row: Sample, clean: Sample | None) -> Iterator[str]:
        for leak in leaked(row, clean):
            find = Find("answer_leaks", leak.said, leak.said)
            if clean is not None or find.fingerprint(leak.text) not in self._allowed:
                yield f"{leak.place} {leak.said}"


@lru_cache(maxsize=4_096)
def _column(name: str, text: str, tagged: bool, scope: Scope) -> tuple[Flagged, ...]:
    """The flagged texts of a JSON column."""
    changed = name == "changes"  # whose message it is, the messages themselves say
    return tuple(
        Flagged(f"{name}/{index}", leaf.text, finds)
        for index, part in enumerate(loads(text))
        for leaf in leaves(part)
        if (finds := finds_in(Leaf(_bare(leaf.text, tagged and changed, changed), leaf.secret), scope))
    )


@lru_cache(maxsize=4_096)
def _of_the_tools(text: str, own: bool) -> tuple[list[str], list[str]]:
    """Which tools of a registry are too long, and which of the others are not schemas. Those of own tools may
    refer to themselves, as trees do."""
    long, no_schema = list[str](), list[str]()
    for index, tool in enumerate(msgspec.json.decode(text, type=tuple[Tool, ...])):
        invalid = own_schemas.problem if own else schemas.invalid
        if beyond := list(lengths.tool_too_long(tool)):
            long.append(f"tools/{index}: {'; '.join(beyond)}")
        elif wrong := invalid(tool.parameters):
            no_schema.append(f"tools/{index}: {wrong}")
    return long, no_schema


def _bare(text: str, tagged: bool, calls: bool) -> str:
    """Without the tags of dialogues where it is `tagged`, and those of `calls` where it ends with such."""
    if calls and earlier_calls(Message("assistant", text)) is not None:
        text = _CALL_TAGS.sub("", text)
    return DIALOGUE_TAGS.sub("", text) if tagged else text


def _languages(row: Sample, clean: Sample, written: Iterable[Tool]) -> Verdict:
    """Rewritten texts beside what they rewrite, new tools beside the registry that they join."""
    kind = taxonomy.get(row.type_code) if taxonomy.known(row.type_code) else None
    if kind is not None and isinstance(lang := kind.traits.get("language"), str):
        values = [value for value in gold_values(clean) if any(char.isalnum() for char in value)]
        return in_short(
            f"{path}: {what}"
            for path, _, _, before, after in rewritten_texts(row)
            for what in not_in_language(lang, [v for v in values if v in before], after)
        )
    texts = [([before], after, path) for path, _, _, before, after in rewritten_texts(row)]
    beside = [text for tool in clean.tools for text in (tool.name, tool.description)]
    beside += [message.content for message in clean.messages]
    texts += [(beside, tool.description, f"new tool {tool.name[:40]}") for tool in written]
    if not texts:
        return None
    return in_short(
        f"{place}: {what}" for before, after, place in texts for what in other_language(before, after)
    )


_IDENTIFIER = re.compile(r"[_.\d]|[a-z][A-Z]|\S\s+\S")
"""A name that nobody writes by chance; `search` is also a word."""

_HISTORY = re.compile(r"<tool_call>.*?</tool_call>\s*(?:<obs>.*?</obs>)?", re.DOTALL)
"""Calls that the dialogue has behind it."""


class Leak(NamedTuple):
    """A text that names the gold tool."""

    place: str
    text: str
    said: str


def leaked(row: Sample, clean: Sample | None) -> Iterator[Leak]:
    """Texts that name an accepted tool: of a clean row its messages, else whatever the type wrote.

    A perturbed text may name it as often as one of the clean row's; a type may state that its rows name the
    gold, which its unit checks word for word.
    """
    if taxonomy.known(row.type_code) and taxonomy.get(row.type_code).traits.get("names_the_gold"):
        return
    names = {
        call.name
        for sample in ((row,) if clean is None else (row, clean))
        for answer in sample.golden_answers
        for call in answer
        if _IDENTIFIER.search(call.name)
    }
    found = [(place, text, name) for place, text in _new(row, clean, names) for name in names if name in text]
    old = list[str]()
    if clean is not None and found:
        said = (leaf.text for tool in clean.tools for leaf in _said_by(tool))
        old = [*(text for _, text in _new(clean, None, names)), *said]
    for place, text, name in found:
        count = _count(name, text)
        if count > max((_count(name, other) for other in old if name in other), default=0):
            yield Leak(place, text, f"names the gold tool{'' if count == 1 else f' {count} times'}")


def _count(name: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}(?!\w)", text))


def _new(row: Sample, clean: Sample | None, names: set[str]) -> Iterator[tuple[str, str]]:
    """What messages say, and tools that the clean row lacks (none where the row is a clean one)."""
    for index, message in enumerate(row.messages):
        yield f"messages/{index}", _HISTORY.sub(" ", message.content)
    for index, tool in enumerate(row.tools):
        if clean is not None and tool not in clean.tools:
            whole = dumps((tool.description, tool.parameters))
            if any(dumps(name)[1:-1] in whole for name in names):
                yield from ((f"tools/{index}", leaf.text) for leaf in _said_by(tool))


def _said_by(tool: Tool) -> Iterator[Leaf]:
    return leaves([tool.description, tool.parameters])


SURE = 0.9
"""Probability from which the detector is believed; of 3,400 recorded rewritings it is wrong about none."""

SHORT = 20
"""Shorter texts are names and numbers: only their script is compared."""


def other_language(before: Sequence[str], after: str) -> Iterator[str]:
    """Whether a text is written in another script or language than those that it goes with."""
    here = set().union(*(scripts(text) for text in before))
    there = scripts(after)
    if here and there - here:
        yield f"{' and '.join(sorted(there - here))} letters beside {' and '.join(sorted(here))}"
    elif here and here - {"LATIN"} and not there & (here - {"LATIN"}) and there:
        yield f"no {' or '.join(sorted(here - {'LATIN'}))} letters any more"
    elif len(after) >= SHORT:
        language, probability = _language(after)
        original, certain = _language(" ".join(before))
        # Two sure answers, or anything sure that is not English: short English texts are taken for Danish.
        if language != original and probability > SURE and (language != "en" or certain > SURE):
            yield f"{language} instead of {original}"


def not_in_language(lang: str, values: Sequence[str], after: str) -> Iterator[str]:
    """Whether a translated text is in another script or language than it says; `values` stay as they are."""
    if wrong := other_script(lang, after, values):
        yield wrong
    said = own_words(after, values)
    if len(after) >= SHORT and not wrong:
        language, probability = _language(said)
        if language != lang and probability > SURE:
            yield f"{language} instead of {lang}"


@lru_cache(maxsize=65_536)
def _language(text: str) -> tuple[str, float]:
    """The language of the text's prose, and how likely it is."""
    # Words only: identifiers, numbers and quoted values belong to no language.
    prose = re.findall(r"(?<![\w./@'\"])[^\W\d_]+(?:['’][^\W\d_]+)?(?![\w/@])", text)
    label, probability = _detector().classify(" ".join(prose) or text)
    return label, float(probability)


@cache
def _detector() -> Any:
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        raise need_extra("py3langid", "audit") from None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
