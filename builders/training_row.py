"""The rows of the training sets, and their `datasets` features.

`TrainingRow` has the columns that verl's RLHFDataset and reward managers read; `extra_info` reaches them as
an object, so it is a JSON column here although the benchmark keeps JSON as plain text. Whatever in it could
meet the limits of that decoder (integers beyond 64 bits, floats of many digits) lies inside as text.
"""

from typing import TYPE_CHECKING

import msgspec

from robustbench_tc import schema
from robustbench_tc.schema import Json, Message

if TYPE_CHECKING:
    import datasets

DATA_SOURCE = "rlla"
"""What the reward dispatches on."""


class TrainingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt for GRPO (configs `full`, `mixed`, `retry`)."""

    data_source: str = DATA_SOURCE
    prompt: tuple[Message, ...]
    ability: str = "tool_calling"
    """verl groups nothing by it; it is there because verl's examples have it."""
    reward_model: dict[str, str]
    """`style` (rule) and `ground_truth`, the gold text."""
    extra_info: dict[str, Json]
    """index, split, clean_id, type_code, component, copy, generator, flags, `changes` as JSON text; for
    reward types `offers`, for the config `retry` the injected `error`."""


class FineTuningRow(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation for supervised fine-tuning (config `paft`).

    There is no column `tools`: the system message holds the registry, as it does in the benchmark's prompts.
    """

    messages: tuple[Message, ...]
    extra_info: dict[str, Json]


schema.JSON_COLUMNS[TrainingRow] = ("extra_info",)
schema.JSON_COLUMNS[FineTuningRow] = ("extra_info",)


def training_features() -> "datasets.Features":
    """Features of the configs `full`, `mixed` and `retry`."""
    from datasets import Features, Json, List, Value

    text = Value("string")
    return Features(
        {
            "data_source": text,
            "prompt": List({"role": text, "content": text}),
            "ability": text,
            "reward_model": {"style": text, "ground_truth": text},
            "extra_info": Json(),
        }
    )


def fine_tuning_features() -> "datasets.Features":
    """Features of the config `paft`."""
    from datasets import Features, Json, List, Value

    text = Value("string")
    return Features({"messages": List({"role": text, "content": text}), "extra_info": Json()})
