"""Where answers fail: by stage, with the stage that a perturbation breaks, and by source.

The stages are the verdicts' own (`schema.STAGES`, docs/report.md): every wrong answer has exactly one, so the
counts of a line add up to its wrong answers. The shift of a stage is the share of anchored pairs that fail
there when perturbed, minus the share that fails there when clean: over the stages the shifts add up to Δ
matched.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.io.numbers import counts
from robustbench_tc.schema import STAGES, Stage

from .intervals import per_unit
from .outcomes import Outcomes
from .packs import Table
from .runs import Run
from .significance import Loss, corrected, paired_p
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
        return sum(self.wrong_by_stage(line).values())

    def wrong_by_stage(self, line: str) -> dict[str, int]:
        """Stage → wrong answers of the line, 0 where there are none."""
        found = self.failures.get(line, {})
        return {stage: sum(found.get(stage, {}).values()) for stage in NAMES}


def stages(run: Run, outcomes: Outcomes, *, allow_missing: bool = False) -> Stages:
    """The stages of a run's wrong answers; `outcomes`: the same answers as counts."""
    names = ("clean_id", "type_code", "repeat", "correct", "stage", "stage_detail")
    rows: list[Row] = list(zip(*(run.rows[name].tolist() for name in names), strict=True))
    counted: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    judged = [row for row in rows if row[3] >= 0]
    n = Counter(line for row in judged for line in _lines_of(row[1]))
    for _, code, _, right, stage, detail in judged:
        for line in _lines_of(code) if not right else ():
            counted[line][stage or "", detail or ""] += 1
    order = [line for line in (*HEADS, *(kind.code for kind in taxonomy.among(n))) if n[line]]
    moves, unit_of = _moves(judged), outcomes.unit_of()

    def shifts(
        lines: Mapping[str, Sequence[str]], family: Callable[[str], str] = lambda line: ""
    ) -> dict[str, dict[str, Loss]]:
        found: dict[str, tuple[int, int, int, float]] = {}
        for line, codes in lines.items():
            pairs = [move for code in codes for move in moves.get(code, ())]
            for stage in NAMES if pairs else ():
                failing = [(unit_of[one], after == stage, before == stage) for one, before, after in pairs]
                lost = sum(after and not before for _, after, before in failing)
                gained = sum(before and not after for _, after, before in failing)
                _, now, then = per_unit(failing)
                found[f"{line}\n{stage}"] = len(pairs), lost, gained, paired_p(now - then)
        return nested(corrected(found, lambda cell: family(cell.partition("\n")[0])))

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
        shifts=shifts(components),
        type_shifts=shifts({code: [code] for code in outcomes.types if code in usable}, pack_of),
    )


Row = tuple[str, str, int, int, Stage | None, str | None]
"""Clean id, type code, repeat, verdict, stage, and what is wrong there."""


def _moves(rows: Sequence[Row]) -> Mapping[str, Sequence[tuple[str, Stage | None, Stage | None]]]:
    """Type code → its anchored pairs, of rows with a verdict: clean id, and the stages at which the clean row
    and this one fail."""
    clean = {(row[0], row[2]): row[4] for row in rows if row[1] == taxonomy.CLEAN}
    found = defaultdict(list)
    for clean_id, code, repeat, _, stage, _ in rows:
        if code != taxonomy.CLEAN and (clean_id, repeat) in clean:
            found[code].append((clean_id, clean[clean_id, repeat], stage))
    return found


def nested(flat: Mapping[str, Loss]) -> dict[str, dict[str, Loss]]:
    """Cells of a table by line, then by column."""
    found: dict[str, dict[str, Loss]] = {}
    for cell, loss in flat.items():
        line, _, column = cell.partition("\n")
        found.setdefault(line, {})[column] = loss
    return found


def _lines_of(code: str) -> Iterator[str]:
    """The lines that a row of the type counts in."""
    yield code
    if code in taxonomy.codes():
        yield from ("perturbed", str(taxonomy.component_of(code)))


def _ordered(found: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    order = {(str(stage), one): at for stage, details in STAGES.items() for at, one in enumerate(details)}
    cells = sorted(found, key=lambda cell: (order.get(cell, len(order)), cell))
    made = {stage: {detail: found[at, detail] for at, detail in cells if at == stage} for stage in STAGES}
    return {stage: details for stage, details in made.items() if details}


def table(found: Stages, lines: Sequence[str] = HEADS) -> Table:
    """Wrong answers by stage, a line each."""
    return Table(
        name="stages",
        title="wrong answers by the first stage at which they fail",
        columns=("rows", "n", "wrong", *NAMES),
        rows=tuple(
            (line, found.n[line], found.wrong(line), *found.wrong_by_stage(line).values())
            for line in lines
            if line in found.n
        ),
        note="What is wrong there, over clean and perturbed: " + (_details(found) or "nothing") + ".",
    )


def _details(found: Stages) -> str:
    """Every detail with its count, stage by stage."""
    said = []
    for stage, details in STAGES.items():
        clean, perturbed = (found.failures.get(line, {}).get(stage, {}) for line in HEADS[:2])
        if total := Counter(clean) + Counter(perturbed):
            said.append(f"{stage}: {counts({one: total[one] for one in details if total[one]})}")
    return "; ".join(said)


def by_source(
    outcomes: Outcomes, sources: Mapping[str, str], *, allow_missing: bool = False
) -> dict[str, dict[str, Loss]]:
    """Source → type code → its pairs. `sources`: clean_id → source. A cell with a missing row is left
    out."""
    cells: dict[str, tuple[int, int, int, float]] = {}
    for source, part in outcomes.by_group(sources):
        usable = part.usable(allow_missing)
        if taxonomy.CLEAN in usable:
            cells |= {
                f"{source}\n{code}": (
                    found.pairs,
                    found.lost,
                    found.gained,
                    paired_p(part.matched([code])[0]),
                )
                for code, found in part.counts().items()
                if code in usable and found.pairs
            }
    return nested(corrected(cells, lambda cell: pack_of(cell.partition("\n")[2])))
