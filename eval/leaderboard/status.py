"""`status.yaml`: the maintainers' word, kept by editing it, each line with a public reason."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from robustbench_tc.errors import UserError

Tier = Literal["published", "reproduced", "endpoint-matched", "unverified"]
"""How far a run is vouched for: printed in the paper; repeated by a maintainer; an endpoint that its
submitter offers gives these answers; scored here and nothing more."""


class Reasoned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A decision with its public reason."""

    reason: str


class Vouched(Reasoned, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that somebody has repeated, or whose endpoint was asked again; the reason is what was compared,
    with its figures."""

    tier: Literal["reproduced", "endpoint-matched"]
    by: str
    day: str
    """YYYY-MM-DD."""

    def shown(self) -> Iterator[str]:
        """What the run is now, and why."""
        yield f"{self.tier}: {self.reason}"


class Status(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`status.yaml`."""

    format: int = 1
    dataset: str
    """`ORG/NAME@VERSION` or a folder: the dataset of the front page."""
    live: str | None = None
    """The dataset of live runs; None: none are taken."""
    own: tuple[str, ...] = ()
    """Datasets of own tools that runs are taken for."""
    front: str | None = None
    """Fingerprint of the board on the front page where it is not `dataset`'s: the old board stays until this
    line says otherwise."""
    spaces: tuple[str, ...] = ()
    """Accounts of Spaces, which open pull requests for whoever signed in there."""
    tiers: dict[str, Vouched] = {}
    """By run."""
    withdrawn: dict[str, Reasoned] = {}
    cleared: dict[str, dict[str, Reasoned]] = {}
    """By run and flag: flags that count no more."""


def read(text: bytes, where: str) -> Status:
    """Raises UserError for what is no status."""
    try:
        return msgspec.yaml.decode(text, type=Status)
    except (msgspec.MsgspecError, ValueError) as error:
        raise UserError(f"{where}: {str(error).splitlines()[0]}") from None
