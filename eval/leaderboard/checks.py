"""The checks of a run over rows, in order. Each passes, or refuses with one line that says what to do.

Nothing of a run is believed that can be known: identity fields come from the dataset, verdicts from the
scorers, totals are counted. What is taken over is the answers themselves.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval import defend, predictions, wire
from robustbench_tc.eval.inputs import Selection
from robustbench_tc.eval.live.record import LiveRecord
from robustbench_tc.eval.read_reply import read_reply
from robustbench_tc.eval.record import RunRecord, Session
from robustbench_tc.io.resolve import HUB_ID
from robustbench_tc.live import Episode
from robustbench_tc.schema import Json, Prediction, Sample

from . import reading
from .datasets import LiveRows, Rows
from .entry import Refused
from .names import shown

LISTED = 10
"""Ids of each kind that a refusal names."""

_Record = TypeVar("_Record", bound=RunRecord | LiveRecord)
_One = TypeVar("_One", Prediction, Episode)


def check(folder: Path, record: RunRecord, data: Rows) -> tuple[RunRecord, tuple[Prediction, ...]]:
    """The public record of a run folder, and its answers under the dataset's own identity fields, in the
    dataset's order. Raises Refused by the first check that fails."""
    same_dataset(record, data)
    settings = record.settings
    found = reading.predictions(folder / "predictions.parquet", len(data.rows) * settings.repeat)
    hashes = data.hashes()
    other = [one.id for one in found if one.sample_hash != hashes.get(one.id, one.sample_hash)]
    refuse("dataset", "these are not the dataset's", {"other words": other}, "evaluate on that version")
    unanswered = [one.id for one in found if one.status == "request_error"]
    ordered = in_order(found, list(data.by_id), settings.repeat, unanswered, "rbtc eval")
    same_settings(record, len(ordered))
    asked = {(one.model, one.mode) for one in ordered}
    if asked != {(settings.model, settings.mode)}:
        raise Refused(
            "record",
            f"the answers are of {', '.join(sorted(shown(model) for model, _ in asked)[:3])}, run.json is of "
            f"{shown(settings.model)} in mode {settings.mode}: add the one that lies beside the file",
        )
    taken = tuple(_identified(one, data.by_id[one.id]) for one in ordered)
    _protocol(taken, data, stated=settings.backend == "import")
    return msgspec.structs.replace(public(record), totals=predictions.totals(taken)), taken


def public(record: _Record) -> _Record:
    """What of a run's record everybody may see, so no paths, addresses and names of headers: how it was
    asked, its totals, and how many requests all sessions made together."""
    made, again = (sum(getattr(one, name) for one in record.sessions) for name in ("requests", "retries"))
    session = Session(
        started="", endpoint="", package_version="", concurrency=0, requests=made, retries=again
    )
    kept = ("format", "dataset_version", "expected", "totals")
    return type(record)(
        dataset=record.dataset if HUB_ID.fullmatch(record.dataset) else Path(record.dataset).name,
        dataset_revision=None,
        settings=msgspec.structs.replace(
            record.settings, headers=(), model=public_model(record.settings.model)
        ),
        sessions=[session] if 0 <= again <= made <= 10**12 and made else [],
        **{name: getattr(record, name) for name in kept},
    )


def public_model(name: str) -> str:
    """The name of a model that was asked; of one in a folder or at an address the last part, marked so."""
    if re.match(r"[~./\\]|[A-Za-z]:\\|\w+://", name) or name.count("/") > 1:
        return "local:" + re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return name


def same_dataset(record: RunRecord | LiveRecord, data: Rows | LiveRows) -> None:
    """Raises Refused for a run of another dataset, or one that asked its rows too often."""
    there, version = record.settings.fingerprint, record.dataset_version or "unversioned"
    if (there, version) != (data.digest, data.label):
        raise Refused(
            "dataset",
            f"the run is of dataset version {shown(version)}, fingerprint {shown(there, 12)}; {data.title} "
            f"is version {data.label}, fingerprint {data.digest[:12]}: evaluate on that version",
        )
    if not 1 <= record.settings.repeat <= reading.REPEATS:
        raise Refused("ids", f"every row was asked more than {reading.REPEATS} times, or less than once")


def same_settings(record: RunRecord | LiveRecord, expected: int) -> None:
    """Raises Refused for a run of selected rows, and for defences that are none."""
    settings = record.settings
    if settings.selection != Selection() or record.expected != expected:
        raise Refused(
            "record",
            f"the run is of {record.expected:,} answers or of selected rows, the dataset asks {expected:,}: "
            "run all of it, without --samples, --limit, --types, --sources and --ids",
        )
    others = [word for word in settings.defend if word != "schema"]  # made with jsonschema: not needed here
    try:
        known = defend.names(defend.parse(others[: defend.MOST]))
    except UserError as error:
        raise Refused("record", f"the run's defences cannot be read ({shown(str(error), 160)})") from None
    if known != tuple(others) or len(settings.defend) > len(others) + 1:
        raise Refused("record", f"the run's defences are not written as `--defend` does: {', '.join(known)}")


def in_order(
    found: Sequence[_One], ids: Sequence[str], repeats: int, unanswered: Sequence[str], command: str
) -> list[_One]:
    """Answers or episodes in the dataset's order. Raises Refused unless each is there once and answered.
    `command` asks what is missing."""
    at = {(one.id, one.repeat): one for one in found}
    wanted = dict.fromkeys((row, repeat) for row in ids for repeat in range(repeats))
    counted = Counter((one.id, one.repeat) for one in found)
    problems = {
        "missing": [row for row, repeat in wanted if (row, repeat) not in at],
        "unknown": [row for row, repeat in at if (row, repeat) not in wanted],
        "duplicate": [row for (row, _), times in counted.items() if times > 1],
        "without an answer": unanswered,
    }
    refuse("ids", "these are not the dataset's", problems, f"the same `{command}` asks what is missing")
    return [at[key] for key in wanted]


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


def _protocol(taken: Iterable[Prediction], data: Rows, *, stated: bool) -> None:
    """benchmark.md §6: an error is injected after a first reply with a call, and only then. `stated`: of
    imported predictions the first reply may not be there; then what they state of it counts."""
    problems: dict[str, list[str]] = {}

    def has_call(text: str | None, calls: Json, row: Sample, one: Prediction) -> bool:
        return bool(read_reply(row, text, calls, model=one.model, mode=one.mode).calls)

    for one in taken:
        row = data.by_id[one.id]
        if row.injected_error is None or one.status != "ok":
            continue
        tries, met = one.attempts or 0, bool(one.injected)
        on_trust = stated and one.first_output is None and one.first_tool_calls is None
        what = None
        if one.injected is None:
            what = "do not say whether the error was injected"
        elif one.injected and not on_trust and not has_call(one.first_output, one.first_tool_calls, row, one):
            what = "met the error although the first reply has no call"
        elif not one.injected and has_call(one.raw_output, one.tool_calls, row, one):
            what = "have a first reply with a call that was not answered with the error"
        elif predictions.counts_attempts(row) and not met <= tries <= wire.answered(row) * met:
            what = "do not say how many calls met the error"
        if what is not None:
            problems.setdefault(what, []).append(one.id)
    refuse(
        "protocol", "the transition rows were not run in two passes", problems, "run them with `rbtc eval`"
    )
