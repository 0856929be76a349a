"""`rbtc leaderboard verify`: a maintainer repeats a run, or asks an endpoint rows that nobody has seen.

A repeated run that is not significantly another makes the run `reproduced`. An endpoint that gives its
answers makes it `endpoint-matched`; which model is behind the endpoint that cannot show.
"""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from secrets import randbits
from typing import Any

import msgspec
from msgspec.structs import replace

from robustbench_tc import seeding
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs, models, predictions
from robustbench_tc.eval.evaluate import Evaluation
from robustbench_tc.eval.request_settings import RequestOptions
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.stats.paired import reasked
from robustbench_tc.eval.stats.values import codes_of
from robustbench_tc.eval.who import Effort, Named
from robustbench_tc.io.numbers import number, p_value
from robustbench_tc.schema import Prediction, Sample

from . import boards, checker, checks, live, repository
from .datasets import Datasets
from .entry import Entry, Refused, Status, Vouched, parse_status
from .repository import STATUS, open_place
from .submit import prepare

LEVEL = 0.05
"""A difference that chance gives less often than this is one."""

ROWS = 300
"""Asked of an endpoint."""

SAME = ("mode", "decoding", "prompt_version", "repeat", "defend")
"""Settings that a repetition has to share."""


def verify(
    place: str,
    run: str,
    *,
    repeated: Path | None = None,
    base_url: str | Sequence[str] = (),
    model: str | None = None,
    work: Path | None = None,
    by: str,
    dataset: str | None = None,
    said: Callable[[str], None] = lambda line: None,
) -> Vouched:
    """Compares, and writes the tier of `run` (`org/model/id`) into status.yaml.

    `repeated`: the folder of a run of the same settings. `base_url`: where `model` (the run's own name for
    it) is asked rows in new words; they and the answers lie in `work`, and the same call goes on with
    it. Raises UserError where the run is not repeated, which then stays as it is.
    """
    if (repeated is None) == (not base_url):
        raise UserError("name the repeated run with --repeated, or an endpoint with --base-url")
    there = open_place(place)
    status, found, dropped = repository.read_entries(there)
    entry = next((one for one in found if one.run == run), None)
    if entry is None:
        raise UserError(f"{place} has no entry of {run}: {dropped.get(run, 'there is no such run')}")
    data = Datasets.of_status(replace(status, dataset=dataset or status.dataset), there.folder)
    if entry.fingerprint not in data.fingerprints:
        raise UserError(f"{run} is of version {entry.version} of {entry.dataset}: name it with --dataset")
    with tempfile.TemporaryDirectory() as temporary:
        folder = repository.fetch(there, run, repository.runs(there.files())[run], Path(temporary))
        if repeated is not None:
            reason = _repeated(entry, folder, repeated, data, Path(temporary, "again"))
        else:
            work = work or Path(f"verify-{run.replace('/', '-')}")
            reason = _endpoint(entry, folder, data, base_url, model, work, said)
    vouched = Vouched(
        tier="reproduced" if repeated else "endpoint-matched",
        by=by,
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        reason=reason,
    )
    there.commit({STATUS: with_tier(there.read_file(STATUS), status, run, vouched)}, f"{vouched.tier}: {run}")
    return vouched


def with_tier(text: bytes, status: Status, run: str, vouched: Vouched) -> bytes:
    """`status.yaml` with one more tier, and what maintainers have written there."""
    key = f"  {json.dumps(run)}: "
    line = key + json.dumps(msgspec.to_builtins(vouched))
    kept = re.sub(rf"(?m)^{re.escape(key)}.*\n?", "", text.decode())
    head = re.search(r"(?m)^tiers:\s*?(\{\s*\})?[ \t]*(#.*)?$", kept)
    before, after = (kept[: head.start()], kept[head.end() :]) if head else (kept, "\n")
    made = f"{before}tiers:\n{line}{after}".encode()
    if parse_status(made, STATUS) != replace(status, tiers=status.tiers | {run: vouched}):
        raise UserError(f"{STATUS} has a form that cannot be edited here; add under `tiers`:{line}")
    return made


def _check_same(entry: Entry, theirs: Any, ours: Any) -> None:
    """Raises UserError for a repetition with other settings."""
    if other := [what for what in SAME if getattr(theirs, what) != getattr(ours, what)]:
        raise UserError(
            f"this has another {', '.join(other)} than {entry.run}: repeat it with the same settings"
        )


