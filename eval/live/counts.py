"""Counts over a run's scores, type by type: what `rbtc live summary` prints."""

from collections.abc import Iterable

import msgspec

from robustbench_tc import live_types

from .score import LiveScore


class TypeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One type's episodes. Episodes without an answer are counted as such and nowhere else."""

    type_code: str
    episodes: int
    unanswered: int
    unmet: int
    """Answered episodes that never met their fault: no column after this one counts them."""
    judged: int
    """Episodes whose success could be decided."""
    success: int
    informed: int
    """Episodes whose information could be decided."""
    information: int
    met: int
    """Episodes in which a call met the fault."""
    recovered: int
    silent_failures: int
    false_failures: int
    false_claims: int
    unclear: int
    """Episodes of whose messages the rule cannot tell what the user was told."""


def counted(scores: Iterable[LiveScore]) -> list[TypeCounts]:
    """The counts of each type, clean first, then in the order of every table."""
    order = {"clean": -1} | {code: at for at, code in enumerate(live_types.type_codes())}
    groups: dict[str, list[LiveScore]] = {}
    for one in scores:
        groups.setdefault(one.type_code, []).append(one)
    return [
        TypeCounts(
            type_code=code,
            episodes=len(group),
            unanswered=sum(one.ended == "request_error" for one in group),
            unmet=sum(not one.counts and one.ended != "request_error" for one in group),
            judged=sum(one.success is not None for one in own),
            success=sum(bool(one.success) for one in own),
            informed=sum(one.information is not None for one in own),
            information=sum(bool(one.information) for one in own),
            met=sum(bool(one.met) for one in own),
            recovered=sum(bool(one.recovered) for one in own),
            silent_failures=sum(bool(one.silent_failure) for one in own),
            false_failures=sum(bool(one.false_failure) for one in own),
            false_claims=sum(bool(one.false_claim) for one in own),
            unclear=sum(one.told == "unclear" for one in own),
        )
        for code, group in sorted(groups.items(), key=lambda item: (order.get(item[0], len(order)), item[0]))
        for own in ([one for one in group if one.counts],)
    ]
