"""The LLM door: a relay that carries out a plan."""

from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Json, Sample, Tool

from . import head
from .chat import Chat
from .dialect import ChatCompletions, Dialect, Unsupported
from .exchange import Handling
from .held import Held
from .hints import Hints
from .journal import Exchange, Journal, Opened, digest, remember
from .offer import NOT_EXPRESSIBLE, name_of
from .plan import EFFECTS, Plan
from .relay import SILENCE_S, Refused, Relay, session_of
from .responses import Responses
from .scene import Scene
from .scenes import Scenes, tool_of
from .secrets import Secrets
from .session import Session
from .upstream import secrets_of

DIALECTS: dict[str, Dialect] = {"/chat/completions": ChatCompletions(), "/responses": Responses()}
"""What a plan is carried out in, by its path; anything else passes as it came."""


OTHER_APIS = frozenset({"/completions", "/messages"})
"""Where models are asked, too; those requests pass as they came, and the journal says so."""


class Door(Relay):
    """Carries out a plan. One instance serves many sessions at once."""

    def __init__(
        self,
        upstream: str,
        plan: Plan,
        *,
        rows: tuple[Sample, ...] = (),
        journal: Path | None = None,
        fingerprint: str | None = None,
        silence_s: float = SILENCE_S,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`rows`: those of the plan's dataset, whose `fingerprint` the journal keeps. `say` gets a line for
        what the user should know (`hints`). Raises UserError."""
        super().__init__(upstream, silence_s=silence_s)
        _check(plan)
        self.plan = plan
        self.scenes = Scenes(plan, rows)
        opened = Opened.of(plan, fingerprint, journal)
        self.journal = Journal(journal, opened, by=digest(self.address))
        self.held = Held()
        if journal is not None:
            remember(journal, self.held)
        self.hints = Hints(say, (row.clean_id for row in rows))
        self._refuses_duplicates = False

    async def close(self) -> None:
        await super().close()
        self.journal.close()

    async def exchange(
        self, request: web.Request, name: str | None, path: str, body: bytes
    ) -> web.StreamResponse:
        session = session_of(request, name, self.plan, "base URL …/s/<case>.<repeat>/v1")
        dialect = DIALECTS.get(bare := path.partition("?")[0])
        if bare in OTHER_APIS and request.method == "POST" and not self.plan.idle:
            self._not_perturbed(session, secrets_of(request.headers, request.rel_url.raw_query_string))
        if self.plan.idle or request.method != "POST" or dialect is None:
            return await self.passed_on(request, path, body)
        try:
            return await Handling(self, dialect, request, session, path, body).run()
        except Unsupported as error:
            raise Refused(str(error)) from None

    def _not_perturbed(self, session: Session, secrets: Secrets) -> None:
        """Notes a request of another API: a model is asked, and nothing happens to it."""
        reason, code = "path_is_not_perturbed", self.scenes.code(session)
        self.hints.skipped(session, reason)
        self.journal.write(
            Exchange(
                session=str(session),
                case=session.case,
                repeat=session.repeat,
                number=self.journal.number(str(session)),
                type=code,
                skipped=reason,
            ),
            secrets,
        )

    def scenes_of(self, session: Session, body: Chat, flat: bool) -> list[Scene]:
        """What the session gets in this request, and in the further turns of its case."""
        said = head.texts(body["messages"])
        try:
            tools = _tools(body, flat)
        except ValueError:
            return [self.scenes.as_it_came(session, said, (), "tools_cannot_be_read")]
        first = self.scenes.of(session, said, tools)
        if self._is_refused(first):
            first = self.scenes.as_it_came(session, said, tools, NOT_EXPRESSIBLE)
        later = (
            one._replace(row=one.clean, skipped=NOT_EXPRESSIBLE)
            if one.row is not one.clean and self._is_refused(one)
            else one
            for one in self.scenes.later(session)
        )
        return [first, *later]

    def _is_refused(self, scene: Scene) -> bool:
        """Whether the provider takes no such tools."""
        names = [tool.name for tool in scene.row.tools]
        return self._refuses_duplicates and len(set(names)) < len(names)

    def as_it_came(self, session: Session, body: Chat, flat: bool, reason: str) -> Scene:
        """The request without its type, for that reason."""
        try:
            tools = _tools(body, flat)
        except ValueError:
            tools = ()
        return self.scenes.as_it_came(session, head.texts(body["messages"]), tools, reason)

    def duplicates_are_refused(self) -> None:
        """From now on no request lists two tools of one name."""
        self._refuses_duplicates = True


def _check(plan: Plan) -> None:
    """Refuses what only a door in front of a server can do."""
    there = [fault.kind for fault in plan.faults if fault.kind in EFFECTS]
    if plan.types_after:
        there.append("types_after")
    if there:
        raise UserError(
            f"{there[0]} in the plan: this door sees a call's result after it was carried out; "
            "`rbtc proxy` in front of an MCP server can"
        )


def _tools(body: Chat, flat: bool) -> tuple[Tool, ...]:
    given: list[Json] = body.get("tools") or []
    functions = [raw if flat else raw["function"] for raw in given if name_of(raw, flat) is not None]
    return tuple(map(tool_of, functions))
