"""What a release of data holds whatever its kind: the facts that its card states, and the files."""

import datetime
import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..errors import UserError

if TYPE_CHECKING:
    from ..builders.live.report import LiveReport
    from ..builders.report import BuildReport
    from ..builders.toolrl_report import TrainingReport
    from ..dataset_cards.facts import Release
    from ..release.freeze import Facts

    Report = BuildReport | TrainingReport | LiveReport

T = TypeVar("T", bound=msgspec.Struct)


def report_of(facts: "Facts", kind: type[T]) -> T:
    """The build's report. Raises UserError for one of another package version."""
    try:
        return msgspec.convert(facts.build, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"build_report.json is not of this package's version: {error}") from None


def stated(folder: Path, facts: "Facts", title: str, sources: Collection[str]) -> "Release":
    """What the card says beyond a build's. `title`: of the BibTeX entry; `sources`: those to be cited."""
    from ..builders.sources.pins import pins
    from ..dataset_cards.facts import release_facts
    from ..io import citation

    year = _published(facts).year
    return release_facts(
        folder,
        version=facts.version,
        sha256=_sha256(facts),
        audit=facts.audit or {},
        citations={name: origin.citation for name, origin in pins().sources.items() if name in sources},
        bibtex=citation.dataset_bibtex(title, facts.version, year, _address(facts), facts.doi),
        repo=facts.repo,
        previous=facts.previous.version if facts.previous else None,
        step=facts.previous.step if facts.previous else "",
    )


def files_around(
    folder: Path,
    facts: "Facts",
    report: "Report",
    release: "Release",
    *,
    card: str,
    description: str,
    keywords: tuple[str, ...],
    responsible_ai: Mapping[str, str | list[str]],
    licence: bytes,
    languages: Sequence[str] = ("en",),
) -> Mapping[str, bytes]:
    """The card, both reports, croissant.json and the licence."""
    from ..dataset_cards.croissant import About, croissant
    from ..io import citation

    about = About(
        name=facts.kind,
        version=facts.version,
        description=description,
        creator=citation.CREATOR,
        url=_address(facts),
        published=_published(facts),
        cite_as=release.bibtex,
        keywords=keywords,
        doi=facts.doi,
        responsible_ai=responsible_ai,
        languages=languages,
    )
    made = {"README.md": card.encode(), "build_report.md": report.markdown().encode()}
    named = report.files | {name: hashlib.sha256(data).hexdigest() for name, data in made.items()}
    made["build_report.json"] = msgspec.structs.replace(report, files=named).json()
    return {**made, "croissant.json": croissant(folder, about, _sha256(facts)), "LICENSE": licence}


def _sha256(facts: "Facts") -> dict[str, str]:
    return {path: entry.sha256 for path, entry in facts.files.items()}


def _published(facts: "Facts") -> datetime.date:
    return datetime.date.fromisoformat(facts.created_at[:10])


def _address(facts: "Facts") -> str:
    from ..io import citation

    return citation.hub_address(facts.repo) if facts.repo else citation.ADDRESS
