"""The same random live episodes through the training environments: the rollout of `data=live`, and TRL's."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robustbench_tc.eval.inputs import load_live
from robustbench_tc.schema import LiveRow, dumps
from robustbench_tc.train_recipes.live_rollout import Rollout
from robustbench_tc.train_recipes.reward import compute_score
from robustbench_tc.train_recipes.trl import live
from robustbench_tc.worlds.host import Worlds

from .episodes import Played, Reply

Parts = dict[str, float]


def by_verl(dataset: Path, played: Sequence[Played]) -> list[Parts]:
    """The parts of the reward of each episode, as verl's loop plays it."""
    rows = {row.id: row for row in load_live(str(dataset)).rows}
    return [asyncio.run(_rolled_out(rows[one.row], one)) for one in played]


async def _rolled_out(row: LiveRow, played: Played) -> Parts:
    rollout, going_on = Rollout(row, Worlds()), True
    texts: list[str] = []
    while going_on:
        one = played.reply(len(texts))
        texts.append("\n".join(["<tool_call>", *map(dumps, one.calls)]) if one.calls else one.text)
        going_on = await rollout.answer(texts[-1]) is not None
    return compute_score("", "", "", {**await rollout.outcome(), "rollout": "live", "attempts": texts})


def as_trl_has_it(played: Played, turns: int) -> list[Reply]:
    """The replies of an episode where a turn ends with a call: its last text ends the episode."""
    found: list[Reply] = []
    while turns:
        one = played.reply(len(found))
        if not one.calls:
            turns -= 1
        found.append(one)
    return found


def by_trl(dataset: Path, played: Sequence[Played]) -> list[Parts]:
    """The same through TRL's environments, whose methods are called as TRL's loop calls them. A tool that is
    not there never reaches an environment."""
    rows = {row["clean_id"] + row["type_code"]: row for row in live.rows(str(dataset))}
    turns = {row.id: len(row.turns) for row in load_live(str(dataset)).rows}
    instances = {name: made() for name, made in live.environments().items()}
    found = []
    for one in played:
        row = rows["".join(one.row.split("::"))]
        environment = instances[row["environment"]]
        environment.reset(**{name: value for name, value in row.items() if name != "environment"})
        said: list[dict[str, Any]] = []
        replies = as_trl_has_it(one, turns[one.row])
        for reply in replies[:-1]:
            said.append({"role": "assistant", "content": "", "tool_calls": called(reply)})
            for name, arguments in calls_of(reply):
                if hasattr(type(environment), name) and not name.startswith("_"):
                    getattr(environment, name)(**arguments)
        said.append({"role": "assistant", "content": replies[-1].text})
        assert live.reward()([], [said], [environment]) == [environment._score(said)["score"]]
        found.append(environment._score(said))
    return found


def calls_of(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    """What a model under TRL calls for a reply that does not end the episode."""
    if not reply.calls:
        return [("answer_user", {"text": reply.text})]
    return [(call.name, json.loads(dumps(call.parameters))) for call in reply.calls]


def called(reply: Reply) -> list[dict[str, Any]]:
    """These calls as TRL's parser gives them."""
    return [
        {"type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in calls_of(reply)
    ]
