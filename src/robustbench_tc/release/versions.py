"""Semantic versions of a dataset: how far a change of the data moves the number, and which one is enough."""

from typing import Literal, TypeAlias

import semver

from ..errors import UserError
from ..io.manifest import Manifest

Step: TypeAlias = Literal["none", "patch", "minor", "major"]
"""major: a column or a config changed its meaning. minor: rows or texts changed that can move a score. patch:
everything else. none: the same rows."""

STEPS: tuple[Step, ...] = ("none", "patch", "minor", "major")


def next_version(previous: str, step: Step) -> str:
    """The lowest version that may follow `previous` after a change of this size.

    A pre-release is followed by its own release where that is a step of the size. Below 1.0.0 nothing is
    promised yet, and what changes a meaning raises the second number.
    """
    before = semver.Version.parse(previous)
    if before.major == 0 and step == "major":
        step = "minor"
    return str(before.next_version("patch" if step == "none" else step))


def check_step(version: str, previous: Manifest, step: Step) -> None:
    """UserError where `version` does not follow `previous`, or says less than its data have changed."""
    enough = next_version(previous.version, step)
    given, before = semver.Version.parse(version), semver.Version.parse(previous.version)
    if given <= before:
        raise UserError(f"--version {version} does not follow {before}: give {enough}")
    if given.finalize_version() < semver.Version.parse(enough):
        raise UserError(
            f"--version {version} is too low: the data changed by a {step} step since {before}, so give "
            f"{enough} or more (`rbtc data diff` shows the changes)"
        )
