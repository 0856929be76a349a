"""What a training build is a function of, its tokenizer's word on the length of a prompt, and its draws.

Domain randomization: every training row draws perturbation types until one applies. The order in which a row
meets the types is a random permutation that depends on the seed and the row alone: its first entry is uniform
over the types, and trying one after the other is the same as drawing again, uniformly, among the types that
apply, without having to ask a model for texts that nobody will use.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import msgspec

from robustbench_tc import seeding, taxonomy
from robustbench_tc.compute import loop
from robustbench_tc.compute.parallel import SERIAL, Workers
from robustbench_tc.errors import UserError, need_extra, unknown
from robustbench_tc.eval.prompts.rlla_form import Originals, system_text
from robustbench_tc.schema import Change, Sample, Tool, dumps

from .build import select_types
from .generators.base import Generator
from .perturb import REGISTRY, Context, NotApplicable, Text, refuse_answer
from .perturb.balanced import Balanced, offer_in
from .perturb.offers import Preference
from .perturb.swapped import SWAPPED
from .plan import text_requests
from .sources.rlla import SOURCE, RllaRow, gold_text, rename_in_history

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
            codes = select_types((name,))
            kinds = [kind for kind in taxonomy.types("all") if kind.code in codes]
            static = [kind for kind in kinds if kind.static]
            if not static:
                raise UserError(
                    f"{name} happens at run time and is never drawn; the config `retry` trains on it"
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


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A row as it is trained on: clean, or perturbed by the type of `sample`."""

    sample: Sample
    system: str
    user: str
    gold: str


class Outcome(msgspec.Struct, kw_only=True):
    """What became of one row's draws."""

    row: RllaRow
    order: list[str]
    """Type codes in the order in which the row meets them; the first is its first draw."""
    tried: int = 0
    versions: list[Version] = msgspec.field(default_factory=list)
    refused: list[tuple[str, str]] = msgspec.field(default_factory=list)
    """(type code, reason) of every draw that did not apply."""


class Draws(msgspec.Struct, kw_only=True):
    """Everything that perturbed versions are a function of, besides the row."""

    codes: tuple[str, ...]
    seed: int
    copies: int = 1
    """Differently perturbed versions of each row, as far as its types reach."""
    donors: Sequence[Tool] = ()
    lent: Originals = {}
    """Parameter texts of the donors."""
    generators: Mapping[str, Generator] = {}
    """Who writes texts, by model-written type code; a type without one is not drawn."""
    counterbalance: bool = False
    """Whether half of the priced rows have their offers swapped: each that draws one of `SWAPPED`, with
    a chance of one half that depends on the seed, the type and the row alone."""
    fits: Callable[[Version], bool] = lambda version: True
    """Whether a version's prompt is within the limit."""

    @property
    def drawn_codes(self) -> tuple[str, ...]:
        """The types that can be drawn: model-written ones only where a generator writes for them."""
        return tuple(c for c in self.codes if REGISTRY[c].method != "llm" or c in self.generators)

    def __call__(self, rows: Sequence[RllaRow]) -> list[Outcome]:
        """The rows' outcomes, in order. Rows do not influence each other."""
        codes = self.drawn_codes
        outcomes = [
            Outcome(
                row=row,
                order=seeding.rng(self.seed, "draw", row.sample.clean_id).sample(codes, len(codes)),
            )
            for row in rows
        ]
        texts: dict[str, Text | str] = {}
        pending = [o for o in outcomes if o.order]
        while pending:
            texts.update(self._texts(pending))
            context = Context(texts, {SOURCE: self.donors})
            for outcome in pending:
                self._try(outcome, context)
            pending = [o for o in pending if len(o.versions) < self.copies and o.tried < len(o.order)]
        return outcomes

    def _texts(self, pending: Sequence[Outcome]) -> dict[str, Text | str]:
        """The texts that the pending draws need, from whoever writes them."""
        found: dict[str, Text | str] = {}
        for code, generator in self.generators.items():
            samples = [o.row.sample for o in pending if o.order[o.tried] == code]
            if requests := text_requests(samples, [code])[code]:
                found.update(loop.run(generator.generate(requests, refuse_answer)))
        return found

    def _try(self, outcome: Outcome, context: Context) -> None:
        code, row = outcome.order[outcome.tried], outcome.row
        outcome.tried += 1
        unit = REGISTRY[code]
        rng = seeding.rng(self.seed, unit.draws_as or code, row.sample.clean_id)
        try:
            made = unit.perturb(row.sample, rng, context)
        except NotApplicable as skip:
            outcome.refused.append((code, skip.reason))
            return
        swaps = self.counterbalance and code in SWAPPED
        if swaps and seeding.rng(self.seed, "counterbalance", code, row.sample.clean_id).random() < 0.5:
            unit = SWAPPED[code]
            made = SWAPPED[code].drawn(row.sample, seeding.rng(self.seed, code, row.sample.clean_id))
        if wrong := unit.problems(row.sample, made):
            raise UserError(f"{made.id}: {wrong[0]} (a defect of this package: please report it)")
        version = self.version(row, msgspec.structs.replace(made, seed=self.seed))
        if self.fits(version):
            outcome.versions.append(version)
        else:
            outcome.refused.append((code, "prompt_too_long"))

    def version(self, row: RllaRow, sample: Sample) -> Version:
        """The texts of `sample`, a perturbed form of `row`'s sample or that sample itself.

        Training data follows a renamed gold tool into the transcript, unlike the benchmark: past calls and
        their results name it as the registry does.
        """
        if sample is row.sample:
            return Version(sample=sample, system=row.system, user=sample.messages[0].content, gold=row.gold)
        before, after = ([c.name for a in s.golden_answers for c in a] for s in (row.sample, sample))
        renamed = {old: new for old, new in zip(before, after, strict=True) if old != new}
        user = sample.messages[0].content
        if renamed:
            user, edits = rename_in_history(user, renamed)
            changes = tuple(Change("/messages/0/content", old, new, at) for at, old, new in edits)
            sample = msgspec.structs.replace(
                sample,
                messages=(msgspec.structs.replace(sample.messages[0], content=user), *sample.messages[1:]),
                changes=sample.changes + changes,
                flags=tuple(f for f in sample.flags if f != "history_names_distractor")
                + (("history_renamed",) if edits else ()),
            )
        return Version(
            sample=sample,
            system=system_text(row.registry, sample.tools, self.lent),
            user=user,
            gold=gold_text(row.gold, after) if renamed else row.gold,
        )


def offers(sample: Sample) -> list[dict[str, float]]:
    """The annotated tools of a reward-type row, each function's offers together: name → dollars or ms.

    Of offers of two qualities those of the one that is asked for; tools of which one may not serve are no
    offers of one function, so of `moot` types there are none.
    """
    groups: dict[str, dict[str, float]] = {}
    unit = REGISTRY.get(sample.type_code)
    if not isinstance(unit, Preference) or (isinstance(unit, Balanced) and unit.design == "moot"):
        return []
    for tool in sample.tools:
        if (found := offer_in(tool.description, unit.quality)) is not None:
            text = tool.description[: found.start]
            groups.setdefault(dumps((text, tool.parameters)), {})[tool.name] = found.value
    return list(groups.values())
