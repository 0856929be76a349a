"""The perturbation types as every room knows them: the facts of each, and the evidence behind it.

A type states its facts in its own module in `builders/perturb/`; `make facts` writes them to
`data/taxonomy.json`, which is what the other rooms read. The types and `data/evidence.jsonl` are published
with the dataset as the configs `taxonomy` and `evidence`. Order is that of the paper's Table 1, extensions
after it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from . import languages
from .errors import UserError, unknown
from .schema import Component, Json

COMPONENTS: tuple[Component, ...] = ("observation", "action", "reward", "transition")

CLEAN = "clean"

Level = Literal["perception", "interaction", "reasoning", "internalization"]
"""What of an agent a type tries: reading, acting with tools, weighing them, knowing when not to call."""

Pack = Literal["core", "language", "abstention", "context", "registry", "offers", "severity", "mixed"]
"""`core` are the 22 of the benchmark; the others are built only when named and enter no headline number."""

Method = Literal["llm", "rule", "runtime"]
"""llm: the text is model-written; rule: a pure function; runtime: happens while the tool runs."""

Channel = Literal[
    "query",
    "descriptions",
    "namesake",
    "siblings",
    "offers",
    "registry",
    "context",
    "tool_result",
    "result",
    "mixed",
]
"""By which way the disturbance enters. Types of one channel share the audit's rules for it; a mixed type's
rows are held step by step against those of its parts."""

MIX = "mix__"
"""How the code of a mixed type begins; the codes of its parts follow, parted by `__`."""

TRAITS: dict[Channel, tuple[str, ...]] = {
    "namesake": ("description", "wrong_parameters"),
    "offers": ("quality", "suffix", "stated"),
    "result": ("instructed",),
}
"""What a type of the channel says beside the facts of every type: the audit's rules need it."""

NoCall = Literal["wrong", "accepted", "right"]
"""wrong: its rows want calls. accepted: their answers hold the empty one beside answers with calls. right:
the empty answer is the only one, so that declining, asking and answering in words are right, any call is
wrong."""

Part = Literal[
    "messages",
    "the number or roles of messages",
    "the set of tools",
    "the order of tools",
    "tool names",
    "tool descriptions",
    "parameter descriptions",
    "parameter schemas",
    "golden answers",
]
"""A part of a row that can differ from its clean row."""

PUBLISHED = (
    "order code display_name component what_is_modified method status static train_augmentable sources "
    "ground_truth_changes"
).split()
"""Columns of the published table `taxonomy`."""


