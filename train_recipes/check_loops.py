"""`rbtc train check`: which agent loop plays each row, and what the rows of a mixture say of themselves.

verl meets a row whose loop it does not know in the middle of a rollout: the prompt's group fails, the run
goes on. A reward of another recipe would score the rows without a word.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

from .compose import first_line
from .dataset import Shards, read_rows
from .mixture.reward import SINGLE
from .mixture.rows import AGENTS

Verdict = Literal["ok", "failed", "note"]
Line = tuple[str, Verdict, str]
"""What, verdict, detail."""


def loops(config: Any, shards: Shards, tokenizer: Any) -> list[Line]:
    """Whether the classes of the agent-loop file can be imported, and whether it has the loop of each row."""
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry
    from verl.utils.import_utils import load_class_from_fqn

    agent = config.actor_rollout_ref.rollout.agent
    written: dict[str, Any] = {}
    try:
        for loop in OmegaConf.load(agent.agent_loop_config_path) if agent.agent_loop_config_path else ():
            load_class_from_fqn(loop["_target_"])
            written[loop["name"]] = loop
    except (OSError, ImportError, AttributeError, ValueError, KeyError) as error:
        return [("agent loop", "failed", first_line(error))]
    # Loops that verl has by itself: ours are known to a worker by the file only.
    verls = {
        name for name, of in _agent_loop_registry.items() if str(of.get("_target_", "")).startswith("verl.")
    }
    files = [
        path for path in (*shards.train, *shards.validation) if "agent_name" in pq.read_schema(path).names
    ]
    named = Counter(
        str(name) for path in files for name in pq.read_table(path, columns=["agent_name"])["agent_name"]
    )
    if unknown := named.keys() - verls - written.keys():
        detail = (
            f"rows name the agent {min(unknown)!r}, which verl does not know under this recipe: rows of "
            "python -m robustbench_tc.train_recipes.mixture.rows take --recipe mixture"
        )
        return [("agent loop", "failed", detail)]
    if not named:
        return [("agent loop", "ok", agent.default_agent_loop)] if written else []
    said = ", ".join(f"{name} ({count} rows)" for name, count in sorted(named.items()))
    return [("agent loop", "ok", said), *_mixture(config, shards, tokenizer, written)]


def _mixture(config: Any, shards: Shards, tokenizer: Any, written: dict[str, Any]) -> list[Line]:
    """Whether each row's loop is that of its recipe, and the reward is that of a mixture."""
    said: list[str] = []
    golds: list[str] = []
    for split, paths in (("train", shards.train), ("validation", shards.validation)):
        counts: Counter[str] = Counter()
        for number, (recipe, agent, gold) in enumerate(_rows(paths)):
            if AGENTS.get(recipe) != agent:
                detail = f"{split} row {number} is of the recipe {recipe!r} and names the agent {agent!r}"
                return [("mixture", "failed", f"{detail}: write the rows again")]
            counts[recipe] += 1
            golds += [gold] if recipe == SINGLE and "<tool_call>" in gold else []
        said.append(", ".join(f"{count} {recipe}" for recipe, count in sorted(counts.items())))
    reward = str(config.reward.custom_reward_function.path)
    if reward.startswith("pkg://robustbench_tc.") and not reward.endswith(".mixture.reward"):
        detail = f"the rows name a reward each, and the config has {reward} for all: take --recipe mixture"
        return [("mixture", "failed", detail)]
    lines: list[Line] = [("mixture", "ok", f"train {said[0]}; validation {said[1]}")]
    room = written.get(AGENTS[SINGLE], {}).get("response_length")
    over = sum(len(tokenizer.encode(gold)) > room for gold in golds) if room else 0
    if over:
        detail = f"{over} of {len(golds)} exceed {room} tokens: raise response_length in agent_loop.yaml"
        lines.append((f"golds of {SINGLE}", "failed", detail))
    return lines


def _rows(paths: Sequence[Path]) -> list[tuple[str, str, str]]:
    """Of each row: its recipe, its agent loop, its gold."""
    return [
        (str(row["extra_info"].get("recipe")), row["agent_name"], row["reward_model"]["ground_truth"])
        for row in read_rows(paths, ["extra_info", "agent_name", "reward_model"])
    ]
