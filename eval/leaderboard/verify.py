"""`rbtc leaderboard verify`: a maintainer repeats a run, or asks an endpoint some of its rows again.

A repeated run that is not significantly another makes the run `reproduced`. An endpoint that gives its
answers makes it `endpoint-matched`; which model is behind the endpoint that cannot show.
"""

import json
import re
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import seeding
from robustbench_tc.errors import UserError
from robustbench_tc.eval import models, predictions, prompts
from robustbench_tc.eval.evaluate import Evaluated, evaluate
from robustbench_tc.eval.live.record import LiveRecord
from robustbench_tc.eval.record import RunRecord
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.stats.live import same_success
from robustbench_tc.eval.stats.reasked import Answered, reasked
from robustbench_tc.io.numbers import number, p_value
from robustbench_tc.schema import Sample

from . import boards, checker, entries, live, pulls, reading, review
from .datasets import Datasets
from .entry import Entry, Refused
from .place import STATUS, Folder, open_place
from .status import Status, Vouched, read
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
    base_url: str | None = None,
    model: str | None = None,
    work: Path | None = None,
    by: str,
    dataset: str | None = None,
    said: Callable[[str], None] = lambda line: None,
) -> Vouched:
    """Compares, and writes the tier of `run` (`org/model/id`) into status.yaml.

    `repeated`: the folder of a run of the same settings. `base_url`: where `model` (the run's own name for
    it) is asked; `work` is the folder of those answers, and the same call goes on with it. Raises UserError
    where the run is not repeated, which then stays as it is.
    """
    there = open_place(place)
    status, found, dropped = entries.read_entries(there)
    entry = next((one for one in found if one.run == run), None)
    if entry is None:
        raise UserError(f"{place} has no entry of {run}: {dropped.get(run, 'there is no such run')}")
    named = msgspec.structs.replace(status, dataset=dataset or status.dataset)
    data = Datasets.of_status(named, Path(place) if isinstance(there, Folder) else None)
    if entry.fingerprint not in data.fingerprints:
        raise UserError(f"{run} is of version {entry.version} of {entry.dataset}: name it with --dataset")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        folder = review.fetch(there, run, pulls.runs(there.files())[run], scratch, None)
        if repeated is not None:
            reason = _repeated(entry, folder, repeated, data, scratch)
        elif base_url is not None:
            out = work or Path(f"verify-{run.replace('/', '-')}")
            reason = _endpoint(entry, folder, data, base_url, model, out, said)
        else:
            raise UserError("name a repeated run (--run) or an endpoint (--base-url)")
    vouched = Vouched(
        tier="reproduced" if repeated else "endpoint-matched",
        by=by,
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        reason=reason,
    )
    there.commit({STATUS: with_tier(there.read(STATUS), status, run, vouched)}, f"{vouched.tier}: {run}")
    return vouched


def with_tier(text: bytes, status: Status, run: str, vouched: Vouched) -> bytes:
    """`status.yaml` with one more tier, and what maintainers have written there."""
    key = f"  {json.dumps(run)}: "
    line = key + json.dumps(msgspec.to_builtins(vouched))
    kept = [one for one in text.decode().splitlines() if not one.startswith(key)]
    heads = [at for at, one in enumerate(kept) if re.fullmatch(r"tiers:\s*(\{\s*\})?\s*(#.*)?", one)]
    at = heads[0] if heads else len(kept)
    made = "\n".join((*kept[:at], "tiers:", line, *kept[at + 1 :], "")).encode()
    if read(made, STATUS) != msgspec.structs.replace(status, tiers=status.tiers | {run: vouched}):
        raise UserError(f"{STATUS} is written in a way that cannot be added to: put under `tiers`:{line}")
    return made


