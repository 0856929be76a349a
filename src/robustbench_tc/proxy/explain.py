"""What each call of a session will meet, as its plan says; nobody is asked."""

from collections.abc import Iterator

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.result_faults import Fault
from robustbench_tc.shown import Part, Table

from .plan import Plan, Session


class Meeting(msgspec.Struct, frozen=True):
    """A call and a fault that it meets, if it is of the fault's tools and has its arguments."""

    call: int
    fault: Fault


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """A plan as it is for one session."""

    session: str
    type: str
    answered: int
    """How many replies with calls the type answers itself."""
    from_call: int
    """The first call that meets the type's tools."""
    calls: int
    """How many were looked at."""
    meetings: tuple[Meeting, ...]

    def shown(self) -> Iterator[Part]:
        """The session's type, then a line for each meeting."""
        about = f", from call {self.from_call} on" if self.from_call > 1 else ""
        if self.answered:
            about = f", which answers the calls of the first {self.answered} replies"
        yield f"session {self.session}: type {self.type}{about}"
        if not self.meetings:
            yield f"none of the first {self.calls} calls meets a fault"
            return
        lines = [
            (
                str(one.call),
                one.fault.kind + (f", {one.fault.waits:.3g} s" if one.fault.seconds is not None else ""),
                ", ".join(one.fault.tools) or "any",
                ", ".join(f"{name}={value!r}" for name, value in one.fault.arguments.items()) or "any",
            )
            for one in self.meetings
        ]
        title = f"of the agent's own first {self.calls} calls; of several faults the first is met"
        yield Table(("call", "fault", "tools", "arguments"), lines, title, ("tools", "arguments"))


def explained(plan: Plan, session: Session, calls: int) -> Explained:
    """The plan for a session's first calls."""
    code = plan.type_of(session)
    return Explained(
        session=str(session),
        type=code,
        answered=0 if code == taxonomy.CLEAN else taxonomy.get(code).answered_calls,
        from_call=plan.types_after + 1,
        calls=calls,
        meetings=tuple(
            Meeting(call, fault) for call in range(1, calls + 1) for fault in plan.standing(session, call)
        ),
    )
