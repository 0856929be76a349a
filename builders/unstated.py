"""Samples whose golden answer nobody could know: they leave the profile `full`, elsewhere their rows say so.

The 199 are the paper's and the bundled ones are shown as they are, so their rows stay and carry the flag
`gold_not_stated`; without them the rows are the subset `verified`. `known_issues` names each, with what is
missing.
"""

from robustbench_tc.schema import GOLD_NOT_STATED, Sample

from . import answerable
from .sources import KnownIssue, Pool, Profile


def judged(pool: Pool, profile: Profile) -> Pool:
    """The pool with flags, or (`full`) without the samples that would carry one; an issue for each."""
    samples: list[Sample] = []
    issues = list(pool.issues)
    for sample in pool.samples:
        missing = answerable.audit(sample).missing
        if missing is None or profile != "full":
            samples.append(answerable.flagged(sample, missing is not None))
        if missing is not None:
            file, record = pool.places[sample.clean_id]
            issues.append(
                KnownIssue(
                    source=sample.source,
                    file=file,
                    record=record,
                    clean_id=sample.clean_id,
                    reason=GOLD_NOT_STATED,
                    detail=missing,
                    status="left_out" if profile == "full" else "flagged",
                )
            )
    return Pool(tuple(samples), tuple(issues), pool.places)
