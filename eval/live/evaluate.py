"""A live run while it is played and afterwards, and who acts in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robustbench_tc.errors import UserError, unknown
from robustbench_tc.llm import Endpoint
from robustbench_tc.shown import Line, Part

from ..record import RunFolder
from ..request_settings import RequestOptions
from ..run import Progress
from ..who import Engine, endpoints
from .agents import AGENTS
from .inputs import LiveData

if TYPE_CHECKING:
    from ..stats.screen import Screen

OWN_AGENT = "agent-"
"""In front of an agent's name where a model's would stand."""


@dataclass
class Played:
    """A live run while it is played, and afterwards."""

    folder: RunFolder
    data: LiveData
    asked: Progress
    scores: "Screen | None" = None

    @property
    def ended(self) -> int:
        """Episodes that ended, those of earlier sessions included; without an answer they are asked again."""
        counts = self.folder.record.totals.get("ended", {})
        return sum(count for how, count in counts.items() if how != "request_error")

    @property
    def how_far(self) -> str:
        """One line."""
        return f"{self.ended:,} of {self.folder.record.expected:,} episodes ended, in {self.folder.path}"

    def json(self) -> dict[str, object]:
        """Where it is, how the episodes ended, and the figures once it is scored."""
        summary = None if self.scores is None else self.scores.json()
        return {"run": str(self.folder.path), "totals": self.folder.record.totals, "summary": summary}

    def shown(self) -> Iterator[Part]:
        """How far it got, then the scores."""
        record = self.folder.record
        ends = ", ".join(f"{how} {count:,}" for how, count in record.totals["ended"].items())
        yield f"{self.how_far} ({ends})"
        if left_out := record.sessions[-1].left_out:
            yield Line(
                f"the endpoint does not take {', '.join(left_out)}: left out of the requests", aside=True
            )
        if failed := record.totals["ended"].get("request_error"):
            yield Line(f"{failed} could not be had (request_error): the same command asks again", aside=True)
        if self.scores is None:
            yield Line(f"rbtc live score {self.folder.path} makes the scores", aside=True)
        else:
            yield from self.scores.shown()


def actor(
    agent: str | None,
    model: str | None,
    base_url: str | Sequence[str],
    backend: Engine,
    options: RequestOptions,
) -> tuple[str, str, list[Endpoint]]:
    """The name of whoever acts, its backend, and its addresses; a wrong one is refused before any work."""
    if agent is None:
        if backend == "vllm":
            raise UserError("live episodes ask a server: start vLLM with `rbtc list models MODEL`")
        found = endpoints(model, base_url, None, backend, options)
        return found[0].model, found[0].provider, found
    if model is not None or base_url:
        raise UserError("--agent acts in this process: leave --model and --base-url out")
    if agent not in AGENTS:
        raise unknown("scripted agent", agent, AGENTS)
    return OWN_AGENT + agent, "agent", []
