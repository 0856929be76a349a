"""ToolRL's training reward: format + correctness + length, with all of its variants as arguments.

Written from the behaviour of ToolRL commit 8cee13e (`verl/utils/reward_score/rlla.py` there) and checked
against its recorded verdicts (`python -m tests.vectors`). With no variant switched on the total lies in
[-3, 4]:

    F in {0, 1}    the answer has exactly the blocks that the gold has (think, tool_call, response)
    C in [-3, 3]   how much of the gold calls' names, parameter names and values is there; 0 without calls
    L in [0, 1]    words of the thought over a target length; only with `with_length`

The file imports nothing but the standard library, so verl can load it by path from a copy. The recipes load
it through the installed package (`pkg://robustbench_tc.eval.score.reward`): every ray worker then finds the
same module whatever its working folder is.
"""

import json
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

DATA_SOURCES = frozenset({"rlla"})

Family = Literal["qwen", "llama"]

_MARKERS: dict[str, tuple[str, str]] = {
    "qwen": ("<|im_start|>assistant", "<|im_end|>"),
    "llama": ("<|start_header_id|>assistant<|end_header_id|>", "<|eot_id|>"),
}
_CALLS, _CALLS_END = "<tool_call>", "</tool_call>"
_REPLY, _REPLY_END = "<response>", "</response>"
_THINK, _THINK_END = "<think>", "</think>"


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    *,
    family: Family = "qwen",
    step: int | None = None,
    with_length: bool = False,
    schedule_length: bool = False,
    correct_max_1: bool = False,
    max1_step30_max3: bool = False,
    schedule_reward: bool = False,
    coarse: bool = False,
    refined: bool = False,
    intermediate: bool = False,
    reward_router_address: object = None,
    reward_model_tokenizer: object = None,
) -> dict[str, float]:
    """The reward as verl's managers call it: `score` and its three parts, the same keys for every row.

    `step` is the training step of the scheduled variants; where it is not given, verl's own
    `max_global_steps` of the rollout is taken from `extra_info`, else 0. The last two arguments are verl's
    and unused. Nothing in `solution_str` makes it raise; an unknown `data_source` is a ValueError, so is a
    `family` without markers, because both are mistakes of the set-up.
    """
    if data_source not in DATA_SOURCES:
        known = ", ".join(sorted(DATA_SOURCES))
        raise ValueError(f"no reward for data_source {data_source!r}: this one scores {known}")
    if family not in _MARKERS:
        raise ValueError(f"unknown model family {family!r}: qwen or llama")
    if step is None:
        step = (extra_info or {}).get("max_global_steps") or 0

    f_min, f_max = 0.0, 1.0
    c_max = 1.0 if correct_max_1 else 3.0
    c_min = -c_max
    if max1_step30_max3:
        if step < 30:
            c_min, c_max = c_min / 3, c_max / 3
        else:
            f_min, f_max = f_min / 2, f_max / 2
    if schedule_reward:
        share = step / 150
        f_max, f_min = max(1.0, 2 - (2 - f_max) * share), min(-1.0, -2 + (2 + f_min) * share)
        c_max, c_min = min(3.0, 2 + (c_max - 2) * share), max(-3.0, -2 + (c_min + 2) * share)

    answer = assistant_text(solution_str, family)
    calls_wanted = _CALLS in ground_truth
    gold = _gold_calls(ground_truth) if calls_wanted else None
    if calls_wanted and gold is None:  # upstream stops here; an undecodable gold can only earn the minimum
        return _parts(f_min, c_min, 0.0)

    form = f_max if has_format(answer, calls_wanted, _REPLY in ground_truth) else f_min
    correctness = 0.0
    if gold is not None:
        predicted = decode_calls(answer)
        share_right = None
        if predicted is not None:
            share_right = _share(gold, predicted, coarse=coarse, refined=refined, intermediate=intermediate)
        correctness = c_min if share_right is None else c_min + (c_max - c_min) * share_right
    length = 0.0
    if with_length:
        length = _length(answer, 384 + 256 * step / 105 if schedule_length else 512)
    return _parts(form, correctness, length)


def _parts(form: float, correctness: float, length: float) -> dict[str, float]:
    return {
        "score": form + correctness + length,
        "format_score": form,
        "correctness_score": correctness,
        "length_score": length,
    }


def earns_maximum(gold: str) -> bool:
    """Whether a gold, as an answer to itself, earns all there is: 4 with a call, 1 with a response only."""
    return compute_score("rlla", gold, gold)["score"] == (4.0 if _CALLS in gold else 1.0)


def variant_from_env(env: Mapping[str, str]) -> dict[str, Any]:
    """ToolRL's environment variables as keyword arguments of `compute_score`.

    A variable is on only when it is exactly "1". STRICTMATCH is read nowhere upstream, so not here. The
    model family is part of EXPERIMENT_NAME: llama before qwen, lower case; without either it is qwen.
    """
    flags = {
        "with_length": "WITHLENGTH",
        "schedule_length": "SCHEDULELENGTH",
        "correct_max_1": "CORRECTMAX1",
        "max1_step30_max3": "MAX1STEP30MAX3",
        "schedule_reward": "SCHEDULEREWARD",
        "coarse": "COARSEREWARD",
        "refined": "REFINEDREWARD",
        "intermediate": "INTERMEDIATEREWARD",
    }
    family = "llama" if "llama" in env.get("EXPERIMENT_NAME", "") else "qwen"
    return {"family": family} | {name: env.get(variable) == "1" for name, variable in flags.items()}


