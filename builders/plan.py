"""From clean samples to rows: which (sample, type) pairs become rows, and why the others do not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from robustbench_tc import seeding, taxonomy
from robustbench_tc.schema import Sample
from robustbench_tc.taxonomy import CLEAN

from .perturb import REGISTRY, Context, NotApplicable, Text, TextRequest
from .perturb.registry import donor_pools


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
    """Samples that types borrow, by loan (`builders/loans.py`)."""

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
                known = found[unit.code].get(request.key)
                if known is not None and set(request.keep) - set(known.keep):
                    keep = (*known.keep, *(v for v in request.keep if v not in known.keep))
                    request = msgspec.structs.replace(known, keep=keep)
                elif known is not None:
                    continue
                found[unit.code][request.key] = request
    return {kind: list(requests.values()) for kind, requests in found.items()}
