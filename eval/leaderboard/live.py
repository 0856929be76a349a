"""A live run from its episodes: each held against what an honest one of its replies is, then played again.

The model is not needed. What it said stands in the episodes; what came of it is found out here: the replies
are read again, defences included, every call is made again in a fresh world, and what the run says must be
what comes out. Which world answers, who speaks next and how an episode ends is not the run's to say.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from robustbench_tc.compute import loop
from robustbench_tc.errors import UserError
from robustbench_tc.eval.defend import chain
from robustbench_tc.eval.defend.chain import Said
from robustbench_tc.eval.live import agents, prompts
from robustbench_tc.eval.live.carrying_out import came_of
from robustbench_tc.eval.live.inputs import LiveData
from robustbench_tc.eval.live.score import LiveScore, score_episodes
from robustbench_tc.eval.live.world_env import World
from robustbench_tc.eval.record import Answer, RunRecord, Settings
from robustbench_tc.eval.stats.packs.live import clean_success, lines
from robustbench_tc.schema import Call, Episode, LiveRow
from robustbench_tc.worlds.host import Worlds

from . import checks, flags
from .entry import Flag, LiveFigures, Refused, shown


def check(path: Path, record: RunRecord, data: LiveData) -> tuple[Episode, ...]:
    """The episodes in a file of that record, in the dataset's order, each as its replies make it. Raises
    Refused."""
    settings = record.settings
    found = checks.asked(path, record, data, Episode)
    if settings.prompt_version != prompts.version():
        raise Refused(
            "record",
            f"the run was asked in other words than this version of robustbench-tc asks in "
            f"({prompts.version()}): play it with that version",
        )
    return tuple(_as_played(one, data.by_id[one.id], settings) for one in found)


def _as_played(one: Episode, row: LiveRow, settings: Settings) -> Episode:
    """The episode, which is what its replies make of it. Raises Refused."""
    world = World(row, settings)
    try:
        made = _made(world, one)
    except Exception as error:  # whatever hostile replies make a reader raise
        raise Refused("journal", f"{row.id} cannot be read: {shown(str(error), 300)}") from None
    if made != one:
        raise Refused(
            "journal",
            f"{row.id}, repeat {one.repeat}: the episode is not what its own replies and results make of it; "
            "add episodes.parquet as `rbtc eval` wrote it",
        )
    lost = [step for reply in one.replies for step in reply.steps if step.problem in ("timeout", "died")]
    if lost:  # it had no effect, says the run, and nobody can look: a run could leave out what harms it
        raise Refused(
            "replay",
            f"{row.id}: a call was cut off in the run, or ended its world ({lost[0].problem}), which cannot "
            "be replayed: begin the run again with --fresh",
        )
    return one


def _made(world: World, said: Episode) -> Episode | None:
    """What the replies of an episode make of it. Requests that defences made beside them are not there, so
    how many there were is taken as said."""
    names = ("text", "tool_calls", "finish_reason", "prompt_tokens", "completion_tokens", "latency_s")
    most = chain.budget(world.chain)
    for number, reply in enumerate(said.replies, 1):
        if world.ended is not None:
            return None
        base = Answer(id=said.id, repeat=said.repeat, number=number, status="ok")
        answer = msgspec.structs.replace(base, **{name: getattr(reply, name) for name in names})
        doing = world.take(Said(answer), [answer] * min(max(reply.requests, 1), most))
        if doing is not None:
            if not came_of(doing, reply.steps):
                return None
            world.add(reply.steps)
    if world.ended is None and said.ended in ("rejected", "too_long"):
        world.ended, world.error = said.ended, said.error
    return None if world.ended is None else world.episode(said.repeat)


def replayed(episodes: Sequence[Episode], data: LiveData) -> list[LiveScore]:
    """Plays every episode again and scores it: the figures are these, whatever the run says. Raises Refused
    where a call is answered otherwise than the run says."""
    try:
        return loop.run(score_episodes(episodes, data.by_id, Worlds()))
    except (UserError, RecursionError) as error:
        raise Refused("replay", f"a call cannot be made again: {shown(str(error), 300)}") from None


def figures(scores: Sequence[LiveScore]) -> LiveFigures:
    """Raises Refused where no clean or no faulted episode has a verdict."""
    clean, found = clean_success(scores), lines(scores)
    if clean is None or not any(line.name == "all" for line in found):
        raise Refused(
            "score", "no faulted episode has a verdict beside a clean one that has: nothing to list"
        )
    return LiveFigures(episodes=len(scores), clean=clean, lines=tuple(found))


def scripted(episodes: Sequence[Episode], data: LiveData) -> tuple[Flag, ...]:
    """Whether all but a few episodes have the calls of a scripted agent of `rbtc eval --agent`, whatever
    the run is called. What such an agent calls follows from what it was shown, so nothing is played."""
    clean = data.clean()
    for name in agents.AGENTS:
        share = fmean(plays_as(name, one, data.by_id[one.id], clean[one.clean_id]) for one in episodes)
        if share >= flags.SAME_VERDICTS:
            return (Flag(code=flags.REFERENCE, value=share, n=len(episodes), of=name),)
    return ()


def plays_as(name: str, episode: Episode, row: LiveRow, clean: LiveRow) -> bool:
    """Whether every reply of the episode makes the calls that this agent would have made; what is said to the
    user does not count."""
    player = agents.AGENTS[name](clean)
    history: list[tuple[Call, str]] = []
    asked = False
    for reply in episode.replies:
        offered = tuple(tool.plain for tool in row.offered(reply.turn))
        said = player.reply(agents.View(reply.turn, tuple(history), asked, offered))
        made = [(Call(step.name, step.arguments), step.shown) for step in reply.own_steps]
        if [call for call, _ in made] != ([] if isinstance(said, str) else list(said)):
            return False
        history += made
        asked = reply.answered
    return True
