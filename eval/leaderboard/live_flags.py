"""Whether a live run is one of the scripted agents of `rbtc live run --agent`, whatever it is called.

What a scripted agent calls follows from what it was shown. So a run is held against each of them reply by
reply, without playing anything: most runs differ from all of them at once.
"""

from collections.abc import Mapping, Sequence

from robustbench_tc.eval.live.agents import AGENTS, View
from robustbench_tc.eval.record import Settings
from robustbench_tc.live import Episode, LiveRow
from robustbench_tc.schema import Call, Json

from .flags import REFERENCE, SAME_VERDICTS
from .tiers import Flag


def of_run(
    episodes: Sequence[Episode], settings: Settings, rows: Mapping[str, LiveRow], clean: Mapping[str, LiveRow]
) -> tuple[Flag, ...]:
    """The flags of one run: a share of episodes, of SAME_VERDICTS at least, has the calls of a scripted
    agent; or the run's own record says that it is one."""
    spared = int(len(episodes) * (1 - SAME_VERDICTS))
    for name in AGENTS:
        missed = 0
        for one in episodes:
            missed += not plays_as(name, one, rows[one.id], clean[one.clean_id])
            if missed > spared:
                break
        else:
            return (_flag(1 - missed / len(episodes), len(episodes), name),)
    if settings.backend == "agent":
        return (_flag(0.0, len(episodes), "of its own record"),)
    return ()


def _flag(share: float, n: int, name: str) -> Flag:
    return Flag(code=REFERENCE, value=share, n=n, of=name)


def says(flag: Flag) -> str:
    """The flag in words."""
    if not flag.value:
        return "its record says that it was played by a scripted agent"
    same = round(flag.value * flag.n)
    return f"{same:,} of {flag.n:,} episodes have the calls of the scripted agent {flag.of}"


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
