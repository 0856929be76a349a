"""What may legitimately vary between two builds: each of them passes the gate, or says by name why not."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.api.building import build_release
from robustbench_tc.audits import gate, provenance
from robustbench_tc.audits.again import rebuild_of
from robustbench_tc.audits.folder import Folder
from robustbench_tc.builders.build import BuildSpec
from robustbench_tc.builders.errata_files import Answers, Erratum
from robustbench_tc.builders.generate import Settings
from robustbench_tc.builders.sources import read_pool
from robustbench_tc.compute.parallel import Workers
from robustbench_tc.io import marker

from ...loopback import LoopbackServer

EXTENSIONS = ("CD_AB_pref", "TD_AB_pref")
"""Types beyond the core that stand for all of them; tests/audits/test_extensions.py has every one."""


class Place(NamedTuple):
    """Where a variation finds things and puts its build."""

    sources: Path
    recorded: Path
    scratch: Path

    @property
    def out(self) -> Path:
        return self.scratch / "robustbench-tc"


def named(place: Place) -> Path | None:
    return place.sources


def none(place: Place) -> Path | None:
    return None


class Variation(NamedTuple):
    name: str
    build: Callable[[Place], Path]
    sources: Callable[[Place], Path | None] = named
    """What the audit is given as --sources."""
    red: frozenset[str] = frozenset()
    """Checks outside of the provenance that keep such a build from being a release; none for most."""


VARIATIONS: list[Variation] = []


def variation(
    name: str, sources: Callable[[Place], Path | None] = named, red: Sequence[str] = ()
) -> Callable[[Callable[[Place], Path]], Callable[[Place], Path]]:
    def add(build: Callable[[Place], Path]) -> Callable[[Place], Path]:
        VARIATIONS.append(Variation(name, build, sources, frozenset(red)))
        return build

    return add


def built(place: Place, **changes: Any) -> Path:
    options: dict[str, Any] = {"profile": "paper", "sources": place.sources, **changes}
    build_release(BuildSpec(**options), place.out)
    return place.out


VARIATIONS += [
    Variation("as it is", built),
    Variation("another seed", lambda place: built(place, seed=20_260)),
    Variation("two processes", lambda place: built(place, workers=Workers(num_proc=2))),
    Variation(
        "texts from a folder (`recorded:DIR`)",
        lambda place: built(place, generators=(f"recorded:{place.recorded}",)),
    ),
]


@variation("texts from another build's generations.jsonl (`recorded:PATH`)")
def _(place: Place) -> Path:
    answers = built(place._replace(scratch=place.scratch / "other")) / "generations.jsonl"
    return built(place, generators=("none", f"recorded:{answers}"))


VARIATIONS += [
    Variation(
        "a generator for one type",
        lambda place: built(place, generators=("recorded", f"redundant=recorded:{place.recorded}")),
    ),
    Variation(
        "the two extension types beside the 22",
        lambda place: built(place, codes=(*taxonomy.codes(), *EXTENSIONS)),
    ),
    Variation(
        "the extension type CD_AB_pref, another seed",
        lambda place: built(place, codes=(*taxonomy.codes(), "CD_AB_pref"), seed=2),
    ),
    Variation(
        "the extension type TD_AB_pref, two processes",
        lambda place: built(place, codes=(*taxonomy.codes(), "TD_AB_pref"), workers=Workers(num_proc=2)),
    ),
    Variation(
        "a golden answer corrected, with an erratum that says why",
        lambda place: built(place, errata=(erratum(place),)),
    ),
]


def erratum(place: Place) -> Erratum:
    """One more accepted value, in the first sample that has a text for one."""
    for sample in read_pool(place.sources, "paper").samples:
        after = msgspec.to_builtins(sample.golden_answers)
        for values in after[0][0]["parameters"].values():
            if isinstance(values, list) and values and isinstance(values[0], str) and values[0]:
                values.append(values[0].title() + " (any)")
                return Erratum(
                    clean_id=sample.clean_id,
                    before=sample.golden_answers,
                    before_tool_index=sample.gold_tool_index,
                    after=msgspec.convert(after, Answers),
                    reason="the longer name is right too",
                    date="2026-11-21",
                )
    raise AssertionError("no sample has a text for a golden value")


variation("--allow-missing, though nothing is missing")(lambda place: built(place, allow_missing=True))


@variation("a copy of the sources elsewhere", lambda place: place.scratch / "sources")
def _(place: Place) -> Path:
    shutil.copytree(place.sources, place.scratch / "sources")
    return built(place, sources=place.scratch / "sources")


@variation("sources behind a link", lambda place: place.scratch / "link")
def _(place: Place) -> Path:
    (place.scratch / "link").symlink_to(place.sources)
    return built(place, sources=place.scratch / "link")


VARIATIONS += [
    Variation("no sources: the digest that ships", lambda place: built(place, seed=20_260), none),
    Variation(
        "no sources, the two extension types",
        lambda place: built(place, codes=(*taxonomy.codes(), *EXTENSIONS)),
        none,
    ),
]


@variation("the build moved and renamed")
def _(place: Place) -> Path:
    other = place.scratch / "elsewhere" / "another name"
    other.parent.mkdir()
    return built(place).rename(other)


@variation("the build copied: other times, other rights")
def _(place: Place) -> Path:
    other = place.scratch / "copy"
    shutil.copytree(built(place), other, copy_function=shutil.copyfile)
    for path in other.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o444)
        os.utime(path, (0, 0))
    return other


@variation("audited before")
def _(place: Place) -> Path:
    folder = built(place)
    gate.write(gate.audit(folder, sources=place.sources), folder)
    return folder


@variation("every file hard-linked elsewhere")
def _(place: Place) -> Path:
    other = place.scratch / "copy"
    shutil.copytree(built(place), other, copy_function=os.link)
    return other


@variation("the build behind a link")
def _(place: Place) -> Path:
    link = place.scratch / "link"
    link.symlink_to(built(place))
    return link


VARIATIONS += [
    Variation("the starter samples", lambda place: built(place, profile="bundled", sources=None), none),
    Variation(
        "the starter samples, the two extension types, another seed",
        lambda place: built(
            place, profile="bundled", sources=None, seed=4, codes=(*taxonomy.codes(), *EXTENSIONS)
        ),
        none,
    ),
]


def obliging(body: dict[str, Any]) -> str:
    """A model behind an endpoint: it rewrites by a word in front, and as a judge it compares words."""
    asked = body["messages"][-1]["content"]
    if '"second"' in asked:
        pair = json.loads(asked)
        same = pair["first"].strip() in pair["second"]
        return json.dumps({"reason": "" if same else "other words", "score": 5 if same else 1})
    if '"tool"' in asked:
        return json.dumps({"reason": "another purpose", "could_answer": False})
    mark, _, rest = asked.partition("<TEXT-")[2].partition(">\n")
    return f"Please: {rest.partition(f'</TEXT-{mark}>')[0].strip()}"


LIVE = (
    "realistic_typos",
    "query_paraphrase",
    "paraphrase_tool_description",
    "paraphrase_parameter_description",
)


@variation("texts from an endpoint, judged by an endpoint")
def _(place: Place) -> Path:
    with LoopbackServer(obliging) as server:
        store = Settings(store=place.scratch / "store.jsonl", timeout_s=30.0)
        who = tuple(f"{kind}=openai:tiny@{server.url}" for kind in LIVE)
        return built(place, generators=("recorded", *who), settings=store)


PART = ("configs.complete", "configs.rows_as_pinned")
"""What a build that is not the whole benchmark fails, besides what depends on the types that are missing."""


VARIATIONS += [
    Variation(
        "a part of the types (`--types reward`)",
        lambda place: built(place, codes=("CD", "TD", "CD_NT", "TD_NT", "CD_AB", "TD_AB")),
        named,
        frozenset((*PART, "paraphrase", "rows", "texts", "hygiene.language")),
    ),
    Variation(
        "no texts (`--generator none`)",
        lambda place: built(place, generators=("none",)),
        named,
        frozenset((*PART, "paraphrase", "rows", "texts", "hygiene.language")),
    ),
]


@variation("--allow-missing, and a text is missing", red=PART)
def _(place: Place) -> Path:
    lines = (place.recorded / "generations.jsonl").read_text().splitlines()
    (place.scratch / "generations.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    shutil.copy(place.recorded / "redundant_judgments.jsonl", place.scratch)  # it names their samples
    texts = f"recorded:{place.scratch / 'generations.jsonl'}"
    return built(place, generators=(texts,), allow_missing=True)


SHOWN = 3
"""Red checks that a line of the table names."""


class Found(NamedTuple):
    """What the audit of a variation came to."""

    variation: Variation
    provenance: tuple[str, ...]
    """Checks of the provenance that block; none."""
    blocking: tuple[str, ...] | None
    """Of the whole gate; None where only the provenance was looked at."""
    said: str
    """What the build was compared with."""

    @property
    def line(self) -> str:
        origin = self.said.partition(",")[0].partition(";")[0]
        reds = [f"`{check}`" for check in self.blocking or ()]
        more = f" and {len(reds) - SHOWN} more" if len(reds) > SHOWN else ""
        verdict = f"red: {', '.join(reds[:SHOWN])}{more}" if reds else "green"
        return f"| {self.variation.name} | {origin} | {verdict} |"

    @property
    def as_it_should(self) -> bool:
        """The provenance holds, and the gate is green, or red for nothing but what the variation lacks."""
        reds = self.variation.red
        if self.provenance or self.blocking is None:
            return not self.provenance
        allowed = all(check in reds or check.partition(".")[0] in reds for check in self.blocking)
        return allowed and bool(self.blocking) == bool(reds)


def found(
    sources: Path, recorded: Path, scratch: Path, chosen: Sequence[Variation], *, whole: bool
) -> Iterator[Found]:
    """Builds and audits the variations; with `whole` through the whole gate, else their provenance."""
    gates: dict[str, tuple[str, ...]] = {}
    for number, one in enumerate(chosen):
        place = Place(sources, recorded, scratch / str(number))
        place.scratch.mkdir()
        with mock.patch.dict(os.environ, {"RBTC_SOURCES": str(scratch / "no-sources")}):
            build = one.build(place)
            audited = one.sources(place)
            origin = provenance.audit(Folder(build), rebuild_of(build, audited))
            blocking = _whole(build, audited, place, gates) if whole else None
        yield Found(one, tuple(c.id for c in origin.checks if c.blocks), blocking, origin.said)
        shutil.rmtree(place.scratch, ignore_errors=True)


def _whole(
    build: Path, sources: Path | None, place: Place, gates: dict[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """What the whole gate blocks for; asked once for builds whose report and so all files are the same."""
    seen = marker.sha256(build / marker.BUILD)
    options: dict[str, Any] = {}
    if seen not in gates:
        with LoopbackServer(obliging) as server:
            if any('"tiny@v1"' in line for line in (build / "generations.jsonl").open()):
                options = {"judge": f"tiny@{server.url}", "store": place.scratch / "judged.jsonl"}
            report = gate.audit(build, sources=sources, **options)
        gates[seen] = tuple(check.id for check in report.blocking)
    return gates[seen]
