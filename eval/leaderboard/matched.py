"""`rbtc leaderboard verify --base-url`: rows of a submission asked again at an endpoint, and fresh ones.

    WORK/plan.json   which submission, the seed      drawn once; the same command goes on with it
         fresh/      the dataset built with that seed
         again/, new/    run folders of the rows of the dataset and of the fresh ones

It shows that the endpoint gives the submission's answers, and does so on rows that nobody had seen. Which
model is behind the endpoint it cannot show.
"""

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec

import robustbench_tc
from robustbench_tc import seeding
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs, models, predictions, prompts
from robustbench_tc.eval.evaluate import Evaluated, evaluate
from robustbench_tc.eval.inputs import Dataset
from robustbench_tc.eval.record import RunRecord, Settings
from robustbench_tc.eval.score import judge
from robustbench_tc.eval.stats.reasked import Answered, Reasked, reasked
from robustbench_tc.io.files import atomic_file
from robustbench_tc.io.numbers import number
from robustbench_tc.schema import Sample

from .checks import Asked
from .live_verify import refuse_live
from .records import Entry, Matched, Verification, encode
from .store import Store

ROWS = 300
"""Asked of either kind."""

Build = Callable[[int, Path], None]
"""Builds the dataset with another seed into a new folder. Raises UserError."""


class Plan(msgspec.Struct, frozen=True):
    """What a check began with."""

    submission: str
    seed: str


def match(
    store: Store,
    submission_id: str,
    asked: Asked,
    build: Build,
    *,
    base_url: str,
    model: str | None,
    work: Path,
    by: str,
    concurrency: int = 8,
    progress: Callable[[str], None] = lambda line: None,
) -> Verification:
    """Marks a submission whose rows the endpoint answers alike. Raises UserError where it does not, or does
    not answer; the same call goes on with what was answered."""
    submission = store.submission(submission_id)
    refuse_live(submission)
    if (already := store.verifications()[0].get(submission_id)) is not None:
        raise UserError(f"{submission_id} is {already.kind} already, since {already.verified_at[:10]}")
    entry = store.entry(submission_id)
    if entry is None or entry.verdicts is None:
        raise UserError(f"{submission_id} has no entry yet: rbtc leaderboard rebuild")
    if submission.fingerprint != asked.fingerprint():
        raise UserError(
            f"{submission_id} is of dataset version {submission.dataset_version}: name it with --dataset"
        )
    stored = msgspec.json.decode(
        (store.path(submission_id) / "run.json").read_bytes(), type=RunRecord
    ).settings
    if stored.mode == "prompt" and stored.prompt_version != prompts.prompt_version():
        raise UserError(f"{submission_id} was asked in prompts of another version: repeat its run (--run)")
    plan = _plan(work, submission_id)
    seed = int(plan.seed, 16)
    place = work / "fresh"
    if not place.is_dir():
        progress("building fresh rows")
        build(seed, place)
    fresh = inputs.load(str(place))
    old, new = asked.hashes(), fresh.hashes()
    unseen = [row for row in fresh.rows if row.id in old and old[row.id] != new[row.id]]
    if not unseen:
        raise UserError(f"{asked.name}: no row of it differs with another seed: repeat the run (--run)")
    name = model or stored.model
    found, digest = [], sha256()
    for what, data, rows in (("again", asked, asked.rows), ("new", fresh, unseen)):
        progress(f"asking {min(ROWS, len(rows))} {'fresh rows' if what == 'new' else 'rows of the dataset'}")
        run = _ask(data, drawn(rows, seed), stored, work / what, base_url, name, concurrency)
        digest.update(run.folder.predictions_path.read_bytes())
        found.append(_compare(run, data, submission.model, entry))
        _refuse_other(found[-1], submission_id, "fresh rows" if what == "new" else "the dataset's rows")
    again, unknown = found
    made = Verification(
        kind="endpoint-matched",
        submission=submission_id,
        verified_at=datetime.now(UTC).isoformat(timespec="seconds"),
        by=by,
        rows=again.rows,
        agree=again.rows - again.mismatches,
        submitted=again.submitted,
        repeated=again.again,
        p=again.p,
        predictions_sha256=digest.hexdigest(),
        package_version=robustbench_tc.__version__,
        matched=Matched(seed=plan.seed, model=name, again=again, fresh=unknown),
    )
    with store.locked():
        store.verify(made)
    return made


