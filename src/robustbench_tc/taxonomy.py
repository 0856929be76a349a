"""The perturbation types as every room looks them up: by code, by name, by pack or level.

A type states its facts in its own module in `builders/perturb/`; `make facts` writes them to
`data/taxonomy.json`, which is what the other rooms read. Order is that of the paper's Table 1, extensions
after it. The types of all languages, and mixtures of any types, come into being by their codes.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from . import languages
from .errors import UserError, unknown
from .schema.facts import (
    CLEAN as CLEAN,
    COMPONENTS as COMPONENTS,
    Channel as Channel,
    Level as Level,
    Method as Method,
    NoCall as NoCall,
    Pack as Pack,
    Part as Part,
    PerturbationType as PerturbationType,
    Rows as Rows,
)
from .schema.rows import Component

MIX = "mix__"
"""How the code of a mixed type begins; the codes of its parts follow, parted by `__`."""

FEWEST_ROWS = 30
"""A type with fewer rows in profile `paper` (and one at least) is built only when it is named by its code."""

AFTER_ALL = 10_000
"""Types that no module states stand after all others: those of languages, then mixtures by their codes."""

PRIOR_ART_OF_MIXTURES = "none known for tool calls; a factorial design"


class _Facts(msgspec.Struct, frozen=True):
    """What `make facts` wrote."""

    types: tuple[PerturbationType, ...]
    of_a_language: tuple[PerturbationType, ...] = ()
    """The facts that the types of all languages share, with holes for the language."""


@cache
def _facts() -> _Facts:
    text = files("robustbench_tc").joinpath("data/taxonomy.json").read_bytes()
    try:
        return msgspec.json.decode(text, type=_Facts)
    except ValueError as error:
        raise UserError(f"data/taxonomy.json: {error}: write it again with `make facts`") from None


@cache
def _stated() -> dict[str, PerturbationType]:
    return {kind.code: kind for kind in _facts().types}


_OF_A_LANGUAGE = re.compile(r"language(?:_full)?_([a-z]{2})")


@lru_cache(4096)  # codes are read from files too
def _find(code: str) -> PerturbationType | None:
    """The type of that code, stated or not."""
    return _stated().get(code) or _of_a_language(code) or _of_parts(code)


def _of_a_language(code: str) -> PerturbationType | None:
    """The type of a language that no module states: its facts are those of its family, named after it."""
    match = _OF_A_LANGUAGE.fullmatch(code)
    if match is None or match[1] not in languages.LANGUAGES:
        return None
    named = languages.language(match[1])
    for place, kind in enumerate(_facts().of_a_language):
        text = msgspec.json.encode(kind).decode()
        made = msgspec.json.decode(
            text.replace("{code}", named.code).replace("{language}", named.name), type=PerturbationType
        )
        if made.code == code:
            order = AFTER_ALL + 2 * list(languages.LANGUAGES).index(named.code) + place
            return msgspec.structs.replace(made, order=order)
    return None


def _of_parts(code: str) -> PerturbationType | None:
    """The mixture that no module states; None where its parts are no types of different components, in their
    order, that samples of one source can have. (What else cannot be mixed: `builders.perturb.mixed`.)"""
    kinds = [kind for part in parts(code) if (kind := _find(part)) is not None and kind.channel != "mixed"]
    places = [COMPONENTS.index(kind.component) for kind in kinds]
    if len(kinds) < 2 or len(kinds) != len(parts(code)) or places != sorted(set(places)):
        return None
    shared = set.intersection(*(set(kind.sources) for kind in kinds))
    if not shared:
        return None
    return PerturbationType(
        **facts_of_mixture(kinds),
        order=2 * AFTER_ALL,
        component="mixed",
        pack="mixed",
        channel="mixed",
        train_augmentable=False,
        sources=tuple(name for name in kinds[0].sources if name in shared),
        rows=Rows(paper=0, bundled=0),
        prior_art=PRIOR_ART_OF_MIXTURES,
    )


def facts_of_mixture(kinds: Sequence[Any]) -> Mapping[str, Any]:
    """The facts of the mixture of these types (in the order in which they are applied) that follow from
    theirs: all but order, rows, sources and what every mixture states. `kinds`: types, or the units that
    state their facts."""
    changed = {part for kind in kinds for part in kind.may_change}
    codes = [kind.code for kind in kinds]
    names = [kind.display_name for kind in kinds]
    return {
        "code": MIX + "__".join(codes),
        "display_name": " + ".join(names),
        "label": "+".join(names),
        "level": max((kind.level for kind in kinds), key=get_args(Level).index),
        "what_is_modified": f"{', then '.join(codes)}, each on the row that the one before it made.",
        "how_made": "Several types, one after the other. " + " Then ".join(kind.how_made for kind in kinds),
        "method": "llm" if any(kind.method == "llm" for kind in kinds) else "rule",
        "may_change": tuple(part for part in get_args(Part) if part in changed),
        "ground_truth_changes": any(kind.ground_truth_changes for kind in kinds),
        "may_decline": any(kind.may_decline for kind in kinds),
        "no_call": max((kind.no_call for kind in kinds), key=get_args(NoCall).index),
        "control": next((kind.control for kind in kinds if kind.control), ""),
        "injected_error": next((kind.injected_error for kind in kinds if kind.injected_error), None),
        "flags": {flag: words for kind in kinds for flag, words in kind.flags.items()},
        "solved_without_reading": " ".join(filter(None, (kind.solved_without_reading for kind in kinds))),
    }


def get(code: str, words: Iterable[str] = ()) -> PerturbationType:
    """The type of that code. Raises UserError with near misses, also among the `words`."""
    found = _find(code)
    if found is None:
        if match := _OF_A_LANGUAGE.fullmatch(code):
            languages.language(match[1])  # raises: there is no such language
        raise unknown("perturbation type", code, _stated(), also={*_codes_by_name(), *words})
    return found


def known(code: str) -> bool:
    """Whether there is a type of that code."""
    return _find(code) is not None


def component_of(code: str) -> Component | None:
    """The component of a type code; None for `clean`."""
    return None if code == CLEAN else get(code).component


def injected_error(code: str) -> str | None:
    """What answers a first call on the rows of that code, letter by letter: protocol constants (paper,
    appendix G). None where nothing does."""
    found = _find(code)
    return found.injected_error if found else None


def named(code: str) -> str:
    """The type as tables print it: `CD_AB cheap decoy, cryptic gold`. `clean` and kinds of live faults have
    no label."""
    kind = _find(code)
    return f"{code} {kind.label}" if kind else code


def parts(code: str) -> tuple[str, ...]:
    """The types that a mixed type puts together, in the order in which they are applied; () for others."""
    return tuple(code.removeprefix(MIX).split("__")) if code.startswith(MIX) else ()


@cache
def codes() -> tuple[str, ...]:
    """The 22 codes, Table 1's order."""
    return tuple(kind.code for kind in types())


