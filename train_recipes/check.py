"""`rbtc train check`: everything that can go wrong before a GPU is rented, tried on a CPU.

verl is forgiving in the wrong places: a key that moved is taken and ignored, a row that fails to tokenise is
dropped, a prompt that is too long is cut from the left, a tag that the tokenizer holds for special vanishes
from the text that the reward sees. Each of these is a finding here, in one line.
"""

import contextlib
import io
import statistics
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import pyarrow.parquet as pq

from robustbench_tc.compute import loop
from robustbench_tc.errors import UserError, need_extra
from robustbench_tc.option import Tell, silent
from robustbench_tc.shown import Table

from . import recipe as recipes, rows, validation, verl_noisy
from .compose import BASES, NotReady, compose, first_line
from .recipe import Name, Recipe
from .rows import Shards

TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<response>", "</response>")

GOLDS = 100
"""Golds that are scored through verl's own reward manager."""


class Finding(msgspec.Struct, frozen=True):
    """One line of the readiness table."""

    what: str
    verdict: Literal["ok", "failed", "note"]
    detail: str


class Readiness(NamedTuple):
    """The findings of every check, in order."""

    recipe: str
    findings: list[Finding]

    @property
    def exit_code(self) -> int:
        """1 where a check failed."""
        return int(any(one.verdict == "failed" for one in self.findings))

    def shown(self) -> Iterator[Table]:
        """The findings as a table."""
        columns = ("check", "verdict", "finding")
        rows = [(one.what, one.verdict, one.detail) for one in self.findings]
        yield Table(columns, rows, f"{self.recipe}: {'not ready' if self.exit_code else 'ready'}", columns)

    def json(self) -> list[Finding]:
        """The findings."""
        return self.findings


def readiness(
    recipe: Name,
    dataset: str,
    model: Path,
    words: Sequence[str] = (),
    file: Path | None = None,
    progress: Tell = silent,
) -> Readiness:
    """Runs every check. `words`: switches of the recipe, and Hydra's overrides.

    Raises UserError for switches that do not go together and where verl is missing.
    """
    known, overrides = recipes.read_recipe(recipe, words, file)
    try:
        import verl  # noqa: F401
    except ImportError:
        raise need_extra("verl", "train") from None
    if not model.is_dir():
        raise UserError(f"no model folder {model}: --model-dir takes a folder with config and tokenizer")
    findings: list[Finding] = []
    checks = _sft_checks if recipe == "sft" else _grpo_checks
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        try:
            if problem := recipes.gguf_problem(model):
                raise NotReady("weights", problem)
            progress("looking at the data")
            shards, finding = _data(dataset, known, Path(folder))
            findings.append(finding)
            progress("trying config, tokenizer and reward")
            composed = compose(known, shards, model, Path(folder), overrides)
            findings.append(Finding("config", "ok", f"{recipe} composes on verl's {BASES[recipe]}"))
            findings += checks(composed, shards, model)
        except NotReady as failure:
            what, detail = failure.args
            findings.append(Finding(what, "failed", detail))
    return Readiness(recipe, findings)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """verl prints; a table should stand alone. Progress bars are switched off for the same reason."""
    import datasets

    datasets.disable_progress_bars()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- data ---------------------------------------------------------------------------------------------


def _data(dataset: str, recipe: Recipe, folder: Path) -> tuple[Shards, Finding]:
    """The rows under the recipe's switches, as verl would get them."""
    try:
        chosen = rows.choose(dataset, recipe)
    except UserError as error:
        raise NotReady("data", str(error)) from None
    left_out = [f", {count} left out: {reason}" for reason, count in chosen.left_out.items() if count]
    detail = f"{len(chosen.train)} train rows, {len(chosen.validation)} for validation{''.join(left_out)}"
    return rows.write(chosen, folder / "rows"), Finding("data", "ok", f"{recipe.data}: {detail}")


def _rows(paths: Sequence[Path]) -> int:
    return sum(pq.read_metadata(path).num_rows for path in paths)


# --- tokenizer ----------------------------------------------------------------------------------------


