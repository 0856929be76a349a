"""From clean samples to rows: which (sample, type) pairs become rows, and why the others do not.

What types borrow beside the clean rows of a build, samples that only the sources have, is part of the plan:
same plan, same bytes. A type names its loans (`borrows`); a build reads those of its types, and no others."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from robustbench_tc import seeding, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.schema import Sample, Tool, dumps
from robustbench_tc.taxonomy import CLEAN

from .generators.base import check
from .generators.recorded import Book, shipped
from .perturb import REGISTRY, Context, NotApplicable, Text, TextRequest, refuse_text
from .perturb.action import new_tools
from .perturb.registry import donor_pools
from .sources import BuildProfile, Pool, bfcl, read_pool, rotbench
from .sources.upstream import must_be_pinned


class Skip(msgspec.Struct, frozen=True):
    """A (sample, type) pair without a row, and why."""

    clean_id: str
    source: str
    type_code: str
    reason: str
    """A short code; what follows a colon is detail (`text_refused: lost digits 40`)."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that rows are a function of. Same plan, same bytes."""

    samples: tuple[Sample, ...]
    seed: int
    texts: Mapping[str, Text | str] = {}
    """Accepted texts by request key, or the reason why there is none."""
    silent: frozenset[str] = frozenset()
    """Model-written types for which nobody writes anything: their texts are not even asked for."""
    loans: Mapping[str, tuple[Sample, ...]] = {}
    """Samples that types borrow, by loan (`borrowed`)."""

    def context(self) -> Context:
        """What the types may look at; the donors are collected from all samples, so keep it for all rows."""
        donors = donor_pools(self.samples)
        return Context(self.texts, donors, self.silent, self.loans, self.samples)

    def rows(
        self, code: str, context: Context | None = None, part: slice = slice(None)
    ) -> Iterator[Sample | Skip]:
        """The type's rows and skips in the order of the clean samples; the samples themselves for `clean`.

        A row depends on its own sample and the whole plan only: any `part` of the samples gives its rows.
        """
        if code == CLEAN:
            yield from self.samples[part]
            return
        unit = REGISTRY[code]
        drawn_as = unit.draws_as or code
        context = context or self.context()
        for sample in self.samples[part]:
            try:
                row = unit.perturb(sample, seeding.rng(self.seed, drawn_as, sample.clean_id), context)
            except NotApplicable as skip:
                yield Skip(sample.clean_id, sample.source, code, skip.reason)
            else:
                yield row if row.seed == self.seed else msgspec.structs.replace(row, seed=self.seed)


def text_requests(samples: Iterable[Sample], codes: Sequence[str]) -> dict[str, list[TextRequest]]:
    """The distinct texts that the model-written types among `codes` need, by kind, in order of first need.

    One definition serves every sample that holds it: values to keep are gathered from all of them.
    """
    units = [REGISTRY[code] for code in taxonomy.written(codes)]
    found: dict[str, dict[str, TextRequest]] = {unit.code: {} for unit in units}
    for sample in samples:
        for unit in units:
            try:
                requests = unit.requests(sample)
            except NotApplicable:  # counted when the pair is perturbed
                continue
            for request in requests:
                known = found[unit.code].setdefault(request.key, request)
                if more := [value for value in request.keep if value not in known.keep]:
                    keep = (*known.keep, *more)
                    found[unit.code][request.key] = msgspec.structs.replace(known, keep=keep)
    return {kind: list(requests.values()) for kind, requests in found.items()}


SIBLINGS = "siblings"
"""The samples with, for tools, the recorded siblings of their gold tools (written for `redundant`)."""

POOL = "pool"
"""The sources' full pools: every usable record. A bundled build has no more than the starter samples."""

IRRELEVANT = "irrelevant"
"""BFCL's own records in which no call is right, each under the id of the clean sample that it is put to."""


def borrowed(
    codes: Iterable[str], root: Path | None, profile: BuildProfile, pool: Pool
) -> dict[str, tuple[Sample, ...]]:
    """The loans of the types `codes`, by name. `pool` holds the clean rows of the build.

    Raises UserError where a loan lies in the sources and there is no `root`, or a file is not as pinned.
    """
    names = dict.fromkeys(name for code in codes for name in REGISTRY[code].borrows)
    return {name: _loan(name, root, profile, pool) for name in names}