@cache
def types(status: Literal["core", "extension", "all", "known"] = "core") -> tuple[PerturbationType, ...]:
    """The types in order: the 22 of the benchmark, or with the extensions that this package states (`all`).

    `known`: also those of all languages, which come into being by their names, as `language_de` does.
    Mixtures do too, and are too many to list: `among` finds them by their codes.
    """
    if status == "known":
        families = [kind.code for kind in _facts().of_a_language]
        further = {family.replace("{code}", code) for code in languages.LANGUAGES for family in families}
        unstated = map(get, further.difference(_stated()))
        return (*types("all"), *sorted(unstated, key=lambda kind: kind.order))
    return tuple(kind for kind in _facts().types if status in ("all", kind.status))


def among(names: Iterable[str]) -> tuple[PerturbationType, ...]:
    """The types that are among the names, in order; also those that no module states (`language_de`, and
    mixtures of any types, after all others by their codes)."""
    wanted = frozenset(names)
    listed = tuple(kind for kind in types("known") if kind.code in wanted)
    further = sorted(wanted.difference(kind.code for kind in listed))
    return (*listed, *(kind for code in further if (kind := _of_parts(code)) is not None))


def known_with(codes: Iterable[str]) -> tuple[PerturbationType, ...]:
    """The types of `types("known")`, and the mixtures among these codes that no module states."""
    return among((*(kind.code for kind in types("known")), *codes))


def configs(folder: Path) -> tuple[str, ...]:
    """The folders of rows that a release holds, in order: `clean` and types by their codes."""
    there = {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
    return (*([CLEAN] if CLEAN in there else ()), *(kind.code for kind in among(there)))


def written(codes: Iterable[str]) -> tuple[str, ...]:
    """The model-written types whose texts these types need, in order: themselves, and parts of mixed ones."""
    needed = {one for code in codes for one in parts(code) or (code,)}
    return tuple(one.code for one in among(needed) if one.method == "llm")


# --- what a user may write for types ------------------------------------------------------------------


@cache
def _codes_by_name() -> dict[str, str]:
    """Whatever a user may write for a type, and its code."""
    names = ((name, kind) for kind in types("known") for name in (kind.code, kind.display_name, kind.label))
    return {CLEAN: CLEAN} | {name: kind.code for name, kind in names}


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


_GROUPS = (*get_args(Pack), *get_args(Level))


def codes_of(word: str) -> tuple[str, ...]:
    """The codes that a word means, in order: a component (of the core), a pack, a level (of every pack) or
    one type, as for `find`. The pack `mixed` stands for its default design, the pairs and all four: the
    mixtures of three parts are the factorial design's. Types of few rows (`few`) are in no group. Raises
    UserError."""
    if word in COMPONENTS:
        return tuple(kind.code for kind in types() if kind.component == word)
    if word in _GROUPS:
        meant = (kind.code for kind, by_name_only in _group(word) if not by_name_only)
        return tuple(code for code in meant if word != "mixed" or len(parts(code)) != 3)
    return (find(word, (*COMPONENTS, *_GROUPS)),)


def _group(word: str) -> Iterator[tuple[PerturbationType, bool]]:
    """The types of a pack or level, and whether each has too few rows to be meant by it. (`irrelevant` has
    none in profile `paper` and more than a thousand in `full`.)"""
    return ((k, 0 < k.rows.paper < FEWEST_ROWS) for k in types("all") if word in (k.pack, k.level))


def few(words: Iterable[str]) -> tuple[PerturbationType, ...]:
    """The types of the packs and levels among the words that are built only when named, and are not."""
    listed = set(words)
    found = {kind.code: kind for word in listed & {*_GROUPS} for kind, few in _group(word) if few}
    return tuple(kind for code, kind in sorted(found.items()) if code not in map(code_of, listed))
