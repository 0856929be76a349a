"""What the user of a door should know while it serves: each kind of thing once, a line each."""

from collections.abc import Callable, Iterable
from difflib import get_close_matches

from robustbench_tc import sources

from .session import Session

MOST = 100
"""Lines."""
_REASONS = {
    "request_is_not_the_cases": "the request does not hold the case's words",
    "tools_are_not_the_cases": "none of the request's tools has a name of the case's tools",
    "name_is_taken": "a tool of the agent's has the name of one that would come in",
    "tools_cannot_be_read": "a tool of the request has no name, or parameters that are no JSON schema",
    "no_tools": "the request has no tools to perturb",
    "not_expressible": "the provider refuses two tools of one name",
    "history_is_perturbed": "the row of a further turn has another history",
    "path_is_not_perturbed": "only /chat/completions and /responses are perturbed, this is another API",
}
_KEY = "the door passes on the agent's own Authorization and adds none: give the key to the agent"
_STATUSES = {
    401: _KEY,
    403: _KEY,
    404: "--upstream has to end where /chat/completions begins, as a rule in /v1, and to serve the "
    "model that is named",
}


class Hints:
    """Says each kind of thing once."""

    def __init__(self, say: Callable[[str], None], clean_ids: Iterable[str]) -> None:
        """`clean_ids`: of the plan's dataset."""
        self._say = say
        self._cases = sorted({one.removeprefix(f"{sources.OWN}__") for one in clean_ids})
        self._said: set[str] = set()

    def skipped(self, session: Session, reason: str) -> None:
        """A request did not get its type."""
        if reason == "no_such_row":
            return  # the type does not apply to the case: nothing that the user could do
        why = _REASONS.get(reason, reason)
        if reason == "unknown_case":
            near = get_close_matches(session.case, self._cases, n=1, cutoff=0.5) or self._cases[:1]
            why = "the dataset has no such case" + (f"; did you mean {near[0]}?" if near else "")
        self.once(
            reason, f"session {session}: {why}; the request passes unchanged (said once; the journal has all)"
        )

    def status(self, status: int) -> None:
        """The model's server answered so. What it says stays in the journal: it may quote a key."""
        if status in _STATUSES:
            self.once(str(status), f"the server answers {status}: {_STATUSES[status]} (said once)")

    def once(self, kind: str, line: str) -> None:
        """A line, if none of its kind was said."""
        if kind in self._said or len(self._said) >= MOST:
            return
        self._said.add(kind)
        self._say(" ".join(line.split()))
