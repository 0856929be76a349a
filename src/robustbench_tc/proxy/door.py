"""The LLM door: a relay that carries out a plan."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from robustbench_tc.errors import UserError
from robustbench_tc.schema import Sample

from . import head
from .chat import Chat
from .dialect import ChatCompletions
from .exchange import Dialect, Handling
from .held import Held
from .hints import Hints
from .journal import Exchange, Journal, Opened, digest, remember
from .offer import NOT_EXPRESSIBLE, name_of
from .plan import EFFECTS, Plan
from .relay import SILENCE_S, Relay, session_of
from .responses import Responses
from .scene import Scene
from .scenes import Scenes, tool_of
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
        effects = [fault.kind for fault in plan.faults if fault.kind in EFFECTS]
        if effects or plan.types_after:  # only a door in front of a server can
            raise UserError(
                f"{[*effects, 'types_after'][0]} in the plan: this door sees a call's result after it was "
                "carried out; `rbtc proxy` in front of an MCP server can"
            )
        self.plan = plan
        self.scenes = Scenes(plan, rows)
        opened = Opened.of(plan, fingerprint, journal)
        self.journal = Journal(journal, opened, by=digest(self.upstream.url))
        self.held = Held()
        if journal is not None:
            remember(journal, self.held)
        self.hints = Hints(say, (row.clean_id for row in rows))
        self.refuses_duplicates = False
        """Whether the server does not take two tools of one name: none is sent then."""

    async def close(self) -> None:
        await super().close()
        self.journal.close()

    async def exchange(
        self, request: web.Request, name: str | None, path: str, body: bytes
    ) -> web.StreamResponse:
        session = session_of(request, name, self.plan, "base URL …/s/<case>.<repeat>/v1")
        dialect = DIALECTS.get(bare := path.partition("?")[0])
        if bare in OTHER_APIS and request.method == "POST" and not self.plan.idle:
            reason = "path_is_not_perturbed"  # a model is asked, and nothing happens to it
            self.hints.skipped(session, reason)
            self.note(request, session, type=self.scenes.code(session), skipped=reason)
        if self.plan.idle or request.method != "POST" or dialect is None:
            return await self.passed_on(request, path, body)
        return await Handling(self, dialect, request, session, path, body).run()

    def note(self, request: web.Request, session: Session, **said: Any) -> None:
        """A line of the journal."""
        number = said.pop("number", None) or self.journal.number(str(session))
        case, repeat = session
        line = Exchange(session=str(session), case=case, repeat=repeat, number=number, **said)
        self.journal.write(line, secrets_of(request.headers, request.rel_url.raw_query_string))

    def scenes_of(self, session: Session, body: Chat, flat: bool, reason: str = "") -> list[Scene]:
        """What the session gets in this request, and in the further turns of its case. `reason`: why the
        request goes on without its type."""
        said = head.texts(body["messages"])
        try:
            functions = [raw for raw in body.get("tools") or () if name_of(raw, flat) is not None]
            tools = tuple(tool_of(raw if flat else raw["function"]) for raw in functions)
        except ValueError:
            reason, tools = "tools_cannot_be_read", ()
        if reason:
            return [self.scenes.as_it_came(session, said, tools, reason)]
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
        return self.refuses_duplicates and len(set(names)) < len(names)