def _refuse_other(one: Reasked, submission: str, rows: str) -> None:
    if not one.fits:
        raise UserError(
            f"the endpoint does not match {submission} on {rows}: accuracy {number(one.again)} there, "
            f"{number(one.submitted)} submitted, difference {number(one.low)} to {number(one.high)}; "
            "it stays unverified"
        )


def drawn(rows: Iterable[Sample], seed: int) -> list[str]:
    """ROWS ids, in turns over clean and the types, so that every component and type has its share."""
    by_type: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_type[row.type_code].append(row.id)
    for code, ids in by_type.items():
        seeding.rng(seed, "rows asked again", code).shuffle(ids)
    turns = [ids[at] for at in range(ROWS) for ids in by_type.values() if at < len(ids)]
    return turns[:ROWS]


def _plan(work: Path, submission: str) -> Plan:
    path = work / "plan.json"
    if path.is_file():
        try:
            plan = msgspec.json.decode(path.read_bytes(), type=Plan)
            int(plan.seed, 16)
        except ValueError as error:
            raise UserError(f"{path} is damaged ({error}): name another --work folder") from None
        if plan.submission != submission:
            raise UserError(f"{work} is of submission {plan.submission}: name another --work folder")
        return plan
    if work.exists() and (not work.is_dir() or any(work.iterdir())):
        raise UserError(f"{work} is not empty and no check was begun there: name another --work folder")
    work.mkdir(parents=True, exist_ok=True)
    plan = Plan(submission, secrets.token_hex(6))
    with atomic_file(path) as beside:
        beside.write_bytes(encode(plan))
    return plan


def _ask(
    data: Dataset, ids: Sequence[str], stored: Settings, out: Path, base_url: str, name: str, concurrency: int
) -> Evaluated:
    decoding = dict(stored.decoding)
    template = decoding.pop("chat_template_kwargs", None)
    known = models.find(name)
    defaults: Mapping[str, object] = models.DEFAULT_DECODING if known is None else known.decoding()

    def same(run: Evaluated) -> None:
        if run.folder.record.settings.decoding != stored.decoding:
            raise UserError(
                f"{name} cannot be asked with the decoding of the submission: repeat its run (--run)"
            )

    run = evaluate(
        data.name,
        revision=data.revision,
        model=name,
        base_url=base_url,
        mode=stored.mode,
        ids=ids,
        out=out,
        score=False,
        concurrency=concurrency,
        system=stored.system,
        extra_body={**dict.fromkeys(defaults), **decoding},
        chat_template_args=template or {},
        started=same,
    )
    if run.asked.request_errors:
        raise UserError(
            f"{run.asked.request_errors} of {len(ids)} rows got no answer from {name}: the same command asks "
            "them again"
        )
    return run


def _compare(run: Evaluated, data: Dataset, model: str, entry: Entry) -> Reasked:
    rows, anchors = {row.id: row for row in data.rows}, data.anchors()
    clean_ids = sorted({row.clean_id for row in data.rows})
    place = {one: at for at, one in enumerate(clean_ids)}
    answered = []
    for one in predictions.read(run.folder.predictions_path):
        row, digits = rows[one.id], (entry.verdicts or {}).get(one.type_code, "")
        at = place[row.clean_id]
        if at < len(digits) and digits[at].isdigit():
            verdict = judge(msgspec.structs.replace(one, model=model), row, anchors[row.id])
            answered.append(Answered(row.clean_id, row.type_code, int(digits[at]), verdict.correct))
    if not answered:
        raise UserError("none of the rows has a verdict in the submission: repeat its run (--run)")
    return reasked(answered, entry.repeats)
