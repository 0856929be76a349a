"""Which call of a conversation meets which fault: a pure function of plan, session and the order of calls."""

from collections.abc import Sequence

from robustbench_tc import seeding

from .plan import Fault, Plan
from .session import Session


def decide(plan: Plan, session: Session, tools: Sequence[str]) -> list[Fault | None]:
    """For each call of a conversation, by the name of its tool and in order, the fault that it meets.

    The first fault of the plan that applies. What is drawn for a call does not depend on the calls after it,
    so a conversation that is sent again, with more behind it, meets the same.
    """
    return [decide_one(plan, session, number, tool) for number, tool in enumerate(tools, 1)]


def decide_one(plan: Plan, session: Session, number: int, tool: str) -> Fault | None:
    """The fault that the session's call of that number, from 1, meets."""
    for place, fault in enumerate(plan.faults):
        key = ("door", fault.kind, str(place), str(session), str(number))
        meets = number in fault.at
        if fault.rate is not None:
            meets = seeding.rng(plan.seed, *key).random() < fault.rate
        if meets and (not fault.tools or tool in fault.tools):
            return fault
    return None


def may_replace(plan: Plan, tool: str) -> bool:
    """Whether the result of a call that was carried out may be replaced: the agent may make it again."""
    return plan.allow_writes or tool in plan.read_only or tool in plan.idempotent