def assistant_text(text: str, family: Family = "qwen") -> str:
    """The last assistant turn of a decoded sequence; the whole text where no marker is (as under verl)."""
    start, end = _MARKERS[family]
    return text.rpartition(start)[2].partition(end)[0].strip()


def has_format(answer: str, calls: bool, reply: bool) -> bool:
    """Whether `answer` is a thought, then the wanted blocks, with nothing else before, between or after.

    Every wanted tag stands exactly once. What is inside the blocks is free; a thought may hold another one.
    """
    if not answer.startswith(_THINK):
        return False
    wanted = ((_CALLS, _CALLS_END) if calls else ()) + ((_REPLY, _REPLY_END) if reply else ())
    if any(answer.count(tag) != 1 for tag in wanted):
        return False
    # Walk from the back: what remains must in the end be one closed thought.
    rest = answer
    if reply:
        opened = rest.find(_REPLY)
        if not rest.endswith(_REPLY_END) or opened < 0 or opened + len(_REPLY) > len(rest) - len(_REPLY_END):
            return False
        if not rest[:opened].endswith("\n"):
            return False
        rest = rest[: opened - 1]
    if calls:
        opened = rest.find(_CALLS + "\n")
        if not rest.endswith("\n" + _CALLS_END) or opened < 0:
            return False
        if opened + len(_CALLS) + 1 > len(rest) - len(_CALLS_END) - 1 or not rest[:opened].endswith("\n"):
            return False
        rest = rest[: opened - 1]
    return rest.endswith(_THINK_END) and len(rest) >= len(_THINK) + len(_THINK_END)


def decode_calls(answer: str) -> list[Any] | None:
    """The first tool-call block, one JSON value per line; None where a tag or any line is not right."""
    if _CALLS not in answer or _CALLS_END not in answer:
        return None
    try:
        return _block(answer)
    except (ValueError, RecursionError):
        return None


def _block(text: str) -> list[Any]:
    block = text.split(_CALLS, 2)[1].partition(_CALLS_END)[0]
    return [json.loads(line) for line in block.strip().split("\n")]


@lru_cache(maxsize=8192)
def _gold_calls(ground_truth: str) -> list[Any] | None:
    """A gold's calls, decoded once: a group asks for the same gold n times. Callers must not change it."""
    try:
        return _block(ground_truth)
    except (ValueError, RecursionError):
        return None


def _share(
    gold: list[Any], predicted: list[Any], *, coarse: bool, refined: bool, intermediate: bool
) -> float | None:
    """The share in [0, 1] of what could be right; None where a call lacks a key that is looked at."""
    try:
        if predicted == gold:
            return 1.0
        if coarse:
            return 0.0
        earned = _names([c["name"] for c in gold], [c["name"] for c in predicted], refined)
        possible = 1.0
        unused = list(predicted)
        for wanted in gold:
            parameters = wanted["parameters"]
            possible += 1.0 if intermediate else 1.0 + len(parameters)
            best, best_at = 0.0, -1
            for at, call in enumerate(unused):
                if call["name"] != wanted["name"]:
                    continue
                if intermediate:
                    if call == wanted:
                        best, best_at = 1.0, at
                        break
                    continue
                given = call["parameters"]
                found = _keys(parameters, given, refined)
                for key, value in parameters.items():
                    if key in given and given[key] == value:
                        found += 1.0
                if found > best:
                    best, best_at = found, at
            if best_at >= 0:
                del unused[best_at]
                earned += best
        return earned / possible
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None


def _names(wanted: list[Any], given: list[Any], refined: bool) -> float:
    """Jaccard similarity of two multisets; 1 for equal lists. `refined`: equal lists or nothing."""
    if wanted == given:
        return 1.0
    if refined or not wanted or not given:
        return 0.0
    shared = (Counter(wanted) & Counter(given)).total()
    return shared / (len(wanted) + len(given) - shared)


def _keys(wanted: dict[str, Any], given: dict[str, Any], refined: bool) -> float:
    """The same over the keys of two objects, where nothing occurs twice; `refined` asks for order too."""
    shared = len(wanted.keys() & given.keys())
    if refined:
        return float(list(wanted) == list(given))
    every = len(wanted) + len(given) - shared
    return shared / every if every else 1.0


def _length(answer: str, target: float) -> float:
    """Words of the last thought over `target`, rounded to two decimals, at most 1."""
    if _THINK not in answer or _THINK_END not in answer:
        return 0.0
    thought = answer.rpartition(_THINK)[2].partition(_THINK_END)[0]
    return min(1.0, round(len(thought.split()) / target, 2))