FEWEST_ROWS = 30
"""A type with fewer rows in profile `paper` is built only when it is named by its code."""


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows per profile, as far as they are known: those of `full` depend on who writes the texts."""

    paper: int
    bundled: int
    full: int | None = None
    """Where a rule suffices."""

    def of(self, profile: str) -> int | None:
        """Rows of that profile; None for one whose rows are not known beforehand."""
        return getattr(self, profile, None) if profile in self.__struct_fields__ else None


class PerturbationType(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one type."""

    order: int
    code: str
    display_name: str
    """The paper's short name."""
    label: str
    """At most four words that say what happens; tables print it behind the code (`named`)."""
    component: Component
    level: Level
    pack: Pack
    channel: Channel
    what_is_modified: str
    """One sentence for tables."""
    how_made: str
    """A paragraph for the card."""
    method: Method
    may_change: tuple[Part, ...]
    """What of a row may differ from its clean row."""
    ground_truth_changes: bool
    train_augmentable: bool
    """Whether training data may draw it."""
    sources: tuple[str, ...]
    """Sources whose samples it can apply to."""
    rows: Rows
    """What a build has of the paper's five sources."""
    paper_rows: int | None
    """Rows of the paper's own release; null for an extension."""
    paper_unchanged: int
    """How many of those hold nothing that could be rewritten: no rows here."""
    judged_as: str | None
    """Types that rewrite a text: what it is, in the words of the judge of meaning."""
    injected_error: str | None
    """Types of the channel `tool_result`: the protocol's text, letter by letter."""
    flags: dict[str, str]
    """Flags that its rows may carry beyond their clean row's, with words for the card."""
    traits: dict[str, Json]
    """What tells the types of one channel apart, by name."""
    solved_without_reading: str = ""
    """Why the type stays although its gold tool is found without the request; "" for one where it is not."""
    series: str = ""
    """Types that are one perturbation in several doses: the series' name; its types' order is that of the
    doses, from the mildest to the strongest. "" for a type that is of none."""
    dose: float | None = None
    """How much of it, in the series' own unit."""
    prior_art: str = ""
    """Who has asked the same before, in a line; "" for the core, whose prior art is the paper's."""
    may_decline: bool = False
    """Whether its rows are asked in words that leave it open to call nothing."""
    no_call: NoCall = "wrong"
    """What a reply without a call is worth in its rows."""
    control: str = ""
    """Where calling nothing is right or accepted: the type whose rows of the same samples ask in the same
    words and make a call due."""

    @property
    def status(self) -> Literal["core", "extension"]:
        """Core: one of the paper's 22 types, which alone enter the headline numbers."""
        return "core" if self.pack == "core" else "extension"

    @property
    def static(self) -> bool:
        """False where something happens at run time: such rows equal their clean row."""
        return self.method != "runtime"

    @property
    def answered_calls(self) -> int:
        """How many of a row's calls are answered with its text before the reply that is scored; 0: none."""
        if self.channel == "mixed":
            return max(get(part).answered_calls for part in parts(self.code))
        if self.channel not in ("tool_result", "result"):
            return 0
        times = self.traits.get("times", 1)
        return times if isinstance(times, int) else 1

    @property
    def scored(self) -> bool:
        """False where something else than right answers is counted (tries): then no accuracy is shown."""
        return self.traits.get("scored") is not False

    @property
    def by_name_only(self) -> bool:
        """Whether profile `paper` has too few rows of it to say anything: a pack or level leaves it out.
        (`irrelevant` has none there and more than a thousand in `full`.)"""
        return 0 < self.rows.paper < FEWEST_ROWS

    @property
    def floor(self) -> int | None:
        """Rows that profile `paper` has at least: the paper's, less those with nothing to rewrite."""
        return None if self.paper_rows is None else self.paper_rows - self.paper_unchanged


class _Facts(msgspec.Struct, frozen=True):
    types: tuple[PerturbationType, ...]
    of_a_language: tuple[PerturbationType, ...] = ()
    """The facts that the types of all languages share, with holes for the language."""


@cache
def _all() -> "_Facts":
    """What `make facts` wrote."""
    text = files("robustbench_tc").joinpath("data/taxonomy.json").read_bytes()
    try:
        return msgspec.json.decode(text, type=_Facts)
    except ValueError as error:
        raise UserError(f"data/taxonomy.json: {error}: write it again with `make facts`") from None


_OF_A_LANGUAGE = re.compile(r"language(?:_full)?_([a-z]{2})")


@cache
def _of_a_language(code: str) -> PerturbationType | None:
    """The type of a language that no module states: its facts are those of its family, named after it."""
    match = _OF_A_LANGUAGE.fullmatch(code)
    if match is None or match[1] not in languages.LANGUAGES:
        return None
    named = languages.language(match[1])
    for place, kind in enumerate(_of_families()):
        text = msgspec.json.encode(kind).decode()
        made = msgspec.json.decode(
            text.replace("{code}", named.code).replace("{language}", named.name), type=PerturbationType
        )
        if made.code == code:
            order = _AFTER_ALL + 2 * list(languages.LANGUAGES).index(named.code) + place
            return msgspec.structs.replace(made, order=order)
    return None


@lru_cache(4096)  # codes are read from files too
def _of_parts(code: str) -> PerturbationType | None:
    """The mixture that no module states, by its code; None for another code, and where it cannot be mixed."""
    if not parts(code):
        return None
    from . import mixtures  # it reads the facts of types here

    try:
        return mixtures.by_name(code)
    except UserError:
        return None


