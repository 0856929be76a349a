"""Scored runs: their verdicts as columns, aligned into counts per (clean_id, type)."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from robustbench_tc import schema, sources, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval.record import RECORD, RunRecord, open_run, refuse_live, refuse_no_run
from robustbench_tc.eval.score.category import case_of
from robustbench_tc.io import parquet
from robustbench_tc.live_types import type_codes
from robustbench_tc.schema import GOLD_NOT_STATED

from .lattice import Ints
from .outcomes import Outcomes, with_controls

if TYPE_CHECKING:
    from ..live.score import LiveScore

COLUMNS = dict.fromkeys(
    (
        *("id", "clean_id", "type_code", "source", "model", "mode", "sample_hash", "status"),
        *("error_mode", "finish_reason", "category", "stage", "stage_detail", "calls"),
        *("variant", "undelivered"),
    ),
    "string",
) | {
    **dict.fromkeys(("repeat", "attempts", "native_calls"), "int64"),
    "correct": "bool_",
    "injected": "bool_",
    "delivered": "bool_",
    "score": "float64",
}
"""What is read of a scored run, and as which type of Arrow."""

Subset = Literal["all", "paper", "verified"]
"""Every row; the kinds of rows that the paper's release has; the rows that somebody could answer."""

_PRICED = frozenset({"CD", "TD", "CD_NT", "TD_NT"})

_CALLS = msgspec.json.Decoder(list[msgspec.Raw])


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One scored run: who answered, on which dataset, and every verdict."""

    path: str
    """The folder as the user gave it."""
    record: RunRecord
    model: str
    mode: str
    rows: dict[str, np.ndarray[Any, Any]]
    """The columns of COLUMNS; `flags`: the verdict's, `noticed`: the defences that said that something is
    wrong, each in one text with commas between them. `correct` is 1, 0 or -1 (no verdict: no answer was had).
    `calls`: how many the reply made. `unit`: what counts as one in every interval and test: the clean id, or
    the case of one's own that it is a turn of. `met`, of a live run: it met its fault, or has none."""
    live: Sequence["LiveScore"] = ()
    """The scores of a live run."""

    @property
    def fingerprint(self) -> str:
        """Of the dataset, not of the selection: equal for runs on the same rows."""
        return self.record.settings.fingerprint

    @property
    def dataset_label(self) -> str:
        """Version and fingerprint of the dataset, as they are printed."""
        return schema.dataset_label(self.record.dataset_version, self.fingerprint)

    @property
    def own_tools(self) -> bool:
        """Whether every row is of somebody's own tools: nothing of the published benchmark is beside it."""
        return set(self.rows["source"].tolist()) == {sources.OWN}


def labels(runs: Sequence[Run]) -> list[str]:
    """Model names; with the mode, then the folder, where they alone do not tell the runs apart."""
    models = [run.model for run in runs]
    modes = [f"{run.model} ({run.mode})" for run in runs]
    paths = [f"{run.model} ({run.path})" for run in runs]
    return next((found for found in (models, modes) if len(set(found)) == len(found)), paths)


def scores_of(folder: Path) -> Path:
    """The file of a run's verdicts. Raises UserError where there is none."""
    refuse_live(folder)
    scores = folder / "scores.parquet"
    if not scores.is_file():
        if not (folder / RECORD).is_file():
            refuse_no_run(folder)
        raise UserError(f"{folder} is not scored yet: rbtc score {folder}")
    return scores


def read_run(folder: str | Path) -> Run:
    """A run folder's verdicts. Raises UserError for what is missing, damaged, doubled or mixed."""
    import pyarrow as pa

    if is_live(folder):
        return _live(str(folder))
    scores = scores_of(Path(folder))
    try:
        table = parquet.read_file(scores, [*COLUMNS, "flags", "noticed"])
        if absent := [name for name in (*COLUMNS, "flags") if name not in table.column_names]:
            raise UserError(f"{scores} is not a scored run: it has no column {', '.join(absent)}")
        kinds = [(name, getattr(pa, kind)()) for name, kind in COLUMNS.items()]
        flags = [",".join(found or ()) for found in table["flags"].to_pylist()]
        noticed = table["noticed"].to_pylist() if "noticed" in table.column_names else [None] * len(flags)
        table = table.select(list(COLUMNS)).cast(pa.schema(kinds))
    except PermissionError:  # nothing is wrong with the file
        raise UserError(f"{scores} may not be read: change its rights") from None
    except (pa.ArrowException, OSError) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise UserError(f"{scores} is damaged: {why}; rbtc score {folder} makes it again") from None
    if table.num_rows == 0:
        raise UserError(f"{scores} holds no predictions")

    # Through lists: Arrow's own way to NumPy imports pandas, slow to start and no dependency of ours.
    rows = {name: np.array(table[name].to_pylist(), dtype=object) for name in COLUMNS}
    rows["correct"] = np.array(
        [
            -1 if status == "request_error" or right is None else int(right)
            for status, right in zip(rows["status"], rows["correct"], strict=True)
        ]
    )
    rows["flags"] = np.array(flags, dtype=object)
    rows["noticed"] = np.array([",".join(one) if one is not None else None for one in noticed], dtype=object)
    rows["calls"] = np.array([len(_CALLS.decode(found or "[]")) for found in rows["calls"].tolist()])
    rows["unit"] = np.array(
        [
            case_of(row, category or "") if source == sources.OWN else row
            for row, source, category in zip(rows["clean_id"], rows["source"], rows["category"], strict=True)
        ],
        dtype=object,
    )
    seen = Counter(zip(rows["id"], rows["repeat"], strict=True))
    doubled = [one for one in seen.items() if one[1] > 1]
    for (row, repeat), times in doubled:
        raise UserError(
            f"{folder} holds {len(doubled)} predictions more than once, the first {row!r} repeat {repeat} "
            f"{times} times: score the run again or remove the copies"
        )
    return Run(
        path=str(folder),
        record=open_run(Path(folder)).record,
        model=_only(rows["model"], "model", scores),
        mode=_only(rows["mode"], "mode", scores),
        rows=rows,
    )


