"""What is listed of an upload that passed its checks."""

from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

import robustbench_tc
from robustbench_tc.eval.record import Settings

from . import names
from .records import Kind, Submission

if TYPE_CHECKING:
    from .worker import Job


def submission_of(
    job: "Job", settings: Settings, *, kind: Kind, model: str, answers: str, label: str, fingerprint: str
) -> Submission:
    """The record. `answers`: sha256 of the stored answers; `label` and `fingerprint` of the dataset."""
    said = job.stated
    line = (job.user, model, settings.mode, fingerprint, answers, *settings.defend)
    day = datetime.fromisoformat(job.now).strftime("%Y%m%d")
    return Submission(
        id=f"{day}-{sha256(msgspec.json.encode(line)).hexdigest()[:12]}",
        kind=kind,
        user=job.user,
        model=model,
        mode=settings.mode,
        params_b=names.size_of(model) or said.params_b,
        family=names.family_of(model),
        submitted_at=job.now,
        dataset_version=label,
        fingerprint=fingerprint,
        repeats=settings.repeat,
        predictions_sha256=answers,
        package_version=robustbench_tc.__version__,
        card=said.card,
        licence=said.licence,
        weights=said.weights,
        price_in=said.price_in,
        price_out=said.price_out,
        defence=",".join(settings.defend),
    )
