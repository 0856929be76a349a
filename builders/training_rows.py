"""The rows that models are trained on: the columns that verl and TRL read."""

from typing import TypedDict

import msgspec

from robustbench_tc.schema import JsonObject, Message

TRAINING_SOURCE = "rlla"
"""`data_source` of every training row: what the reward dispatches on."""


class RewardModel(TypedDict):
    """How verl knows what is right."""

    style: str
    """Always `rule`."""
    ground_truth: str
    """The gold text."""


class TrainingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt for GRPO (configs `full`, `mixed`, `retry`): the columns that verl reads."""

    data_source: str = TRAINING_SOURCE
    prompt: tuple[Message, ...]
    ability: str = "tool_calling"
    """verl groups nothing by it; it is there because verl's examples have it."""
    reward_model: RewardModel
    extra_info: JsonObject
    """index, split, clean_id, type_code, component, copy, generator, flags, `changes` as JSON text; for
    reward types `offers`, for the config `retry` the injected `error`."""


class FineTuningRow(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation for supervised fine-tuning (config `paft`).

    There is no column `tools`: the system message holds the registry, as it does in the benchmark's prompts.
    """

    messages: tuple[Message, ...]
    extra_info: JsonObject
