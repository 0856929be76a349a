"""The composition that knows all rooms: what one room needs of another is handed over here, as a function."""

from collections.abc import Callable
from pathlib import Path

from .builders.build import BuildSpec, build
from .builders.report import BuildReport
from .dataset_cards.render import benchmark_card
from .eval.validate import self_check


def build_release(
    spec: BuildSpec, out: Path, *, force: bool = False, progress: Callable[[str], None] = lambda line: None
) -> BuildReport:
    """`rbtc build`: the builder with the scorers' self-check of every golden answer, and the card."""
    return build(spec, out, card=benchmark_card, accept=self_check, force=force, progress=progress)
