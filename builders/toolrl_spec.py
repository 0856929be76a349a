"""What a training build is a function of, and its tokenizer's word on the length of a prompt."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError, need_extra, unknown

from .build import select_types
from .perturb.swapped import SWAPPED

CONFIGS = ("full", "mixed", "retry", "paft")

SWAPS = tuple(unit.code for unit in SWAPPED.values())
"""The types that `counterbalance` makes rows of."""


class TrainingSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a training build is a function of, besides the source files and the written texts."""

    rlla: Path
    """Folder with ToolRL's files, see `sources.rlla.find_files`."""
    configs: tuple[str, ...] = CONFIGS
    types: tuple[str, ...] = ()
    """Type codes, components, packs and levels to draw from; empty: the core's 16 static types."""
    seed: int = 0
    ratio: Fraction = Fraction(1, 2)
    """Perturbed share of `mixed`; the paper has 1,994 of 4,000."""
    alpha: Fraction = Fraction(3, 10)
    """Perturbed share of `paft`; 0 is plain fine-tuning. 0.3 is the best value reported second-hand."""
    copies: int = 1
    """Differently perturbed copies of each train row."""
    counterbalance: bool = False
    """Whether half of the rows that draw one of the core's reward types have their offers swapped."""
    retry_probability: float = 1.0
    """Share of the rows with a call whose call meets an error (`retry`)."""
    retry_position: int = 1
    """Which tool turn of the rollout meets it, from 1."""
    workers: Workers = SERIAL
    """Moves no byte. Texts that a model writes are asked for by one process."""

    def codes(self) -> tuple[str, ...]:
        """The types that rows draw from, in the taxonomy's order.

        Of a pack or a level those that are there to train on. Raises UserError for a type that is not.
        """
        found: set[str] = set()
        for name in self.types or taxonomy.COMPONENTS[:3]:
            codes = set(select_types((name,)))
            kinds = [kind for kind in taxonomy.types("all") if kind.code in codes]
            static = [kind for kind in kinds if kind.static]
            if not static:
                raise UserError(
                    f"{name} happens at run time and is never drawn: the config `retry` trains on it"
                )
            drawn = {kind.code for kind in static if kind.train_augmentable}
            if not drawn:
                raise UserError(
                    f"{name} is for measuring only and is never drawn (its train_augmentable is false)"
                )
            found |= drawn
        return tuple(kind.code for kind in taxonomy.types("all") if kind.code in found)

    def validation_codes(self) -> tuple[str, ...]:
        """The types that validation rows draw from: also those of the core that training leaves out, so that
        a run shows whether robustness carries over to them."""
        core = {kind.code for kind in taxonomy.types() if kind.static}
        return tuple(kind.code for kind in taxonomy.types("all") if kind.code in {*core, *self.codes()})

    def check(self) -> None:
        """Raises UserError for a value out of range."""
        for config in self.configs:
            if config not in CONFIGS:
                raise unknown("config", config, CONFIGS)
        codes = self.codes() if self.counterbalance else ()
        swapped = next((code for code in codes if code in SWAPS), None)
        for holds, said in (
            (0 <= self.ratio <= 1, f"--ratio {self.ratio} is not a share: give a number from 0 to 1"),
            (0 <= self.alpha <= 1, f"--alpha {self.alpha} is not a share: give a number from 0 to 1"),
            (
                0 <= self.retry_probability <= 1,
                f"--retry-probability {self.retry_probability}: give a number from 0 to 1",
            ),
            (
                1 <= self.copies <= 16,
                f"--copies {self.copies}: give 1 to 16 copies, there are 16 types",
            ),
            (
                swapped is None,
                f"--counterbalance makes the rows of {swapped} itself: leave it out of --types",
            ),
            (
                not self.counterbalance or not SWAPPED.keys().isdisjoint(codes),
                "--counterbalance swaps offers, and no reward type of the core is drawn",
            ),
            (
                1 <= self.retry_position <= 8,
                f"--retry-position {self.retry_position}: give a turn from 1 to 8",
            ),
        ):
            if not holds:
                raise UserError(said)


def prompt_tokens(folder: Path) -> Callable[[list[dict[str, str]]], int]:
    """Counts a prompt's tokens as the rollout will: chat template, generation prompt included."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise need_extra("transformers", "train") from None
    if not folder.is_dir():
        raise UserError(f"no tokenizer folder {folder}: --tokenizer takes the model's folder")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} holds no tokenizer: {str(error).splitlines()[0]}") from None
    return lambda turns: len(
        tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    )
