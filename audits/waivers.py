"""Waivers: failing checks that a person let pass, with the reason and a last day."""

import datetime
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .report import Check, Failure, check

SHIPPED = Path(__file__).with_name("waivers.json")


class Waiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `waivers.json`."""

    check: str
    """The check's id."""
    reason: str
    expires: datetime.date
    """The last day on which it holds."""
    only: tuple[str, ...] = ()
    """Only failures with these keys: one more, and the check fails as if nothing were waived."""
    profile: str | None = None
    """Only for builds of this profile."""
    kind: str = "benchmark"
    """Only for this kind of folder."""


def shipped(path: Path = SHIPPED) -> tuple[Waiver, ...]:
    """The waivers of the repository."""
    return msgspec.json.decode(path.read_bytes(), type=tuple[Waiver, ...])


def apply(
    checks: Sequence[Check],
    waivers: Sequence[Waiver],
    *,
    kind: str,
    profile: str | None,
    today: datetime.date,
) -> list[Check]:
    """The checks with those waived that a waiver covers today, and one about the waivers themselves."""
    out = list(checks)
    ids = [found.id for found in out]
    wrong: list[Failure] = []
    mine = [w for w in waivers if w.kind == kind and w.profile in (None, profile)]
    for waiver in mine:
        if waiver.check not in ids:
            wrong.append(Failure(waiver.check, "the waiver names no check of this audit"))
        elif not waiver.reason.strip():
            wrong.append(Failure(waiver.check, "the waiver gives no reason"))
        else:
            at = ids.index(waiver.check)
            found, named = out[at], (failure.key in waiver.only for failure in out[at].failures)
            covers = not waiver.only or (found.failed == len(found.failures) and all(named))
            if found.blocks and covers:
                out[at] = _waived(found, waiver, today)
    return [
        *out,
        check("gate.waivers", "A waiver names a check, gives a reason and ends.", max(1, len(mine)), wrong),
    ]


def _waived(found: Check, waiver: Waiver, today: datetime.date) -> Check:
    day = waiver.expires.isoformat()
    if today > waiver.expires:
        reason = f"{found.reason}; " if found.reason else ""
        return msgspec.structs.replace(found, reason=f"{reason}its waiver ended on {day}", expires=day)
    return msgspec.structs.replace(found, status="waived", reason=waiver.reason, expires=day)
