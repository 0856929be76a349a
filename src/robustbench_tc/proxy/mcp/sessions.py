"""Sessions of the MCP door by name: what each needs of the plan, its dataset and the journal."""

from collections.abc import Mapping
from typing import NamedTuple

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.own.book import Book
from robustbench_tc.schema import Json

from ..journal import Journal
from ..plan import Plan
from ..scenes import Scenes, clean_ids
from ..session import Session
from .calls import Calls


def check(plan: Plan) -> None:
    """Refuses types that could never be met: those that change the request, which this door does not see,
    and those of the first calls where the types begin later. Raises UserError."""
    asked = [code for code in plan.types if code != taxonomy.CLEAN and taxonomy.get(code).channel == "offers"]
    if asked and plan.bench is None:
        raise UserError(
            f"the type {asked[0]} states a preference in the request, and this door sees tools only: "
            "use `rbtc proxy llm`"
        )
    first = [code for code in plan.types if code != taxonomy.CLEAN and taxonomy.get(code).answered_calls]
    if first and plan.types_after:
        raise UserError(
            f"the type {first[0]} answers a session's first calls, which are over when 'types_after' begins: "
            "leave 'types_after' out, or write it as a fault with 'at'"
        )


class Sessions(NamedTuple):
    """Makes the calls of a session."""

    plan: Plan
    scenes: Scenes
    journal: Journal
    book: Book | None = None
    """Of a dataset of own tools: what its cases' tools answer."""

    def calls(self, session: Session) -> Calls:
        """A new session's."""
        return Calls(self.plan, self.scenes, self.journal, session, self._results(session.case))

    def _results(self, case: str) -> Mapping[str, Json]:
        known = {} if self.book is None else self.book.results
        return next((known[one] for one in clean_ids(case) if one in known), {})
