"""An entry says what `rbtc score` and `rbtc summary` say of the same run, digit by digit."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import pytest

from robustbench_tc import api, schema
from robustbench_tc.api.building import build_release
from robustbench_tc.builders.build import BuildSpec, select_types
from robustbench_tc.eval import inputs
from robustbench_tc.eval.leaderboard import checker, datasets
from robustbench_tc.eval.leaderboard.entry import Entry, Status

from ...conftest import NIGHTLY, Done
from ...loopback import LoopbackServer
from ...own import shop
from .. import small
from ..test_own_runs import careful
from . import made

Rbtc = Callable[..., Done]

PACKS = ("offers", "registry", "abstention")


class Kind(NamedTuple):
    """A run: of which dataset, by which agent, asked how."""

    of: str
    agent: str
    how: Mapping[str, Any] = MappingProxyType({})

    def __str__(self) -> str:
        return "-".join((self.of, self.agent, *(f"{name}={value}" for name, value in self.how.items())))


KINDS = (
    Kind("core", "silent"),
    Kind("core", "rambler"),
    Kind("core", "gives-up-on-error", {"mode": "fc"}),
    Kind("core", "name-biased", {"mode": "fc", "repeat": 3}),
    Kind("core", "rambler", {"defend": ("schema", "hint")}),
    Kind("packs", "name-biased", {"mode": "fc"}),
    Kind("own", "careful", {"mode": "prompt"}),
    Kind("live", "liar", {"mode": "prompt"}),
    Kind("live", "liar", {"defend": ("vote:3", "hint"), "repeat": 2}),
    Kind("live", "mixed"),
    Kind("core", "oracle"),
    Kind("core", "name-biased"),
    Kind("core", "always-calls"),
    Kind("core", "apology", {"mode": "fc"}),
    Kind("core", "gives-up-on-error", {"repeat": 2}),
    Kind("core", "oracle", {"defend": ("retry",)}),
    Kind("packs", "oracle"),
    Kind("own", "careful", {"mode": "fc"}),
    Kind("live", "blind-retrier"),
    Kind("live", "blind-retrier", {"repeat": 2}),
    Kind("live", "blind-retrier", {"defend": ("retry", "schema")}),
)
BY_DAY = 10
"""The first ones: every kind of data, mode, repeat and defence. `make nightly` takes all."""


@pytest.fixture(scope="module")
def packs_of(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that holds packs: a clean row of each source and what is made of it."""
    folder = tmp_path_factory.mktemp("packs")
    build_release(BuildSpec(profile="bundled", codes=select_types(("core", *PACKS))), folder / "built")
    rows = inputs.load_samples(str(folder / "built")).rows
    first: dict[str, str] = {}
    for row in rows:
        first.setdefault(row.source, row.clean_id)
    return small.write(folder / "cut", [row for row in rows if row.clean_id == first[row.source]])


@pytest.fixture(scope="module")
def all_data(
    release: Path, packs_of: Path, live_release: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, datasets.Datasets]:
    """Repositories whose core is the release, and the one with packs; both take live runs and own tools."""
    folder = tmp_path_factory.mktemp("shop")
    api.build(folder / "bench", cases=shop.write(folder), types=("transient_timeout",))
    status = Status(dataset=str(release), live=str(live_release), own=(str(folder / "bench"),))
    core = datasets.Datasets.of_status(status)
    packs = datasets.Datasets.of_status(Status(dataset=str(packs_of)))
    return {"core": core, "own": core, "live": core, "packs": packs}


def local_run(kind: Kind, data: datasets.Datasets, folder: Path) -> Path:
    """The run on this machine, as its command leaves it."""
    if kind.of == "live":
        assert data.live is not None
        play = made.mixed if kind.agent == "mixed" else made.played
        extra = () if kind.agent == "mixed" else (kind.agent,)
        return play(folder / "live", data.live, *extra, **kind.how)
    if kind.of == "own":
        with LoopbackServer(careful) as server:
            api.evaluate(data.own[0].name, model="tiny", base_url=server.url, out=folder / "run", **kind.how)
        return folder / "run"
    return made.local_run(folder / "run", kind.agent, data.core, **kind.how)


@pytest.mark.parametrize("kind", KINDS if NIGHTLY else KINDS[:BY_DAY], ids=str)
def test_an_entry_has_the_figures_of_the_commands(
    kind: Kind, all_data: dict[str, datasets.Datasets], tmp_path: Path, rbtc: Rbtc
) -> None:
    data = all_data[kind.of]
    run = local_run(kind, data, tmp_path)
    handed_in = made.as_handed_in(run, tmp_path / "handed-in")
    entry = checker.checked(handed_in, made.name_of(handed_in), data)
    assert entry.kind == ("core" if kind.of == "packs" else kind.of)
    assert rbtc("score", run).code == 0
    said = rbtc("summary", run, "--json")
    assert said.code == 0, said.err
    (of_live if kind.of == "live" else of_rows)(entry, json.loads(said.out), run)


def plain(value: Any) -> schema.Json:
    return json.loads(msgspec.json.encode(value))


def of_live(entry: Entry, said: dict[str, Any], run: Path) -> None:
    assert entry.live is not None
    assert plain(entry.live.lines) == said["faults"]
    assert entry.live.episodes == said["expected"] - said["missing"]
    assert plain(entry.live.clean) == said["summary"]["values"]["clean"]


def of_rows(entry: Entry, said: dict[str, Any], run: Path) -> None:
    core = entry.core
    assert core is not None
    assert plain(core.metrics) == said["summary"]["values"]
    lines = said["summary"]["lines"]
    for name, (right, n) in core.counts.items():
        assert (right, n) == (lines[name]["correct"], lines[name]["n"]), name
    for code, line in core.types.items():
        row = said["summary"]["types"][code]
        assert (plain(line.accuracy), plain(line.delta)) == (row["accuracy"], row["delta"])
        if row["flips"] is not None:
            flips = (row["flips"]["lost"], row["flips"]["gained"], row["flips"]["p_holm"])
            assert line.flips is not None
            assert (line.flips.lost, line.flips.gained, line.flips.p_holm) == flips
    assert plain(core.verified) == said["verified"]
    packs = {one.name: plain(one) for one in core.tables if one.pack}
    assert packs == {one["name"]: one for one in said["packs"]}
    # What the entry alone keeps: a bit for every row, sums by source.
    assert core.verdicts is not None
    total = sum(right for name, (right, _) in core.counts.items() if name in ("clean", "perturbed"))
    assert total == sum(int.from_bytes(one).bit_count() for one in core.verdicts.right)
    asked = sum(n for name, (_, n) in core.counts.items() if name in ("clean", "perturbed"))
    assert asked == int.from_bytes(core.verdicts.there).bit_count() * entry.repeats
    sums = [sum(of) for of in zip(*core.sources.values(), strict=True)]
    assert tuple(sums) == core.counts["perturbed"]
