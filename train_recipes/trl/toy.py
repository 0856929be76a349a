"""The smoke test's own model and rows: a tokenizer and a Qwen2 of about a million parameters, taught 16 rows.

`smoke` calls what stands here.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.errors import need_extra

from .. import sft
from ..recipe import read_recipe
from ..rows import choose

SFT_ROWS, EPOCHS, LEARNING_RATE = 16, 40, 2e-3
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
HEAD = "Answer with tools.\n\n**Available Tools**\nIn your response, you can use the following tools:\n"
TAIL = "\n\n**Steps for Each Turn**\n1. **Think:** Mind the goal.\n2. **Decide:** Choose."
THOUGHT = "<think> A tool answers this. </think>"


class Task(NamedTuple):
    """A request that one call answers."""

    tool: str
    about: str
    parameters: dict[str, str]
    """Of each parameter what it is; all are texts."""
    request: str
    arguments: dict[str, str]


TASKS = (
    Task("set_alarm", "Sets an alarm.", {"time": "When it rings."}, "Wake me at 6:00.", {"time": "06:00"}),
    Task("water_plant", "Waters a plant.", {"plant": "Its name."}, "The fern is dry.", {"plant": "fern"}),
    Task("feed_fish", "Feeds the fish.", {"grams": "How much."}, "Give the fish 4 grams.", {"grams": "4"}),
    Task("open_gate", "Opens a gate.", {"gate": "Which one."}, "Let me in at the north.", {"gate": "north"}),
    Task("find_tide", "Reads tides.", {"port": "The port."}, "High water in Brest?", {"port": "Brest"}),
    Task("tune_radio", "Tunes a radio.", {"station": "Its name."}, "Play Jazz One.", {"station": "Jazz One"}),
    Task("boil_egg", "Boils an egg.", {"minutes": "How long."}, "A soft egg, 5 minutes.", {"minutes": "5"}),
    Task("dim_lamp", "Dims a lamp.", {"room": "Where."}, "Too bright in the hall!", {"room": "hall"}),
    Task("lock_bike", "Locks a bicycle.", {"bike": "Its colour."}, "Lock the red bicycle.", {"bike": "red"}),
    Task("ring_bell", "Rings a bell.", {"times": "How often."}, "Ring three times.", {"times": "3"}),
    Task("book_sauna", "Books the sauna.", {"day": "Which day."}, "Sauna on Friday.", {"day": "Friday"}),
    Task("grade_essay", "Grades an essay.", {"pupil": "Whose."}, "How is Mia's essay?", {"pupil": "Mia"}),
    Task("sort_books", "Sorts a shelf.", {"key": "By what."}, "Sort the books by year.", {"key": "year"}),
    Task("roast_nuts", "Roasts nuts.", {"kind": "Which nuts."}, "Roast the almonds.", {"kind": "almond"}),
    Task("park_car", "Parks the car.", {"level": "Which level."}, "Park it on level 2.", {"level": "2"}),
    Task("wind_clock", "Winds a clock.", {"turns": "How many."}, "Wind it 9 turns.", {"turns": "9"}),
    Task("iron_shirt", "Irons a shirt.", {"colour": "Which."}, "Iron the blue shirt.", {"colour": "blue"}),
    Task("mix_paint", "Mixes paint.", {"colour": "The result."}, "I need green paint.", {"colour": "green"}),
)  # fmt: skip
"""The last two are for validation."""


def gold(task: Task) -> str:
    """The right answer in ToolRL's form."""
    call = json.dumps({"name": task.tool, "parameters": task.arguments})
    return f"{THOUGHT}\n<tool_call>\n{call}\n</tool_call>"


def write_rows(folder: Path) -> None:
    """ToolRL's two files with our rows: each lists its own tool and the next one's."""
    held_out = len(TASKS) - SFT_ROWS
    for name, tasks in (("train", TASKS[:-held_out]), ("test", TASKS[-held_out:])):
        made = [_row(task, tasks[(at + 1) % len(tasks)]) for at, task in enumerate(tasks)]
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(made), folder / f"{name}.parquet")


def _row(task: Task, other: Task) -> dict[str, Any]:
    tools = "\n".join(
        f"{number}. Name: {one.tool}\nDescription: {one.about}\nParameters: "
        + json.dumps({k: {"description": v, "type": "str", "default": ""} for k, v in one.parameters.items()})
        for number, one in enumerate((task, other), start=1)
    )
    user = f"**Dialogue Records History**\n<user> {task.request} </user>"
    return {
        "prompt": [{"content": HEAD + tools + TAIL, "role": "system"}, {"content": user, "role": "user"}],
        "reward_model": {"ground_truth": gold(task), "style": "rule"},
    }


def tokenizer_of(rows: list[dict[str, Any]], folder: Path) -> Any:
    """A byte-level BPE tokenizer trained on the rows, with ChatML turns."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    texts = [turn["content"] for row in rows for turn in row["prompt"]]
    texts += [turn["content"] for row in rows for turn in row["completion"]]
    trainer = trainers.BpeTrainer(
        vocab_size=1_000,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    made = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHATML
    )
    made.save_pretrained(folder)
    return made


def make_model(training: str, folder: Path, *, seed: int = 0, epochs: float = EPOCHS) -> None:
    """Teaches a random model the first 16 rows of the dataset's config `full`; saves it in `folder`.

    Not by the recipe `sft`, which reads a model's folder: of a Qwen2 transformers reads the tokenizer with
    another splitting of words than it was made with.
    """
    try:
        import torch
        from datasets import Dataset
        from transformers import PrinterCallback, Qwen2Config, Qwen2ForCausalLM
        from trl import SFTConfig, SFTTrainer
    except ImportError:
        raise need_extra("trl", "trl") from None
    rows = sft.pairs(choose(training, read_recipe("sft", ["data=dr-full"])[0], SFT_ROWS).train)
    words = tokenizer_of(rows, folder)
    torch.set_num_threads(1)  # a second one gains nothing here, and sums would depend on it
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(words),
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=2_048,
            tie_word_embeddings=True,
            eos_token_id=words.eos_token_id,
            pad_token_id=words.pad_token_id,
        )
    )
    trainer = SFTTrainer(
        model,
        SFTConfig(
            output_dir=str(folder / "sft"),
            num_train_epochs=epochs,
            per_device_train_batch_size=4,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="constant",
            completion_only_loss=True,
            max_length=None,  # TRL would cut a long prompt, and with it the answer, at 1,024 tokens
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=20,
            seed=seed,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=words,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    trainer.save_model(str(folder))