def _by_name(code: str) -> PerturbationType | None:
    """The type that comes into being by its name."""
    return _of_a_language(code) or _of_parts(code)


def _of_families() -> tuple[PerturbationType, ...]:
    """The facts that all languages share, with holes for the language."""
    return _all().of_a_language


_AFTER_ALL = 10_000
"""Types that no module states stand after all others."""


@cache
def types(status: Literal["core", "extension", "all", "known"] = "core") -> tuple[PerturbationType, ...]:
    """The types in order: the 22 of the benchmark, or with the extensions that this package states (`all`).

    `known`: also those of all languages, which come into being by their names, as `language_de` does.
    Mixtures do too, and are too many to list: `among` finds them by their codes.
    """
    if status == "known":
        codes = (kind.code.replace("{code}", code) for kind in _of_families() for code in languages.LANGUAGES)
        further = (found for code in codes if code not in _by_code() and (found := _of_a_language(code)))
        return (*types("all"), *sorted(further, key=lambda kind: kind.order))
    return tuple(kind for kind in _all().types if status in ("all", kind.status))


def known_with(codes: Iterable[str]) -> tuple[PerturbationType, ...]:
    """The types of `types("known")`, and the mixtures among these codes that no module states."""
    return among((*(kind.code for kind in types("known")), *codes))


def parts(code: str) -> tuple[str, ...]:
    """The types that a mixed type puts together, in the order in which they are applied; () for others."""
    return tuple(code.removeprefix(MIX).split("__")) if code.startswith(MIX) else ()


def written(codes: Iterable[str]) -> tuple[str, ...]:
    """The model-written types whose texts these types need, in order: themselves, and parts of mixed ones."""
    needed = {one for code in codes for one in parts(code) or (code,)}
    return tuple(one.code for one in among(needed) if one.method == "llm")


def named(code: str) -> str:
    """The type as tables print it: `CD_AB cheap decoy, cryptic gold`. `clean` and kinds of live faults have
    no label."""
    kind = _by_code().get(code) or _by_name(code)
    return f"{code} {kind.label}" if kind else code


@cache
def _codes_by_name() -> dict[str, str]:
    """Whatever a user may write for a type, and its code."""
    found = {CLEAN: CLEAN}
    for kind in types("known"):
        found |= dict.fromkeys((kind.code, kind.display_name, kind.label), kind.code)
    return found


def code_of(text: str) -> str:
    """The code of that name in any case, or the text itself."""
    names = _codes_by_name().items()
    return next((code for name, code in names if name.casefold() == text.casefold()), text)


def find(text: str, words: Iterable[str] = ()) -> str:
    """The code that a user means by a code, a display name or a label, in any case; `clean` means itself.

    Raises UserError with the closest names, also among the `words`.
    """
    code = code_of(text)
    return code if code == CLEAN else get(code, words).code


def find_in(there: Collection[str], text: str, kind: str) -> str:
    """As `find`, among the codes that a run or dataset has. Raises UserError that calls them `kind`."""
    code = code_of(text)
    if code not in there:
        raise unknown(kind, text, there, also=(name for name, of in _codes_by_name().items() if of in there))
    return code


@cache
def _listed() -> re.Pattern[str]:
    labels = sorted((name for name in _codes_by_name() if "," in name), key=len, reverse=True)
    return re.compile(rf"\s*((?:{'|'.join(map(re.escape, labels))})(?=\s*(?:,|$))|[^,]+)", re.IGNORECASE)


def split(given: str | Iterable[str]) -> list[str]:
    """The names of types in one or several comma-separated texts. A label can hold a comma itself:
    `CD,cheap decoy, cryptic gold` are two types."""
    texts = [given] if isinstance(given, str) else given
    return [name.strip() for text in texts for name in _listed().findall(text) if name.strip()]


