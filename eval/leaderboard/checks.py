"""The checks of a run over rows, in order. Each passes, or refuses with one line that says what to do.

Nothing of a run is believed that can be known: identity fields come from the dataset, verdicts from the
scorers, totals are counted. What is taken over is the answers themselves.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval import defend, predictions, wire
from robustbench_tc.eval.data import Selection
from robustbench_tc.eval.read_reply import read as read_reply
from robustbench_tc.eval.record import RunRecord
from robustbench_tc.schema import Prediction, Sample, dataset_label

from . import reading
from .datasets import LiveRows, Rows
from .entry import Refused, shown

LISTED = 10
"""Ids of each kind that a refusal names."""


def check(path: Path, record: RunRecord, data: Rows) -> tuple[Prediction, ...]:
    """The answers in a file of that record, under the dataset's own identity fields, in the dataset's order.
    Raises Refused by the first check that fails."""
    settings = record.settings
    found = asked(path, record, data, Prediction)
    hashes = data.hashes
    other = [one.id for one in found if one.sample_hash != hashes[one.id]]
    refuse("dataset", "these are not the dataset's", {"other words": other}, "evaluate on that version")
    whose = {(one.model, one.mode) for one in found}
    if whose != {(settings.model, settings.mode)}:
        raise Refused(
            "record",
            f"the answers are of {', '.join(sorted(shown(model) for model, _ in whose)[:3])}, run.json is of "
            f"{shown(settings.model)} in mode {settings.mode}: add the one that lies beside the file",
        )
    taken = tuple(_identified(one, data.by_id[one.id]) for one in found)
    mistakes: dict[str, list[str]] = {}
    for one in taken:
        for mistake in _mistakes(one, data.by_id[one.id], stated=settings.backend == "import"):
            mistakes.setdefault(mistake, []).append(one.id)
    refuse(
        "protocol", "the transition rows were not run in two passes", mistakes, "run them with `rbtc eval`"
    )
    return taken


def asked(path: Path, record: RunRecord, data: Rows | LiveRows, kind: type[reading.Row]) -> list[reading.Row]:
    """The answers or episodes in a file, in the dataset's order. Raises Refused unless the record is of all
    of this dataset, and each row is there once for each repeat, and answered."""
    settings = record.settings
    if settings.fingerprint != data.digest:
        theirs = dataset_label(record.dataset_version, settings.fingerprint)
        raise Refused(
            "dataset",
            f"the run is of the dataset {shown(theirs)}, and {data.title} is "
            f"{dataset_label(data.version, data.digest)}: evaluate on that one",
        )
    if not 1 <= settings.repeat <= reading.REPEATS:
        raise Refused("ids", f"every row was asked more than {reading.REPEATS} times, or less than once")
    wanted = dict.fromkeys((row, repeat) for row in data.by_id for repeat in range(settings.repeat))
    found = reading.rows(path, kind, len(wanted))
    counted = Counter((one.id, one.repeat) for one in found)
    problems = {
        "missing": [row for row, repeat in wanted if (row, repeat) not in counted],
        "unknown": [row for row, repeat in counted if (row, repeat) not in wanted],
        "duplicate": [row for (row, _), times in counted.items() if times > 1],
        "without an answer": [
            one.id
            for one in found
            if (one.status if isinstance(one, Prediction) else one.ended) == "request_error"
        ],
    }
    refuse("ids", "these are not the dataset's", problems, "the same `rbtc` command asks what is missing")
    if settings.selection != Selection() or record.expected != len(wanted):
        raise Refused(
            "record",
            f"the run is of {record.expected:,} answers or of selected rows, the dataset asks "
            f"{len(wanted):,}: run all of it, without --samples, --limit, --types, --sources and --ids",
        )
    _known_defences(settings.defend)
    at = {(one.id, one.repeat): one for one in found}
    return [at[key] for key in wanted]


def _known_defences(named: Sequence[str]) -> None:
    """Raises Refused for defences that are none, and such as are not written as `--defend` does."""
    others = [word for word in named if word != "schema"]  # made with jsonschema: not needed here
    try:
        known = defend.names(defend.parse(others))
    except UserError as error:
        raise Refused("record", f"the run's defences cannot be read ({shown(str(error), 160)})") from None
    if known != tuple(others) or len(named) > len(others) + 1:
        raise Refused("record", f"the run's defences are not written as `--defend` does: {', '.join(known)}")


def refuse(step: str, what: str, problems: Mapping[str, Sequence[str]], then: str) -> None:
    """Raises Refused where one of the problems has ids."""
    if there := {problem: ids for problem, ids in problems.items() if ids}:
        counts = ", ".join(f"{len(ids):,} {problem}" for problem, ids in there.items())
        named = [(problem, one) for problem, ids in there.items() for one in ids[:LISTED]]
        details = tuple(f"{problem}: {shown(one, 120)}" for problem, one in named)
        raise Refused(step, f"{what}: {counts}; {then}", details)


def _identified(one: Prediction, row: Sample) -> Prediction:
    """The answer under the dataset's identity fields."""
    transition = row.injected_error is not None
    return msgspec.structs.replace(
        one,
        **{name: getattr(row, name) for name in ("clean_id", "type_code", "component", "source", "category")},
        first_tool_calls=one.first_tool_calls if transition else None,
        first_output=one.first_output if transition else None,
        injected=one.injected if transition else None,
        attempts=one.attempts if predictions.counts_attempts(row) else None,
    )


def _mistakes(one: Prediction, row: Sample, *, stated: bool) -> Iterator[str]:
    """benchmark.md §6: an error is injected after a first reply with a call, and only then. `stated`: of
    imported predictions the first reply may not be there; then what they state of it counts."""
    if row.injected_error is None or one.status != "ok":
        return
    first = (one.first_output, one.first_tool_calls) if one.injected else (one.raw_output, one.tool_calls)
    called = bool(
        read_reply(*first, source=row.source, tools=row.tools, model=one.model, mode=one.mode).calls
    )
    on_trust = stated and one.first_output is None and one.first_tool_calls is None
    tries, met = one.attempts or 0, bool(one.injected)
    if one.injected is None:
        yield "do not say whether the error was injected"
    elif one.injected and not called and not on_trust:
        yield "met the error although the first reply has no call"
    elif called and not one.injected:
        yield "have a first reply with a call that was not answered with the error"
    elif predictions.counts_attempts(row) and not met <= tries <= wire.answered(row) * met:
        yield "do not say how many calls met the error"