def is_live(folder: str | Path) -> bool:
    """Whether a folder holds a run of live rows."""
    place = Path(folder)
    return (place / RECORD).is_file() and open_run(place).record.live


def _live(folder: str) -> Run:
    """A live run as rows: an episode that ended as it should is right."""
    from ..live.score import read_scores

    scores = read_scores(Path(folder))
    fields = {"source": "world", "status": "ended", "finish_reason": "ended", "unit": "clean_id"}
    rows = {
        name: np.array([getattr(one, fields.get(name, name), None) for one in scores], dtype=object)
        for name in (*COLUMNS, "unit")
    }
    rows["correct"] = np.array([-1 if one.success is None else int(one.success) for one in scores])
    rows["flags"] = np.array([""] * len(scores), dtype=object)
    rows["noticed"] = np.array([",".join(one.noticed) for one in scores], dtype=object)
    rows["met"] = np.array([one.counts for one in scores])
    record = open_run(Path(folder)).record
    settings = record.settings
    return Run(path=folder, record=record, model=settings.model, mode=settings.mode, rows=rows, live=scores)


def _only(column: np.ndarray[Any, Any], what: str, path: Path) -> str:
    first, *others = found = sorted(set(column.tolist()))
    if others:
        raise UserError(
            f"{path} mixes {len(found)} {what}s ({', '.join(map(str, found[:5]))}): one run, one {what}"
        )
    return str(first)


def align(
    runs: Sequence[Run],
    *,
    subset: Subset = "all",
    expected: Iterable[tuple[str, str]] | None = None,
) -> list[Outcomes]:
    """The runs' counts over the same clean_ids and types. Raises UserError where runs are of other datasets.

    A row that one run has (or that is in `expected`, pairs of clean_id and type code) and another has not,
    or has without a verdict, counts as missing there.
    """
    _refuse_other_datasets(runs)
    wanted = set(expected or ()).union(*map(_pairs, runs))
    known = taxonomy.known_with({code for _, code in wanted})
    order = [taxonomy.CLEAN, *(kind.code for kind in known), *type_codes()]
    if unknown_types := sorted({code for _, code in wanted} - set(order)):
        raise UserError(f"type {unknown_types[0]!r} is unknown to this version: update robustbench-tc")
    if subset == "paper":
        wanted = {pair for pair in wanted if in_paper_subset(*pair)}
    elif subset == "verified":
        wanted = wanted.difference(*map(unstated_rows, runs))
    if not wanted:
        raise UserError("nothing is left to compare: no row of these runs is in the subset")
    clean_ids = tuple(sorted({pair[0] for pair in wanted}))
    present = {pair[1] for pair in wanted}
    types = tuple(code for code in order if code in present)
    place = {
        pair: (row, column)
        for row, clean_id in enumerate(clean_ids)
        for column, code in enumerate(types)
        if (pair := (clean_id, code)) in wanted
    }
    needed = np.zeros((len(clean_ids), len(types)), np.int64)
    needed[tuple(np.array(list(place.values())).T)] = 1
    units = _unit_names(runs, clean_ids)
    return [
        with_controls(
            _outcomes(run, clean_ids, units, types, place, needed, named=expected is not None), needed > 0
        )
        for run in runs
    ]


def within(run: Run, outcomes: Outcomes) -> Run:
    """The run's answers that are in these counts."""
    asked = (outcomes.n + outcomes.missing > 0).tolist()
    cells = {
        (clean_id, code)
        for clean_id, there in zip(outcomes.clean_ids, asked, strict=True)
        for code in itertools.compress(outcomes.types, there)
    }
    inside = np.array([pair in cells for pair in _pairs(run)])
    return msgspec.structs.replace(run, rows={name: column[inside] for name, column in run.rows.items()})