def _tokenizer(model: Path) -> tuple[Any, Finding]:
    """verl's tokenizer of the model, and whether the answer's tags survive decoding."""
    from verl.utils import hf_tokenizer

    try:
        tokenizer = hf_tokenizer(str(model))
    except (OSError, ValueError) as error:
        raise NotReady("tokenizer", first_line(error)) from None
    for tag in TAGS:
        ids = tokenizer.encode(f"a {tag} b", add_special_tokens=False)
        if tag not in tokenizer.decode(ids, skip_special_tokens=True):
            raise NotReady(
                "tokenizer",
                f"{tag} is a special token of this tokenizer: verl decodes without special tokens, so no "
                "answer could earn its format; make it an ordinary added token",
            )
    return tokenizer, Finding("tokenizer", "ok", f"{len(tokenizer)} tokens; the six tags survive decoding")


def _within(what: str, lengths: Sequence[int], limit: int, hint: str) -> Finding:
    """Whether all lengths are within the limit."""
    over = [(length, row) for row, length in enumerate(lengths) if length > limit]
    if over:
        longest, row = max(over)
        return Finding(
            what,
            "failed",
            f"{len(over)} of {len(lengths)} exceed {limit} tokens (row {row}: {longest}): {hint}",
        )
    median = statistics.median_high(lengths)
    return Finding(what, "ok", f"median {median}, longest {max(lengths)} of {limit} tokens")


# --- GRPO ---------------------------------------------------------------------------------------------


def _grpo_checks(config: Any, shards: Shards, model: Path) -> Iterator[Finding]:
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import validate_config

    try:
        validate_config(config, need_reference_policy(config), need_critic(config))
        yield Finding("verl's own validation", "ok", "passed")
    except (AssertionError, ValueError, TypeError) as error:
        yield Finding("verl's own validation", "failed", first_line(error))
    tokenizer, finding = _tokenizer(model)
    yield finding
    for split, paths in (("train", shards.train), ("validation", shards.validation)):
        yield from _grpo_split(config, split, paths, tokenizer)
    yield _golds(config, tokenizer, shards.train)
    yield _steps(_rows(shards.train), config.data.train_batch_size, config.trainer.total_epochs)
    problem, rollouts = verl_noisy.conflict(config), config.actor_rollout_ref.rollout.n
    if problem is not None:
        yield Finding("noisy groups", "failed", problem)
    elif verl_noisy.share(config) < 1:
        yield Finding(
            "noisy groups",
            "ok",
            f"{verl_noisy.share(config) * rollouts:g} of {rollouts} rollouts in the mean meet the error",
        )
    engine = config.actor_rollout_ref.rollout.name
    if find_spec(engine) is None:
        yield Finding("rollout engine", "note", f"{engine} is not installed here; the GPU machine needs it")
    else:
        yield Finding("rollout engine", "ok", f"{engine} is installed")


def _grpo_split(config: Any, split: str, paths: Sequence[Path], tokenizer: Any) -> list[Finding]:
    """Loads a split as verl does: no row may vanish, no prompt or gold may be too long."""
    from verl.trainer.ppo.utils import create_rl_dataset
    from verl.utils.tokenizer import normalize_token_ids

    try:
        dataset = create_rl_dataset([str(path) for path in paths], config.data, tokenizer, None)
    except Exception as error:  # whatever it is, verl would end on it
        return [Finding(f"{split} rows", "failed", f"RLHFDataset cannot read them: {first_line(error)}")]
    there = _rows(paths)
    if len(dataset) != there:
        return [
            Finding(
                f"{split} rows", "failed", f"{there - len(dataset)} of {there} rows vanish in RLHFDataset"
            )
        ]
    items = [dataset[index] for index in range(len(dataset))]
    prompts = [
        len(
            normalize_token_ids(tokenizer.apply_chat_template(item["raw_prompt"], add_generation_prompt=True))
        )
        for item in items
    ]
    texts = [item["reward_model"]["ground_truth"] for item in items]
    # Of a response only the form is scored; a call has to be written out to the end.
    golds = [len(tokenizer.encode(text)) if "<tool_call>" in text else 0 for text in texts]
    return [
        Finding(f"{split} rows", "ok", f"{there} rows, all of them in RLHFDataset"),
        _within(
            f"{split} prompts",
            prompts,
            config.data.max_prompt_length,
            "rebuild with `rbtc build toolrl-dr --tokenizer`, or raise data.max_prompt_length",
        ),
        _within(f"{split} golds", golds, config.data.max_response_length, "raise data.max_response_length"),
    ]