def _repeated(entry: Entry, folder: Path, repeated: Path, data: Datasets, scratch: Path) -> str:
    """What was compared with a repeated run. Raises UserError."""
    again = scratch / "again"
    again.mkdir()
    org, _, name = entry.run.split("/")
    kind: type[Any] = LiveRecord if entry.kind == "live" else RunRecord
    try:
        made = prepare(repeated, entry.submission, data, org=org, day=name[:8], into=again).entry
        before, after = (reading.record(one / checker.RECORD, kind) for one in (folder, again))
        if (made.kind, made.fingerprint) != (entry.kind, entry.fingerprint):
            raise UserError(f"{repeated} is of another dataset than {entry.run}")
        theirs, ours = before.settings, after.settings
        if other := [what for what in SAME if getattr(theirs, what) != getattr(ours, what)]:
            raise UserError(f"{repeated} has another {', '.join(other)} than {entry.run}")
        p, submitted, here = _compared(entry, made, folder, again, data)
    except Refused as error:
        raise UserError(f"{repeated} is not taken: {error}") from None
    figures = f"{number(here)} here, {number(submitted)} submitted, p = {p_value(p)}"
    if p < LEVEL:
        raise UserError(f"{repeated} does not repeat {entry.run}: {figures}; it stays as it is")
    return f"run again: {figures}"


def _compared(
    entry: Entry, made: Entry, folder: Path, again: Path, data: Datasets
) -> tuple[float, float, float]:
    """p of "equally good", success with perturbations or faults as submitted, and here."""
    if entry.core is not None and made.core is not None:
        (right, n), (again_right, again_n) = (one.counts["perturbed"] for one in (entry.core, made.core))
        return boards.p_of(entry, made) or 0.0, right / n, again_right / again_n
    assert data.live is not None
    scores = []
    for one in (folder, again):
        played = live.check(one, reading.record(one / checker.RECORD, LiveRecord), data.live)
        scores.append(live.replayed(played, data.live))
    same = same_success(*scores)
    return same.p, same.a, same.b


def drawn(rows: Iterable[Sample], seed: int) -> list[str]:
    """ROWS ids, or all."""
    ids = [row.id for row in rows]
    return seeding.rng(seed, "rows asked again").sample(ids, min(ROWS, len(ids)))


def _endpoint(
    entry: Entry,
    folder: Path,
    data: Datasets,
    base_url: str,
    model: str | None,
    work: Path,
    said: Callable[[str], None],
) -> str:
    """What was compared with an endpoint's answers. Raises UserError."""
    if entry.kind == "live":
        raise UserError(f"{entry.run} is a live run: play it again, and name the folder with --run")
    settings = reading.record(folder / checker.RECORD, RunRecord).settings
    if settings.mode == "prompt" and settings.prompt_version != prompts.prompt_version():
        raise UserError(f"{entry.run} was asked in prompts of another version: repeat the run (--run)")
    rows = next(one for one in data.rows if one.digest == entry.fingerprint)
    ids = drawn(rows.rows, int(entry.run[-12:], 16))
    name = model or settings.model
    said(f"asking {name} {len(ids)} rows again")
    known = models.find(name)
    decoding = dict(settings.decoding)
    template = decoding.pop("chat_template_kwargs", None)

    def same(run: Evaluated) -> None:
        if run.folder.record.settings.decoding != settings.decoding:
            raise UserError(f"{name} cannot be asked with the decoding of the run: repeat the run (--run)")

    run = evaluate(
        rows.name,
        revision=rows.revision,
        model=name,
        base_url=base_url,
        mode=settings.mode,
        ids=ids,
        out=work,
        score=False,
        system=settings.system,
        extra_body={
            **dict.fromkeys(models.DEFAULT_DECODING if known is None else known.decoding()),
            **decoding,
        },
        chat_template_args=template or {},
        started=same,
    )
    if run.asked.request_errors:
        raise UserError(f"{run.asked.request_errors} rows got no answer: the same command asks them again")
    anchors, submitted = rows.anchors(), dict.fromkeys(ids, 0)
    for one in reading.predictions(folder / checker.PREDICTIONS, len(rows.rows) * settings.repeat):
        if one.id in submitted:
            submitted[one.id] += judge(one, rows.by_id[one.id], anchors[one.id]).correct
    answered = []
    for one in predictions.read(run.folder.predictions_path):
        again = msgspec.structs.replace(one, model=settings.model)  # how to read it goes by the model
        correct = judge(again, rows.by_id[one.id], anchors[one.id]).correct
        answered.append(Answered(one.clean_id, one.type_code, submitted[one.id], correct))
    found = reasked(answered, settings.repeat)
    figures = (
        f"{found.rows} rows, accuracy {number(found.again)} there, {number(found.submitted)} submitted, "
        f"difference {number(found.low)} to {number(found.high)}"
    )
    if not found.fits:
        raise UserError(f"the endpoint does not match {entry.run} on {figures}; it stays as it is")
    return f"endpoint asked again: {figures}"
