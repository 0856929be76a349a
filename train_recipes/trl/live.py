"""Live episodes under TRL: the bundled worlds as its environments, and the reward of `data=live`.

    GRPOTrainer(model, live.reward(), train_dataset=Dataset.from_list(live.rows(DATASET, "train")),
                environment_factory=live.environments(), …)

TRL looks tools up by the name of a method, once for a class. So there is a class for each world, its tools
are the world's, and rows whose registry has other tools are left out. TRL's loop has one turn of the user;
here a call of `answer_user` ends a turn, and what the user says next is its result. A reply without a call
ends the episode.
"""

import inspect
import typing
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from robustbench_tc import schema
from robustbench_tc.builders.training_rows import TrainingRow
from robustbench_tc.schema import LiveRow, dumps, loads
from robustbench_tc.worlds.find import BUNDLED, find
from robustbench_tc.worlds.handle import load_file

from ..live_rollout import Rollout
from ..reward import live_score
from ..rows import live_rows
from .data import text_of

LAST = "The user has nothing more to say. End with a reply in plain words, without a call."
"""What `answer_user` gives after the last turn."""


class Environment:
    """One episode at a time; TRL makes an instance once and resets it. Every public method but `reset` is a
    tool: those of the world are put in by `environments`."""

    _rollout: Rollout | None = None
    _said: str = ""
    _earned: dict[str, float] | None = None

    def reset(self, **row: Any) -> None:
        """Begins the episode of a row."""
        found = schema.record(loads(row["live_row"]), LiveRow)
        self._rollout = Rollout(found)
        self._said, self._earned = "", None

    def answer_user(self, text: str) -> str:
        """
        Tells the user what came of the request. Ends your turn: the result is what the user says next.

        Args:
            text: What you tell the user.
        """
        self._said = text if isinstance(text, str) else dumps(text)
        return str(_now(self._begun().answer("")) or LAST)

    def _score(self, completion: Sequence[dict[str, Any]]) -> dict[str, float]:
        """Reward and parts of it, once: then the world is given back. Calls of tools that do not exist never
        come here, and count as calls all the same."""
        if self._earned is None:
            outcome = _now(self._begun().end())
            last = [turn for turn in completion[-1:] if turn["role"] == "assistant"]
            called = [
                call["function"]["name"] for turn in completion for call in turn.get("tool_calls") or ()
            ]
            tools = {name for name in dir(self) if not name.startswith("_")} - {"reset"}
            missed = sum(name not in tools for name in called)
            whole = msgspec.structs.replace(outcome, calls=outcome.calls + missed)
            info = {
                "world": msgspec.json.encode(whole).decode(),
                "attempts": [self._said if outcome.finished else text_of(last)],
            }
            self._earned = live_score(info)
        return self._earned

    def _begun(self) -> Rollout:
        assert self._rollout is not None, "TRL resets an environment before it is used"
        return self._rollout


def environments() -> dict[str, type[Environment]]:
    """The environment of each bundled world, as TRL's `environment_factory` takes them."""
    return {name: _environment(name) for name in BUNDLED}


def rows(dataset: str, split: str | None = None) -> list[dict[str, Any]]:
    """Rows of a live dataset as TRL reads them. `split`: train or validation; None is both. Left out: other
    worlds than the bundled, and rows of registry types."""
    return rows_of(live_rows(dataset, split))


def rows_of(found: Sequence[TrainingRow]) -> list[dict[str, Any]]:
    """The same of rows that a recipe has chosen."""
    made = []
    for training_row in found:
        row = schema.record(loads(training_row.extra_info["live_row"]), LiveRow)
        if row.world in BUNDLED and (row.fault is not None or row.clean):
            made.append(
                {
                    "prompt": [{"role": one.role, "content": one.content} for one in row.turns[0].messages],
                    "environment": row.world,
                    "live_row": training_row.extra_info["live_row"],
                    "clean_id": row.clean_id,
                    "type_code": row.type_code,
                }
            )
    return made


def reward() -> Callable[..., list[float]]:
    """A reward function for GRPOTrainer: that of `data=live`, for each episode. It logs `score` and its parts
    (`reached`, `unsafe_repeats` …), means over the batch."""

    def live(
        prompts: Any,
        completions: Sequence[Any],
        environments: Sequence[Environment],
        log_metric: Callable[[str, float], None] | None = None,
        **_: Any,
    ) -> list[float]:
        earned = [one._score(said) for said, one in zip(completions, environments, strict=True)]
        for name in earned[0] if log_metric is not None else ():
            log_metric(name, sum(one[name] for one in earned) / len(earned))  # type: ignore[misc]
        return [one["score"] for one in earned]

    return live


def _environment(world: str) -> type[Environment]:
    made = load_file(find(world).file).WORLD
    tools = {tool["name"]: _tool(tool, getattr(made, tool["name"])) for tool in made.tools()}
    return type(f"{world.capitalize()}Environment", (Environment,), {"__doc__": made.__doc__, **tools})


def _tool(tool: dict[str, Any], method: Callable[..., Any]) -> Callable[..., str]:
    """A method that TRL reads the world's schema from; any arguments reach the world, which answers them."""
    name, properties = tool["name"], tool["parameters"].get("properties", {})

    def called(self: Environment, **arguments: Any) -> str:
        return str(_now(self._begun().carry_out([(name, arguments)]))[0])

    declared = inspect.signature(method)
    hints = {key: hint for key, hint in typing.get_type_hints(method).items() if key != "return"}
    own = [one.replace(annotation=hints.get(key, one.annotation)) for key, one in declared.parameters.items()]
    lines = [f"    {key}: {about.get('description', key)}" for key, about in properties.items()]
    called.__name__ = called.__qualname__ = name
    called.__doc__ = "\n".join([tool["description"], "", *(["Args:", *lines] if lines else [])])
    called.__annotations__ = hints
    called.__signature__ = declared.replace(parameters=own, return_annotation=str)  # type: ignore[attr-defined]
    return called


def _now(made: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing: worlds in this process never do."""
    try:
        made.send(None)
    except StopIteration as done:
        return done.value
    made.close()
    raise RuntimeError("a world in this process waited for something")
