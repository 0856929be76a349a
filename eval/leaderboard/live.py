"""A live run from its episodes: each held against what an honest one of its replies is, then played again.

The model is not needed. What it said stands in the episodes; what came of it is found out here: the replies
are read again, defences included, every call is made again in a fresh world, and what the run says must be
what comes out. Which world answers, who speaks next and how an episode ends is not the run's to say.
"""

import asyncio
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval.defend import chain
from robustbench_tc.eval.live import prompts
from robustbench_tc.eval.live.agents import AGENTS, View
from robustbench_tc.eval.live.conversation import Conversation
from robustbench_tc.eval.live.episode import Journal, Place, Replied, Results, kept
from robustbench_tc.eval.live.record import LiveRecord
from robustbench_tc.eval.live.report import side_effects
from robustbench_tc.eval.live.score import LiveScore, score_episodes
from robustbench_tc.eval.record import Answer, Settings
from robustbench_tc.eval.stats.live import clean_success, lines
from robustbench_tc.live import Episode, LiveRow, row_hash
from robustbench_tc.schema import Call, Json
from robustbench_tc.worlds.host import Worlds

from . import checks, reading
from .datasets import LiveRows
from .entry import Flag, LiveFigures, Refused
from .flags import REFERENCE, SAME_VERDICTS
from .names import shown


class _Uploaded(Place, frozen=True):
    """Where the replies of one episode are: in the episode itself. Requests that defences made beside them
    are not there, so how many there were is taken as said."""

    said: Episode

    def reply(self, journal: Journal, so_far: Conversation) -> Replied | None:
        at, said = len(so_far.replies), self.said
        base = Answer(id=self.row.id, repeat=self.repeat, number=at + 1, status="ok")
        if at < len(said.replies):
            one = said.replies[at]
            names = ("text", "tool_calls", "finish_reason", "prompt_tokens", "completion_tokens", "latency_s")
            answer = msgspec.structs.replace(base, **{name: getattr(one, name) for name in names})
            most = chain.budget(so_far.chain)
            return Replied(answer, min(max(one.requests, 1), most))
        if said.ended in ("rejected", "too_long"):
            return Replied(msgspec.structs.replace(base, status=said.ended, error=said.error), 1)
        return None


def check(folder: Path, record: LiveRecord, data: LiveRows) -> tuple[Episode, ...]:
    """The episodes of a run folder, in the dataset's order, each as its replies make it. Raises Refused."""
    checks.same_dataset(record, data)
    settings = record.settings
    found = reading.episodes(folder / "episodes.parquet", len(data.by_id) * settings.repeat)
    unanswered = [one.id for one in found if one.ended == "request_error"]
    ordered = checks.in_order(found, list(data.by_id), settings.repeat, unanswered, "rbtc live run")
    checks.same_settings(record, len(ordered))
    if settings.prompt_version != prompts.version():
        raise Refused(
            "record",
            f"the run was asked in other words than this version of robustbench-tc asks in "
            f"({prompts.version()}): play it with that version",
        )
    return tuple(_as_played(one, data.by_id[one.id], settings) for one in ordered)


def _as_played(one: Episode, row: LiveRow, settings: Settings) -> Episode:
    """The episode, which is what its replies make of it. Raises Refused."""
    place = _Uploaded(row, settings, one.repeat, row_hash(row), one)
    results = {
        f"{place.key(number)}:results": msgspec.to_builtins(
            Results(id=row.id, repeat=one.repeat, number=number, results=reply.steps)
        )
        for number, reply in enumerate(one.replies, 1)
    }
    try:
        made = kept(place, results)
    except Exception as error:  # whatever hostile replies make a reader raise
        raise Refused("journal", f"{row.id} cannot be read: {shown(str(error), 300)}") from None
    if made != one:
        raise Refused(
            "journal",
            f"{row.id}, repeat {one.repeat}: the episode is not what its own replies and results make of it; "
            "add episodes.parquet as `rbtc live run` wrote it",
        )
    lost = [step for reply in one.replies for step in reply.steps if step.problem in ("timeout", "died")]
    if lost:  # it had no effect, says the run, and nobody can look: a run could leave out what harms it
        raise Refused(
            "replay",
            f"{row.id}: a call was cut off in the run, or ended its world ({lost[0].problem}), which cannot "
            "be replayed: begin the run again with --fresh",
        )
    return one


def replayed(episodes: Sequence[Episode], data: LiveRows) -> list[LiveScore]:
    """Plays every episode again and scores it: the figures are these, whatever the run says. Raises Refused
    where a call is answered otherwise than the run says."""
    try:
        return asyncio.run(score_episodes(episodes, data.by_id, Worlds()))
    except UserError as error:
        raise Refused("replay", shown(str(error), 300)) from None
    except RecursionError:
        raise Refused("replay", "a call is nested too deeply to be made again") from None


def figures(scores: Sequence[LiveScore]) -> LiveFigures:
    """Raises Refused where no clean or no faulted episode has a verdict."""
    clean, found = clean_success(scores), lines(scores)
    if clean is None or not any(line.name == "all" for line in found):
        raise Refused(
            "score", "no faulted episode has a verdict beside a clean one that has: nothing to list"
        )
    return LiveFigures(episodes=len(scores), clean=clean, lines=tuple(found), effects=side_effects(scores))


def flags(episodes: Sequence[Episode], settings: Settings, data: LiveRows) -> tuple[Flag, ...]:
    """Whether all but a few episodes have the calls of a scripted agent of `rbtc live run --agent`, whatever
    the run is called, or its own record says that it is one.

    What a scripted agent calls follows from what it was shown, so nothing is played; most runs differ from
    all of them at once.
    """
    clean, spared = data.data.clean(), int(len(episodes) * (1 - SAME_VERDICTS))
    for name in AGENTS:
        others = (one for one in episodes if not plays_as(name, one, data.by_id[one.id], clean[one.clean_id]))
        missed = len(list(islice(others, spared + 1)))
        if missed <= spared:
            share = 1 - missed / len(episodes)
            return (Flag(code=REFERENCE, value=share, n=len(episodes), of=name),)
    if settings.backend == "agent":
        return (Flag(code=REFERENCE, value=0.0, n=len(episodes), of="of its own record"),)
    return ()


def plays_as(name: str, episode: Episode, row: LiveRow, clean: LiveRow) -> bool:
    """Whether every reply of the episode makes the calls that this agent would have made; what is said to the
    user does not count."""
    player = AGENTS[name](clean)
    history: list[tuple[Call, str]] = []
    asked = False
    for reply in episode.replies:
        offered = tuple(tool.plain for tool in row.offered(reply.turn))
        said = player.reply(View(reply.turn, tuple(history), asked, offered))
        wanted: list[tuple[str, Json]] = (
            [] if isinstance(said, str) else [(call.name, call.parameters) for call in said]
        )
        if [(step.name, step.arguments) for step in reply.own_steps] != wanted:
            return False
        history += [(Call(step.name, step.arguments), step.shown) for step in reply.own_steps]
        asked = reply.answered
    return True