def _golds(config: Any, tokenizer: Any, paths: Sequence[Path]) -> Finding:
    """Scores golds through the reward manager that the config names."""
    try:
        scores = loop.run(score_golds(config, tokenizer, paths, GOLDS))
    except Exception as error:  # a reward that raises ends the training
        return Finding("reward", "failed", f"the reward manager raises: {first_line(error)}")
    below = [(row, score, best) for row, (score, best) in enumerate(scores) if abs(score - best) > 1e-9]
    if below:
        row, score, best = below[0]
        return Finding(
            "reward",
            "failed",
            f"{len(below)} of {len(scores)} golds earn less than they should (row {row}: {score} of {best})",
        )
    return Finding("reward", "ok", f"{len(scores)} golds earn the maximum through verl's reward manager")


async def score_golds(
    config: Any, tokenizer: Any, paths: Sequence[Path], count: int
) -> list[tuple[float, float]]:
    """(score, what it should be) of the first `count` golds as answers, through verl's reward manager."""
    import datasets
    from verl.trainer.ppo.reward import load_reward_manager

    manager = load_reward_manager(config, tokenizer)
    rows = datasets.load_dataset(
        "parquet", data_files=[str(path) for path in paths], split=f"train[:{count}]"
    )
    scores = []
    for row in rows:
        gold = row["reward_model"]["ground_truth"]
        best = validation.row(row["extra_info"], gold).best
        if row["extra_info"].get("live_row"):
            gold, row = await in_world(row)
        result = await manager.run_single(reward_batch(tokenizer, row, gold))
        scores.append((float(result["reward_score"]), best))
    return scores


async def in_world(row: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """A perfect trajectory through the row's world, without its fault: its text, and the row with what the
    agent loop leaves for the reward."""
    from robustbench_tc.schema import LiveRow, loads, record

    from .live_rollout import play_gold

    attempts, outcome = await play_gold(record(loads(row["extra_info"]["live_row"]), LiveRow))
    return "\n".join(attempts), {
        **row,
        "extra_info": {
            **row["extra_info"],
            "attempts": attempts,
            "world": msgspec.json.encode(outcome).decode(),
        },
    }


def reward_batch(tokenizer: Any, row: Mapping[str, Any], answer: str) -> Any:
    """One answer to one row in the form that verl's reward managers read."""
    import numpy as np
    import torch
    from tensordict import TensorDict
    from verl import DataProto

    ids = torch.tensor([tokenizer.encode(answer, add_special_tokens=False)])
    prompts = torch.zeros((1, 1), dtype=torch.long)
    mask = torch.ones((1, 1 + ids.shape[1]), dtype=torch.long)
    values = {
        name: np.array([row[name]], dtype=object) for name in ("data_source", "reward_model", "extra_info")
    }
    return DataProto(
        batch=TensorDict({"prompts": prompts, "responses": ids, "attention_mask": mask}, batch_size=1),
        non_tensor_batch=values,
    )


def _steps(rows: int, batch: int, epochs: int) -> Finding:
    if rows < batch:
        return Finding(
            "steps", "failed", f"{rows} rows make no batch of {batch}: lower data.train_batch_size"
        )
    note = f", {rows % batch} rows of each epoch left over" if rows % batch else ""
    return Finding("steps", "ok", f"{rows // batch * epochs} ({rows // batch} per epoch × {epochs}{note})")


# --- fine-tuning --------------------------------------------------------------------------------------


def _sft_checks(config: Any, shards: Shards, model: Path) -> Iterator[Finding]:
    from verl.trainer.sft_trainer import create_sft_dataset

    tokenizer, finding = _tokenizer(model)
    yield finding
    for split, paths in (("train", shards.train), ("validation", shards.validation)):
        try:
            dataset = create_sft_dataset([str(path) for path in paths], config.data, tokenizer, None)
            encode = dataset.tokenizer.apply_chat_template  # however long a conversation is
            lengths = [len(encode(messages, return_dict=False)) for messages in dataset.messages]
        except Exception as error:  # whatever it is, verl would end on it
            yield Finding(f"{split} rows", "failed", f"the SFT dataset cannot read them: {first_line(error)}")
            continue
        yield Finding(f"{split} rows", "ok", f"{len(lengths)} conversations")
        yield _within(f"{split} conversations", lengths, config.data.max_length, "raise data.max_length")
        if split == "validation" and len(lengths) < config.data.train_batch_size:
            yield Finding(
                "validation batch", "failed", f"{len(lengths)} rows make no batch: verl's loss is nan"
            )
    yield _steps(_rows(shards.train), config.data.train_batch_size, config.trainer.total_epochs)