def codes_of(word: str) -> tuple[str, ...]:
    """The codes that a word means, in order: a component (of the core), a pack, a level (of every pack) or
    one type, as for `find`. The pack `mixed` stands for its default design, the pairs and all four: the
    mixtures of three parts are the factorial design's. Types of few rows (`few`) are in no group. Raises
    UserError."""
    if word in COMPONENTS:
        return tuple(kind.code for kind in types() if kind.component == word)
    if word in _GROUPS:
        meant = (kind.code for kind in _group(word) if not kind.by_name_only)
        return tuple(code for code in meant if word != "mixed" or len(parts(code)) != 3)
    return (find(word, (*COMPONENTS, *_GROUPS)),)


_GROUPS = (*get_args(Pack), *get_args(Level))


def _group(word: str) -> Iterator[PerturbationType]:
    return (kind for kind in types("all") if word in (kind.pack, kind.level))


def few(words: Iterable[str]) -> tuple[PerturbationType, ...]:
    """The types of the packs and levels among the words that are built only when named, and are not."""
    listed = set(words)
    found = {kind.code: kind for word in listed & {*_GROUPS} for kind in _group(word) if kind.by_name_only}
    return tuple(kind for code, kind in sorted(found.items()) if code not in map(code_of, listed))


@cache
def codes() -> tuple[str, ...]:
    """The 22 codes, Table 1's order."""
    return tuple(t.code for t in types())


def get(code: str, words: Iterable[str] = ()) -> PerturbationType:
    """The type of that code. Raises UserError with near misses, also among the `words`."""
    found = _by_code().get(code) or _by_name(code)
    if found is None:
        if parts(code):
            from . import mixtures

            mixtures.checked(code)  # raises: these cannot be mixed
        if match := _OF_A_LANGUAGE.fullmatch(code):
            languages.language(match[1])  # raises: there is no such language
        raise unknown("perturbation type", code, _by_code(), also={*_codes_by_name(), *words})
    return found


def known(code: str) -> bool:
    """Whether there is a type of that code."""
    return code in _by_code() or _by_name(code) is not None


def among(names: Iterable[str]) -> tuple[PerturbationType, ...]:
    """The types that are among the names, in order; also those that no module states (`language_de`, and
    mixtures of any types, after all others by their codes)."""
    wanted = frozenset(names)
    listed = tuple(kind for kind in types("known") if kind.code in wanted)
    further = sorted(wanted.difference(kind.code for kind in listed))
    return (*listed, *(kind for code in further if (kind := _of_parts(code)) is not None))


def configs(folder: Path) -> tuple[str, ...]:
    """The folders of rows that a release holds, in order: `clean` and types by their codes."""
    there = {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
    return (*([CLEAN] if CLEAN in there else ()), *(kind.code for kind in among(there)))


@cache
def _by_code() -> dict[str, PerturbationType]:
    return {t.code: t for t in types("all")}


def component_of(code: str) -> Component | None:
    """The component of a type code; None for `clean`."""
    return None if code == CLEAN else get(code).component


def injected_error(code: str) -> str | None:
    """What answers a first call on the rows of that code; None where nothing does."""
    return get(code).injected_error if known(code) else None


@cache
def evidence() -> tuple[dict[str, Any], ...]:
    """Audited production reports behind the types: repository, number, claim, verdict, role, note."""
    lines = files("robustbench_tc").joinpath("data/evidence.jsonl").read_bytes().splitlines()
    return tuple(msgspec.json.decode(line) for line in lines)


def published(kind: PerturbationType) -> dict[str, Json]:
    """The type's row of the published table `taxonomy`."""
    row = {name: getattr(kind, name) for name in PUBLISHED}
    return {**row, "sources": list(kind.sources)}


if TYPE_CHECKING:
    INJECTED_ERRORS: Mapping[str, str]
    """Type code → what answers a first call, letter by letter: protocol constants (paper, appendix G)."""
else:

    def __getattr__(name: str) -> Any:
        # Read when first asked for: the registry that writes these facts imports this module too.
        if name == "INJECTED_ERRORS":
            known = (t for t in types("all") if t.channel != "mixed")
            return {t.code: t.injected_error for t in known if t.injected_error is not None}
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