def _loan(name: str, root: Path | None, profile: BuildProfile, pool: Pool) -> tuple[Sample, ...]:
    if name == SIBLINGS:
        return tuple(_siblings(pool.samples, bundled=profile == "bundled"))
    if name == POOL and profile != "paper":
        return pool.samples
    if root is None:
        codes = [unit.code for unit in REGISTRY.values() if name in unit.borrows]
        raise UserError(
            f"{', '.join(codes)}: made from source records beyond the clean rows: run `rbtc data "
            "fetch`, or name a folder with --sources"
        )
    if name == POOL:
        return read_pool(root, "full", checked=True).samples
    if name == IRRELEVANT:
        return () if profile == "paper" else tuple(_put(root, pool.samples, pinned=profile != "bundled"))
    level = name.removeprefix(rotbench.NOISE)
    if level == name or level not in rotbench.LEVELS:
        raise ValueError(f"no loan {name!r}")
    return rotbench.noisy(root, level, pinned=profile != "bundled")


def _siblings(samples: Iterable[Sample], *, bundled: bool) -> Iterator[Sample]:
    """The samples that have recorded siblings, none of which was judged to serve the request."""
    books = shipped(bundled=bundled)
    for sample in samples:
        accepted = {call.name for answer in sample.golden_answers for call in answer}
        tools: dict[str, Tool] = {}
        for request in REGISTRY["redundant"].requests(sample):
            if request.tool not in accepted:
                continue
            for tool in next(_accepted(request, books), ()):
                tools.setdefault(tool.name, tool)
        if tools:
            yield msgspec.structs.replace(sample, tools=tuple(tools.values()))


def _put(root: Path, samples: Iterable[Sample], *, pinned: bool) -> Iterator[Sample]:
    """BFCL's records in which no call is right, in the order of their files, each under a clean id of BFCL.

    A pool is put to samples of its own half, written by experts or given by users (live), so that the two
    stand beside requests and functions of their kind. Which sample it is says the digest of the ids: it
    does not depend on the seed. Flagged samples get none, as a row has the flags of its sample.
    """
    free = sorted(
        (sample for sample in samples if sample.source == bfcl.SOURCE and not sample.flags),
        key=lambda sample: hashlib.sha256(sample.clean_id.encode()).digest(),
    )
    for category in bfcl.NO_CALL_CATEGORIES:
        live = category.startswith("live_")
        half = [sample for sample in free if sample.category.startswith("live_") == live]
        if pinned:
            must_be_pinned(root, bfcl.no_call_file(category))
        records = [one for one in bfcl.no_call_records(root, category) if isinstance(one, Sample)]
        if len(records) > len(half):
            raise UserError(f"{category}: {len(records)} records for {len(half)} clean samples of BFCL")
        for record, sample in zip(records, half, strict=False):
            yield msgspec.structs.replace(record, clean_id=sample.clean_id)


def sets_of_new_tools(
    clean_id: str,
    registry: Sequence[Tool],
    orders: Iterable[Sequence[Book]],
    kept: Sequence[Book] | None = None,
) -> set[tuple[str, ...]]:
    """The sets of new tools that join a registry, each as sorted JSON text, by every order of the books.

    No set where an answer is missing, or is another than the build `kept`: a form can hide what was edited.
    """
    bare = Sample(
        id="",
        clean_id=clean_id,
        type_code="clean",
        source="",
        category="",
        messages=(),
        tools=tuple(registry),
        golden_answers=(),
        output_format="",
    )  # as far as the requests for new tools look at it
    asked = REGISTRY["redundant"].requests(bare)
    found = set[tuple[str, ...]]()
    for books in orders:
        written = [next(_accepted(request, books), None) for request in asked]
        given = [tools for tools in written if tools is not None]
        edited = kept is not None and written != [next(_accepted(one, kept), None) for one in asked]
        if len(given) == len(asked) and not edited:
            found.add(tuple(sorted(map(dumps, new_tools(registry, given)))))
    return found


def _accepted(request: TextRequest, books: Sequence[Book]) -> Iterator[list[Tool]]:
    answers = (answer for book in books for answer in book.answers(request))
    return (msgspec.convert(one, list[Tool]) for one in answers if check(request, one, refuse_text) is None)