def in_paper_subset(clean_id: str, type_code: str) -> bool:
    """Whether the paper's release has a row of this kind (benchmark.md §7): `--subset paper`.

    It has CD, TD, CD_NT and TD_NT without BFCL and API-Bank level 3, the same-name types without BFCL, and no
    extension.
    """
    bfcl = clean_id.startswith("bfcl_v3__")
    if type_code.startswith("same_name_"):
        return not bfcl
    if type_code in _PRICED:
        return not bfcl and not clean_id.startswith("apibank__level3_")
    return type_code == taxonomy.CLEAN or type_code in taxonomy.codes()


def _unit_names(runs: Sequence[Run], clean_ids: tuple[str, ...]) -> tuple[str, ...]:
    """For each clean id its unit; nothing where each is its own."""
    named: dict[str, str] = {}
    for run in runs:
        units = run.rows.get("unit", run.rows["clean_id"])
        named |= dict(zip(run.rows["clean_id"].tolist(), units.tolist(), strict=True))
    found = tuple(named.get(one, one) for one in clean_ids)
    return () if found == clean_ids else found


def _outcomes(
    run: Run,
    clean_ids: tuple[str, ...],
    units: tuple[str, ...],
    types: tuple[str, ...],
    place: Mapping[tuple[str, str], tuple[int, int]],
    needed: Ints,
    *,
    named: bool,
) -> Outcomes:
    """The run's counts over the rows of `place`. `named`: `needed` holds every row that it should have."""
    places = [place.get(pair) for pair in _pairs(run)]
    keep = np.array([found is not None for found in places])
    rows, columns = np.array([found for found in places if found is not None], np.int64).reshape(-1, 2).T
    verdict = run.rows["correct"][keep]
    # By rank, not by number: a number that a file claims costs no memory.
    asked, repeat = np.unique(run.rows["repeat"][keep].astype(np.int64), return_inverse=True)
    repeats = max(int(run.rows["repeat"].max()) + 1, run.record.settings.repeat)

    def count(which: np.ndarray[Any, Any]) -> Ints:
        made = np.zeros(needed.shape, np.int64)
        np.add.at(made, (rows[which], columns[which]), 1)
        return made

    is_clean = (columns == 0) & (types[0] == taxonomy.CLEAN)
    anchors = np.full((len(clean_ids), len(asked)), -1, np.int8)
    anchors[rows[is_clean], repeat[is_clean]] = verdict[is_clean]
    anchor = anchors[rows, repeat]
    met = run.rows["met"][keep] if run.live else np.ones(len(verdict), bool)
    paired = ~is_clean & (anchor >= 0) & (verdict >= 0) & met
    n = count(verdict >= 0)
    return Outcomes(
        clean_ids=clean_ids,
        units=units,
        types=types,
        correct=count(verdict == 1),
        n=n,
        missing=np.maximum(needed * repeats - n, 0),
        pairs=count(paired),
        kept=count(paired & (anchor == 1) & (verdict == 1)),
        lost=count(paired & (anchor > verdict)),
        gained=count(paired & (anchor < verdict)),
        unmet=count(~met & (verdict >= 0)),
        repeats=repeats,
        live=bool(run.live),
        unaccounted=0 if named else max(0, run.record.expected - len(run.rows["id"])),
    )


def _pairs(run: Run) -> Iterator[tuple[str, str]]:
    return zip(run.rows["clean_id"].tolist(), run.rows["type_code"].tolist(), strict=True)


def _refuse_other_datasets(runs: Sequence[Run]) -> None:
    """Rows of different texts are never put side by side as if they were one benchmark."""
    first = runs[0]
    hashes: dict[str, str] = {}
    for run in runs:
        if run.fingerprint != first.fingerprint:
            raise UserError(
                f"{first.path} and {run.path} are runs of different datasets "
                f"({first.dataset_label} and {run.dataset_label}): report them apart"
            )
        for row, found in zip(run.rows["id"].tolist(), run.rows["sample_hash"].tolist(), strict=True):
            if hashes.setdefault(row, found) != found:
                raise UserError(
                    f"{first.path} and {run.path} were asked different texts under the id {row!r}: "
                    "they are runs of different datasets"
                )


def unstated_rows(run: Run) -> frozenset[tuple[str, str]]:
    """(clean_id, type code) of rows that nobody could answer (docs/answerable.md), by their flags."""
    columns = (run.rows[name].tolist() for name in ("clean_id", "type_code", "flags"))
    return frozenset(
        (clean_id, code)
        for clean_id, code, flags in zip(*columns, strict=True)
        if GOLD_NOT_STATED in flags.split(",")
    )


def unstated(run: Run) -> frozenset[str]:
    """The clean ids that have such a row."""
    return frozenset(clean_id for clean_id, _ in unstated_rows(run))
