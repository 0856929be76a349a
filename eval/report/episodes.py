"""Episodes of live runs as a report draws them: what was called, what the agent was answered, what really
happened, and what changed in the world. Where a page cannot hold every episode, wrong and faulted ones come
first, and it says how many it left out.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from robustbench_tc.eval.stats.runs import Run
from robustbench_tc.schema import Episode, Json

from ..live.episodes import check_all, read as read_episodes
from ..live.score import LiveScore
from ..live.show import Shown, replay, short
from ..record import open_run
from ..verdicts import live_data_of

MOST_EPISODES = 400
"""Episodes that are drawn step by step, over all runs."""

LONGEST = 1_500
"""Characters that are shown of a text of the model's or of a result."""


def replayed(
    run: Run, most: int, dataset: str | None, worlds: Sequence[str], world_python: str | None
) -> tuple[list[Shown], int]:
    """At most so many episodes of a run, replayed without the model, and how many are left out.

    Raises UserError for a dataset or a world that is not at hand, and for episodes that were edited.
    """
    opened = open_run(Path(run.path))
    data = live_data_of(opened, dataset)
    check_all(opened, data.by_id)
    episodes = [one for one in read_episodes(opened.path) if one.ended != "request_error"]
    drawn = chosen(episodes, run.live, most)
    return replay(drawn, data, worlds, world_python), len(episodes) - len(drawn)


def chosen(episodes: Sequence[Episode], scores: Sequence[LiveScore], most: int) -> list[Episode]:
    """The episodes that the page draws, in their order: where it cannot hold all, wrong ones come first, then
    faulted ones."""
    right = {(one.id, one.repeat): one.success is True for one in scores}

    def key(one: Episode) -> tuple[bool, bool, str, int]:
        return right.get((one.id, one.repeat), False), one.type_code == "clean", one.id, one.repeat

    kept = {(one.id, one.repeat) for one in sorted(episodes, key=key)[:most]}
    return [one for one in episodes if (one.id, one.repeat) in kept]


def outcome(shown: Shown) -> str:
    """One word for how an episode ended, which is also the class of its mark."""
    score = shown.scores
    if score.success is None:
        return "unscored"
    if score.success:
        return "right"
    return "silent" if score.silent_failure else "wrong"


def anchor(shown: Shown) -> str:
    """An id for the address of an episode: row ids may hold anything."""
    named = f"{shown.model} {shown.mode} {shown.id} {shown.repeat}"
    return "e" + hashlib.sha256(named.encode()).hexdigest()[:12]


def clip(value: Json) -> str:
    """The beginning of a text, or of a value as JSON."""
    return short(value, LONGEST)
