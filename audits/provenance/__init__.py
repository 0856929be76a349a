"""Is the build what it says it is? The gate's first question.

Its files are those that its reports name, with their checksums; and the whole build is made again, from the
pinned sources where somebody has them, else from its own clean rows, once the digest that ships with the
package has shown that these are the right ones. Where nothing was compared, nothing is released.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from robustbench_tc.errors import UserError
from robustbench_tc.io.manifest import BESIDE

from ..folder import Folder
from ..report import Check
from .beside import Cards, audit_report_check, cards_check, form_check, manifest_check
from .files import OF_AN_AUDIT, files_checks, named
from .rebuilt import Comparison, nothing_compared
from .shipped import shipped_check

_EVERY_ROW_SHIPPED = "every row, the report and the kept answers have the digests that ship with the package"
"""Why training data need not be made again: who reads them need not have ToolRL's files."""


class Rebuild(NamedTuple):
    """How a build is made again."""

    make: Callable[[Path, Path], object] | None
    """Given the build and a new folder; None where its sources are needed and not at hand. Raises UserError
    where the build does not say what it is made of."""
    origin: str = ""
    """Where the clean rows come from, such as `the pinned sources`; "" for the build itself."""
    why_not: str = ""
    """Why there are no sources."""
    cards: Cards | None = None
    """Renders the cards again: of a release, and of a build that is not made again."""
    and_from: str = ", the seed and generations.jsonl"
    """What else the build is made of, as the last part of that sentence."""


class Provenance(NamedTuple):
    """What the question came to."""

    checks: list[Check]
    said: str
    """One sentence: what was compared with what."""


def audit(folder: Folder, rebuild: Rebuild) -> Provenance:
    """The files, the rebuild, the clean rows' digest."""
    checks, why = [], ""
    for found, reason in steps(folder, rebuild):
        checks += found
        why = why or reason
    return Provenance(checks, _said(rebuild, why))


def steps(folder: Folder, rebuild: Rebuild) -> Iterator[tuple[list[Check], str]]:
    """The checks, cheap ones first, and why the build was not made again, if it was not."""
    known = named(folder)
    yield files_checks(folder, known), ""
    if known.is_release:
        yield [manifest_check(folder)], ""
        if any(name in folder.there for name in BESIDE):
            yield [form_check(folder)], ""
    carded = known.is_release or (rebuild.make is None and rebuild.cards is not None)
    if carded:
        yield [cards_check(folder, rebuild.cards)], ""
    if any(name in folder.there for name in OF_AN_AUDIT):
        yield [audit_report_check(folder)], ""
    shipped = shipped_check(folder, origin=rebuild.origin)
    yield [shipped], ""
    vouched = folder.kind == "training" and shipped.status == "passed" and carded
    yield _rebuilt(folder, rebuild, carded, _EVERY_ROW_SHIPPED if vouched else None)


def _rebuilt(
    folder: Folder, rebuild: Rebuild, carded: bool, may_be_left_out: str | None
) -> tuple[list[Check], str]:
    """The comparison with the rebuild, and why there is none. `carded`: cards have a check of their own."""
    if rebuild.make is None:
        why = f"NOT rebuilt: {rebuild.why_not}"
        return nothing_compared(folder, why, may_be_left_out, released=carded), rebuild.why_not
    with tempfile.TemporaryDirectory(prefix="rbtc-rebuild-") as scratch:
        again = Path(scratch) / "build"
        try:
            rebuild.make(_regular_files(folder, Path(scratch) / "at-hand"), again)
            return Comparison(folder, again, released=carded).checks(), ""
        except UserError as error:
            why = str(error)
        except Exception as error:  # rows so odd that a unit fails on them
            why = f"{type(error).__name__}: {str(error)[:160]}"
    return nothing_compared(folder, f"the build cannot be made again: {why}", released=carded), why


def _regular_files(folder: Folder, view: Path) -> Path:
    """The build's regular files and nothing else of it, as links of ours: no pipe is opened, no link of a
    stranger followed."""
    view.mkdir()
    root = folder.path.absolute()
    for path in (path for path, kind in folder.there.items() if kind == "file"):
        (view / path).parent.mkdir(parents=True, exist_ok=True)
        (view / path).symlink_to(root / path)
    return view


def _said(rebuild: Rebuild, why: str) -> str:
    if why:
        return f"NOT rebuilt: {why}"
    if rebuild.origin:
        return f"rebuilt from {rebuild.origin}{rebuild.and_from}"
    return (
        "clean rows compared with the digest that ships with the package, perturbed rows rebuilt from "
        f"them{rebuild.and_from}; NOT rebuilt from sources: {rebuild.why_not}"
    )
