"""The stage at which wrong answers fail, and which stage a perturbation breaks.

The stages are the verdicts' own (`schema.STAGES`, docs/stages.md): every wrong answer has exactly one, so the
counts of a line add up to its wrong answers. The shift of a stage is the share of anchored pairs that fail
there when perturbed, minus the share that fails there when clean: over the stages the shifts add up to Δ
matched.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress

import msgspec
import numpy as np

from robustbench_tc import taxonomy
from robustbench_tc.schema import STAGES, Stage

from .lattice import Ints
from .losses import Loss, corrected
from .packs import Table
from .runs import Outcomes, Run, unstated_rows
from .significance import paired_p
from .subsets import Subset, kept
from .values import HEADS, codes_of, pack_of

NAMES: tuple[Stage, ...] = tuple(STAGES)

Failures = dict[str, dict[str, dict[str, int]]]
"""Line → stage → detail → wrong answers."""


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    """The stages of one run's wrong answers.

    A line is `clean`, `perturbed` or a component (both over the core), or a type code.
    """

    n: dict[str, int]
    """Line → rows with a verdict."""
    failures: Failures
    """Only what occurs, in the order of `STAGES`."""
    shifts: dict[str, dict[str, Loss]]
    """Component → stage → the pairs that fail there only when perturbed (lost) or only when clean (gained).
    A component of which rows are missing is left out. The p-values are corrected over the whole table."""
    type_shifts: dict[str, dict[str, Loss]]
    """The same by type code, corrected within its pack."""

    def wrong(self, line: str) -> int:
        """The line's wrong answers."""
        return sum(self.of(line).values())

    def of(self, line: str) -> dict[str, int]:
        """Stage → wrong answers of the line, 0 where there are none."""
        found = self.failures.get(line, {})
        return {stage: sum(found.get(stage, {}).values()) for stage in NAMES}


def stages(run: Run, outcomes: Outcomes, subset: Subset = "all", *, allow_missing: bool = False) -> Stages:
    """The stages of a run over the rows of the subset."""
    columns = [
        run.rows[name].tolist()
        for name in ("clean_id", "type_code", "repeat", "correct", "stage", "stage_detail")
    ]
    pairs = list(zip(columns[0], columns[1], strict=True))
    wanted = kept(set(pairs), subset, unstated_rows(run))
    rows = list(compress(zip(*columns, strict=True), [pair in wanted for pair in pairs]))
    counted: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    n: Counter[str] = Counter()
    for _, code, _, right, stage, detail in rows:
        if right < 0:
            continue
        for line in _lines_of(code):
            n[line] += 1
            if not right:
                counted[line][stage, detail or ""] += 1
    order = [line for line in (*HEADS, *(kind.code for kind in taxonomy.among(n))) if n[line]]
    shifts = _Shifts(rows, outcomes)
    usable = set(outcomes.usable(allow_missing))
    components: dict[str, Sequence[str]] = {
        name: codes
        for name in taxonomy.COMPONENTS
        if (codes := [code for code in codes_of(name) if code in usable])
        and (allow_missing or len(codes) == len(codes_of(name)))
    }
    return Stages(
        n={line: n[line] for line in order},
        failures={line: _ordered(counted[line]) for line in order},
        shifts=shifts.table(components),
        type_shifts=shifts.table({code: [code] for code in outcomes.types if code in usable}, pack_of),
    )


def _lines_of(code: str) -> Iterator[str]:
    """The lines that a row of the type counts in."""
    yield code
    kind = taxonomy.get(code) if taxonomy.known(code) else None
    if kind is not None and kind.pack == "core":
        yield "perturbed"
        yield kind.component


def _ordered(found: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    made: dict[str, dict[str, int]] = {}
    for stage, details in STAGES.items():
        there = sorted(
            (detail for at, detail in found if at == stage),
            key=lambda one: (details.index(one) if one in details else len(details), one),
        )
        if there:
            made[stage] = {detail: found[stage, detail] for detail in there}
    return made


class _Shifts:
    """Per type and sample, the anchored pairs by the stages of their two answers."""

    def __init__(
        self, rows: Sequence[tuple[str, str, int, int, str | None, str | None]], outcomes: Outcomes
    ) -> None:
        at: dict[str | None, int] = {stage: index for index, stage in enumerate(NAMES)}
        clean = {
            (clean_id, repeat): at.get(stage, -1)
            for clean_id, code, repeat, right, stage, _ in rows
            if code == taxonomy.CLEAN and right >= 0
        }
        places = {clean_id: index for index, clean_id in enumerate(outcomes.clean_ids)}
        self._none = np.zeros((len(NAMES), len(places)), np.int64)
        self._lost: defaultdict[str, Ints] = defaultdict(self._none.copy)
        self._gained: defaultdict[str, Ints] = defaultdict(self._none.copy)
        self._pairs: Counter[str] = Counter()
        self._by_unit = outcomes.by_unit
        for clean_id, code, repeat, right, stage, _ in rows:
            if code == taxonomy.CLEAN or right < 0 or (clean_id, repeat) not in clean:
                continue
            self._pairs[code] += 1
            before, after = clean[clean_id, repeat], at.get(stage, -1)
            if before != after:
                if after >= 0:
                    self._lost[code][after, places[clean_id]] += 1
                if before >= 0:
                    self._gained[code][before, places[clean_id]] += 1

    def table(
        self, lines: Mapping[str, Sequence[str]], family: Callable[[str], str] = lambda line: ""
    ) -> dict[str, dict[str, Loss]]:
        """Line → stage → its shift, the p-values of a family of lines corrected together; lines without a
        pair are left out."""
        found: dict[str, tuple[int, int, int, float]] = {}
        for line, codes in lines.items():
            pairs = sum(self._pairs[code] for code in codes)
            if not pairs:
                continue
            lost, gained = (
                sum((of[code] for code in codes if code in of), self._none)
                for of in (self._lost, self._gained)
            )
            for index, stage in enumerate(NAMES):
                counts = int(lost[index].sum()), int(gained[index].sum())
                found[f"{line}\n{stage}"] = (
                    pairs,
                    *counts,
                    paired_p(self._by_unit(lost[index] - gained[index])),
                )
        flat = corrected(found, lambda cell: family(cell.partition("\n")[0]))
        return {
            line: {stage: flat[f"{line}\n{stage}"] for stage in NAMES}
            for line in lines
            if f"{line}\n{NAMES[0]}" in flat
        }


def table(found: Stages, lines: Sequence[str] = HEADS) -> Table:
    """Wrong answers by stage, a line each."""
    return Table(
        name="stages",
        title="wrong answers by the first stage at which they fail",
        columns=("rows", "n", "wrong", *NAMES),
        rows=tuple(
            (line, found.n[line], found.wrong(line), *found.of(line).values())
            for line in lines
            if line in found.n
        ),
        note="What is wrong there, over clean and perturbed: " + (_details(found) or "nothing") + ".",
    )


def _details(found: Stages) -> str:
    """Every detail with its count, stage by stage."""
    said = []
    for stage, details in STAGES.items():
        total: Counter[str] = Counter()
        for line in (taxonomy.CLEAN, "perturbed"):
            total.update(found.failures.get(line, {}).get(stage, {}))
        if total:
            counts = ", ".join(f"{one} {total[one]}" for one in details if total[one])
            said.append(f"{stage}: {counts}")
    return "; ".join(said)
