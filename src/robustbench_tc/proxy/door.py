"""The LLM door: a relay that carries out a plan."""

from difflib import get_close_matches
from pathlib import Path

from aiohttp import web

from robustbench_tc import sources
from robustbench_tc.option import Tell, silent
from robustbench_tc.schema import Sample

from . import rewrite
from .chat import Held
from .dialect import ChatCompletions
from .exchange import Dialect, Handling
from .journal import Exchange, Journal
from .plan import Plan, Session, check
from .relay import SILENCE_S, Relay, session_of
from .responses import Responses
from .rewrite import NOT_EXPRESSIBLE, Chat
from .scenes import TOOLS_UNREAD, Scene, Scenes
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
        say: Tell = silent,
    ) -> None:
        """`rows`: those of the plan's dataset, whose `fingerprint` the journal keeps. `say` gets a line for
        what the user should know, each kind of thing once. Raises UserError."""
        super().__init__(upstream, silence_s=silence_s)
        check(plan, tools=False)
        self.plan = plan
        self.scenes = Scenes(plan, rows)
        self.journal = Journal(journal, plan, fingerprint=fingerprint, server=(self.upstream.url,))
        self.held = Held(journal)
        self._say = say
        self._said: set[str] = set()
        self._cases = sorted({row.clean_id.removeprefix(f"{sources.OWN}__") for row in rows})
        self.refuses_equal_names = False
        """Whether the server does not take two tools of one name: none is sent then."""

    async def close(self) -> None:
        await super().close()
        self.journal.close()

    async def exchange(
        self, request: web.Request, name: str | None, path: str, body: bytes
    ) -> web.StreamResponse:
        session = session_of(request, name, self.plan, "base URL …/s/<case>.<repeat>/v1")
        dialect = DIALECTS.get(bare := path.partition("?")[0])
        if self.plan.idle or request.method != "POST" or dialect is None:
            if bare in OTHER_APIS and request.method == "POST" and not self.plan.idle:
                code = self.scenes.code(session)  # a model is asked, and nothing happens to it
                self.note(request, Exchange.of(session, type=code, skipped="path_is_not_perturbed"))
            return await self.passed_on(request, path, body)
        return await Handling(self, dialect, request, session, path, body).run()

    def note(self, request: web.Request, line: Exchange) -> None:
        """A line of the journal, and what the user should know of it, once for each kind of thing."""
        self.journal.write(line, secrets_of(request.headers, request.rel_url.raw_query_string))
        if line.status in (401, 403, 404):  # what the server says stays in the journal: it may quote a key
            self._tell(
                str(line.status),
                f"the server answers {line.status}: --upstream has to end where /chat/completions begins, "
                "as a rule in /v1, and the door adds no key: give the key to the agent",
            )
        if line.status in (502, 504):
            self._tell(str(line.status), f"a request failed: {line.error or line.status}")
        if line.skipped not in (None, "no_such_row"):  # a type that does not apply to the case is no mistake
            why = line.skipped.replace("_", " ")
            if line.skipped == "unknown_case":
                case = line.session.rpartition(".")[0]
                near = get_close_matches(case, self._cases, n=1, cutoff=0.5) or self._cases[:1]
                why += "".join(f"; did you mean {one}?" for one in near)
            self._tell(line.skipped, f"session {line.session}: {why}; the request passes unchanged")

    def _tell(self, kind: str, said: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            self._say(f"{' '.join(said.split())} (said once; the journal has all)")

    def scenes_of(self, session: Session, body: Chat, reason: str | None = None) -> list[Scene]:
        """What the session gets in this request, and in the further turns of its case. `reason`: why the
        request goes on without its type."""
        try:
            tools = rewrite.tools_of(body.get("tools") or ())
        except ValueError:
            reason, tools = TOOLS_UNREAD, ()
        scenes = [self.scenes.of(session, rewrite.texts(body["messages"]), tools, reason)]
        if reason is None:
            scenes += self.scenes.later(session)
        if self.refuses_equal_names:
            scenes = [one.unperturbed(NOT_EXPRESSIBLE) if one.repeats_names else one for one in scenes]
        return scenes
