"""A maintainer's repetition, an endpoint asked again, and the tier that either writes."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.audits.again import fresh_rows
from robustbench_tc.eval import inputs
from robustbench_tc.eval.leaderboard import check, entries, submit, verify
from robustbench_tc.eval.leaderboard.datasets import Datasets
from robustbench_tc.eval.leaderboard.entry import Status, Submission, Vouched, parse_status
from robustbench_tc.eval.leaderboard.place import open_place
from robustbench_tc.schema import Sample
from tests.agent_server import serving

from ...refusals import refuses
from . import live_runs
from .conftest import RunOf


@pytest.fixture(scope="module")
def place(
    data: Datasets, live_release: Path, local_run_of: RunOf, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A folder with the entries of a run over rows and of a live run."""
    folder = tmp_path_factory.mktemp("verify") / "results"
    submit.init(str(folder), data.core.name, live=str(live_release))
    live = Datasets.of_status(Status(dataset=data.core.name, live=str(live_release))).live
    assert live is not None
    for run in (local_run_of("name-biased"), live_runs.played(folder.parent / "live", live, "oracle")):
        submit.submit(run, str(folder), Submission(model="Alpha-3B"))
    assert len(check.Checker(str(folder)).check().new) == 2
    return str(folder)


@pytest.fixture
def runs(place: str) -> dict[str, str]:
    """By kind."""
    return {entry.kind: entry.run for entry in entries.read_entries(open_place(place))[1]}


def tiers(place: str) -> dict[str, Vouched]:
    return parse_status((Path(place) / "status.yaml").read_bytes(), "status.yaml").tiers


def test_a_run_that_is_repeated_is_reproduced(
    place: str,
    runs: dict[str, str],
    local_run_of: RunOf,
    live_release: Path,
    tmp_path: Path,
) -> None:
    refuses(
        r"does not repeat .*, p = 0\.0\d+; it stays as it is",
        verify.verify,
        place,
        runs["core"],
        repeated=local_run_of("oracle"),
        by="ann",
    )
    refuses(
        "another mode than",
        verify.verify,
        place,
        runs["core"],
        repeated=local_run_of("name-biased", mode="fc"),
        by="ann",
    )
    assert runs["core"] not in tiers(place)
    done = verify.verify(place, runs["core"], repeated=local_run_of("name-biased"), by="ann")
    assert (done.tier, done.by) == ("reproduced", "ann") and "p = 1.000" in done.reason
    live = Datasets.of_status(parse_status((Path(place) / "status.yaml").read_bytes(), "")).live
    assert live is not None
    refuses(
        r"is of another dataset|is not taken",
        verify.verify,
        place,
        runs["live"],
        repeated=local_run_of("oracle"),
        by="ann",
    )
    # Each of the six tasks has one row that the liar alone gets right: the oracle leaves a lost answer open.
    other = live_runs.played(tmp_path / "liar", live, "liar")
    refuses(
        r"0\.273 here, 0\.000 submitted, p = 0\.031",
        verify.verify,
        place,
        runs["live"],
        repeated=other,
        by="ann",
    )
    same = live_runs.played(tmp_path / "same", live, "oracle")
    live_done = verify.verify(place, runs["live"], repeated=same, by="ann")
    assert tiers(place) == {runs["core"]: done, runs["live"]: live_done}


def test_an_endpoint_is_asked_rows_that_nobody_has_seen(
    place: str,
    runs: dict[str, str],
    data: Datasets,
    bundled: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An endpoint that has the submission's answers alone does not pass."""
    monkeypatch.setattr(verify, "ROWS", 60)
    fresh_rows(str(bundled), 7, tmp_path / "made")
    fresh = inputs.load_samples(str(tmp_path / "made"))

    def rebuild(dataset: str, seed: int, out: Path) -> None:
        assert dataset == data.core.name and seed != 7
        shutil.copytree(tmp_path / "made", out)

    monkeypatch.setattr("robustbench_tc.audits.again.fresh_rows", rebuild)

    def asked(agent: str, rows: Sequence[Sample], work: str) -> Vouched:
        with serving(agent, rows) as url:
            return verify.verify(place, runs["core"], base_url=url, work=tmp_path / work, by="ann")

    refuses("does not match", asked, "silent", fresh.rows, "silent")
    refuses(r"does not match|got no answer", asked, "name-biased", data.core.rows, "stored")
    done = asked("name-biased", fresh.rows, "same")
    assert done.tier == "endpoint-matched" and "60 rows in new words" in done.reason
    assert tiers(place)[runs["core"]] == done
    refuses(
        "is a run of kind live", verify.verify, place, runs["live"], base_url="http://127.0.0.1:9", by="ann"
    )
    refuses(
        "has no entry of a/b/c: there is no such run",
        verify.verify,
        place,
        "a/b/c",
        repeated=tmp_path,
        by="ann",
    )
    ids = verify.drawn(fresh.rows, "f")
    assert len(set(ids)) == 60 and ids == verify.drawn(fresh.rows, "f") != verify.drawn(fresh.rows, "e")


ONE = Vouched(tier="reproduced", by='a "b"', day="2026-11-20", reason="x: {y} # z\n")


@pytest.mark.parametrize(
    "text",
    [
        "dataset: a/b@v1\n",
        "dataset: a/b@v1\ntiers: {}  # none yet\n# the last word\n",
        "dataset: a/b@v1\ntiers: # us\n  # ours\n  x/y/z: {tier: reproduced, by: m, day: d, reason: r}\n",
    ],
)
def test_a_tier_is_added_and_the_rest_of_the_file_stays(text: str) -> None:
    status = parse_status(text.encode(), "")
    made = verify.with_tier(text.encode(), status, "o/m/i", ONE)
    assert parse_status(made, "") == msgspec.structs.replace(status, tiers=status.tiers | {"o/m/i": ONE})
    assert {line for line in text.splitlines() if "tiers" not in line} <= set(made.decode().splitlines())
    other = msgspec.structs.replace(ONE, tier="endpoint-matched")
    again = verify.with_tier(made, parse_status(made, ""), "o/m/i", other)
    assert (
        len(again.splitlines()) == len(made.splitlines()) and parse_status(again, "").tiers["o/m/i"] == other
    )


def test_a_file_that_cannot_be_added_to_is_left_alone() -> None:
    text = b"dataset: a/b\ntiers: {x/y/z: {tier: reproduced, by: m, day: d, reason: r}}\n"
    refuses("put under `tiers`", verify.with_tier, text, parse_status(text, ""), "o/m/i", ONE)