def _repeated(entry: Entry, folder: Path, repeated: Path, data: Datasets, again: Path) -> str:
    """What was compared with a repeated run. Raises UserError."""
    again.mkdir()
    try:
        made = prepare(
            repeated,
            entry.submission,
            data,
            org=entry.run.split("/")[0],
            day=entry.day.replace("-", ""),
            into=again,
        )
        if (made.kind, made.fingerprint) != (entry.kind, entry.fingerprint):
            raise UserError(f"{repeated} is of another dataset than {entry.run}")
        records = [checks.read_record(one / checker.RECORD) for one in (folder, again)]
        _check_same(entry, *(one.settings for one in records))
        if data.live is not None and entry.kind == "live":
            played = [
                live.check(one / checker.EPISODES, record, data.live)
                for one, record in zip((folder, again), records, strict=True)
            ]
            faulted = set(codes_of("all"))
            before, now = (
                {
                    (one.id, one.repeat): one
                    for one in live.replayed(episodes, data.live)
                    if one.type_code in faulted and one.success is not None
                }
                for episodes in played
            )
            both = before.keys() & now.keys()
            if not both:
                raise UserError(f"{repeated} has a verdict on no faulted episode that {entry.run} has one on")
            submitted, here, change = reasked(
                [(before[k].clean_id, before[k].success or 0, bool(now[k].success)) for k in both], 1
            )
            p = change.p or 0.0
        else:
            assert entry.core is not None and made.core is not None
            p = boards.p_of(entry, made) or 0.0
            counts = entry.core.counts["perturbed"], made.core.counts["perturbed"]
            submitted, here = (right / n for right, n in counts)
    except Refused as error:
        raise UserError(f"{repeated} is not accepted: {error}") from None
    figures = f"{number(here)} here, {number(submitted)} submitted, p = {p_value(p)}"
    if p < LEVEL:
        raise UserError(f"{repeated} does not repeat {entry.run}: {figures}; it stays as it is")
    return f"run again: {figures}"


def drawn(rows: Sequence[Sample], fingerprint: str) -> list[str]:
    """ROWS ids, or all. `fingerprint`: of the dataset, which follows from the seed that nobody knew."""
    ids = [row.id for row in rows]
    return seeding.rng(0, "rows asked again", fingerprint).sample(ids, min(ROWS, len(ids)))


def _endpoint(
    entry: Entry,
    folder: Path,
    data: Datasets,
    base_url: str | Sequence[str],
    model: str | None,
    work: Path,
    said: Callable[[str], None],
) -> str:
    """What was compared with an endpoint's answers to rows of the same samples and types in new words: stored
    answers do not fit them. Raises UserError."""
    if entry.kind != "core":
        raise UserError(
            f"{entry.run} is a run of kind {entry.kind}: repeat it, and name the folder with --repeated"
        )
    settings = checks.read_record(folder / checker.RECORD).settings
    rows = next(one for one in data.rows if one.fingerprint() == entry.fingerprint)
    if not (work / "rows").is_dir():
        said("building rows that nobody has seen")
        from robustbench_tc.audits.again import fresh_rows  # a Space has no audits, and does not ask

        fresh_rows(
            f"{rows.name}@{rows.revision}" if rows.revision else rows.name, randbits(48), work / "rows"
        )
    fresh = inputs.load_samples(str(work / "rows"))
    seen, hashes = rows.hashes, fresh.hashes
    unseen = [row for row in fresh.rows if row.id in seen and seen[row.id] != hashes[row.id]]
    ids = drawn(unseen, fresh.fingerprint())
    said(f"asking {model or settings.model} {len(ids)} rows")
    named = Named(
        model=model or settings.model,
        base_url=base_url,
        mode=settings.mode,
        defend=settings.defend,
        early_stop=False,
    )
    decoding = dict.fromkeys((*models.DEFAULT_DECODING, "chat_template_kwargs")) | settings.decoding
    who = named.checked(RequestOptions(system=settings.system, extra_body=decoding))
    run = Evaluation.begin(fresh, who, inputs.selection_of(ids=ids), out=work / "run")
    _check_same(entry, settings, replace(run.folder.record.settings, repeat=settings.repeat))
    run.ask(Effort())
    if run.asked.request_errors:
        raise UserError(f"{run.asked.request_errors} rows got no answer: the same command asks them again")

    def right(answers: Iterable[Prediction], of: inputs.Dataset) -> Counter[str]:
        """How often each row was answered right. How to read it goes by the model's name."""
        ours = [replace(one, model=settings.model) for one in answers if one.id in ids]
        anchors = of.anchors()
        return Counter(one.id for one in ours if judge(one, of.by_id[one.id], anchors[one.id]).correct)

    most = len(rows.rows) * settings.repeat
    submitted = right(checks.read_rows(folder / checker.PREDICTIONS, Prediction, most), rows)
    again = right(predictions.read_predictions(run.folder.answers_path), fresh)
    asked = [rows.by_id[one] for one in ids]
    before, now, change = reasked(
        [(row.clean_id, submitted[row.id], row.id in again) for row in asked], settings.repeat
    )
    figures = (
        f"{change.n} rows in new words, accuracy {number(now)} there, {number(before)} submitted, "
        f"difference {number(change.low)} to {number(change.high)}"
    )
    if not change.low <= 0 <= change.high:
        raise UserError(f"the endpoint does not match {entry.run} on {figures}; it stays as it is")
    return f"endpoint asked: {figures}"
