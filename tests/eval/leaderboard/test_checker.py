"""Honest runs: the same entry wherever it is made; what becomes public; and who vouches for them."""

import inspect
import random
import shutil
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
import pytest

from robustbench_tc import schema
from robustbench_tc.audits.again import fresh_rows
from robustbench_tc.eval import inputs, predictions
from robustbench_tc.eval.leaderboard import check, checker, flags, repository, submit, verify
from robustbench_tc.eval.leaderboard.datasets import Datasets, title
from robustbench_tc.eval.leaderboard.entry import Entry, Flag, Status, Submission, Vouched, parse_status
from tests.agent_server import serving

from ...conftest import NIGHTLY
from ...refusals import refuses
from .. import small
from . import made
from .conftest import RunOf

AGENTS = ("oracle", "name-biased", "gives-up-on-error", "silent")


def entry_of(folder: Path, data: Datasets) -> Entry:
    return checker.checked(folder, made.name_of(folder), data)


# --- the same bytes ------------------------------------------------------------


def encoded(folder: Path, name: str, status: Status) -> bytes:
    """An entry made in a process that knows nothing else, from a copy whose files came in another order."""
    flags.known = inspect.unwrap(flags.known)
    copy = folder.with_name(f"{folder.name}-{random.random()}")
    copy.mkdir()
    for path in random.sample(sorted(folder.iterdir()), 3):
        shutil.copyfile(path, copy / path.name)
    return checker.encode(checker.checked(copy, name, Datasets.of_status(status)))


def test_an_entry_has_the_same_bytes_in_any_order_on_any_number_of_processes(
    data: Datasets, status: Status, run_of: RunOf
) -> None:
    folders = [run_of(agent) for agent in AGENTS]
    names = [made.name_of(folder) for folder in folders]
    here = [checker.encode(checker.checked(*one, data)) for one in zip(folders, names, strict=True)]
    assert len(set(here)) == len(AGENTS)
    order = [2, 0, 3, 1, 2] if NIGHTLY else [1, 0, 1]
    with ProcessPoolExecutor(2) as pool:
        shuffled = [folders[at] for at in order], [names[at] for at in order]
        assert list(pool.map(encoded, *shuffled, [status] * len(order))) == [here[at] for at in order]
    for text in here:
        assert checker.encode(checker.decode(text)) == text


def test_a_table_says_every_figure_and_flag(data: Datasets, run_of: RunOf) -> None:
    entry = entry_of(run_of("oracle"), data)
    lines = checker.table(entry).splitlines()
    assert lines[0].startswith(f"**Alpha-3B**, mode prompt, on release {entry.fingerprint[:8]}")
    assert any(line.startswith("| perturbed | 1.000 | [0.") for line in lines)
    assert sum(line.startswith("- Flag `") for line in lines) == len(entry.flags) > 0


# --- flags ------------------------------------------------------------


def test_reference_agents_are_told_from_models(data: Datasets, run_of: RunOf) -> None:
    for agent in AGENTS:
        found = {flag.code: flag for flag in entry_of(run_of(agent), data).flags}
        assert found[flags.REFERENCE].value >= flags.SAME_VERDICTS
        assert (flags.NEAR_GOLD in found) == (agent == "oracle")
        assert all(flags.says(flag) for flag in found.values())
    assert set(flags.MEANING) == {flags.NEAR_GOLD, flags.KNOWS_UNSAID, flags.REFERENCE, flags.COPY}


def test_a_scripted_agent_is_told_in_live_runs(live_release: Path, data: Datasets, tmp_path: Path) -> None:
    live = inputs.load_live(str(live_release))
    taken = msgspec.structs.replace(data, live=live)
    for agent, run in (
        ("blind-retrier", made.played(tmp_path / "one", live, "blind-retrier")),
        (None, made.mixed(tmp_path / "two", live)),
    ):
        entry = entry_of(made.as_handed_in(run, tmp_path / f"in-{agent}"), taken)
        assert [flag.of for flag in entry.flags] == ([] if agent is None else [agent])


@pytest.mark.parametrize("changed", [0, 20, 40])
def test_whoever_says_the_same_later_is_a_copy(changed: int) -> None:
    first, later = made.entry(3), made.entry(5)
    assert first.core is not None and later.core is not None
    replies = bytearray(first.core.replies)
    replies[: 2 * changed : 2] = bytes(one ^ 1 for one in replies[: 2 * changed : 2])
    core = msgspec.structs.replace(later.core, replies=bytes(replies))
    later = msgspec.structs.replace(later, core=core)
    share = 1 - changed / flags.SKETCHED
    copy = {later.run: Flag(code="copy", value=share, n=flags.SKETCHED, of=first.run)}
    found = flags.copies([later, made.entry(4), first])
    assert found == (copy if share >= flags.SAME_REPLIES else {})
    other = msgspec.structs.replace(later, fingerprint="0" * 32)
    assert flags.copies([first, other, msgspec.structs.replace(first, run="a/b/c", core=None)]) == {}


# --- what becomes public ------------------------------------------------------------


def test_what_is_public_names_no_place(local_run_of: RunOf, data: Datasets, tmp_path: Path) -> None:
    run = made.changed(local_run_of("silent"), tmp_path / "run")
    record = schema.loads((run / "run.json").read_bytes())
    record["settings"] |= {"model": "/home/somebody/models/alpha", "headers": ["X-Secret"]}
    record |= {"dataset": "/home/somebody/data", "reused": {"/home/somebody/runs": 3}}
    (run / "run.json").write_bytes(msgspec.json.encode(record))
    path = run / "predictions.parquet"
    told = {"model": "/home/somebody/models/alpha", "error": "http://secret.example refused", "logprobs": [1]}
    answers = [msgspec.structs.replace(one, **told) for one in predictions.read_predictions(path)]
    path.unlink()
    predictions.write(path, answers)
    folder = made.as_handed_in(run, tmp_path / "public")
    for path in folder.iterdir():
        for word in (b"somebody", b"secret", b"Secret"):
            assert word not in path.read_bytes(), path.name
    assert {one.model for one in predictions.read_predictions(folder / "predictions.parquet")} == {
        "local:alpha"
    }
    as_it_was = entry_of(made.as_handed_in(local_run_of("silent"), tmp_path / "as-it-was"), data)
    assert entry_of(folder, data).core == as_it_was.core


def test_a_run_that_is_not_complete_is_refused_in_a_line(local_run_of: RunOf, tmp_path: Path) -> None:
    run = made.changed(local_run_of("silent"), tmp_path / "run")
    (run / "predictions.parquet").unlink()
    refuses(r"has no predictions.parquet yet", submit.publish, run, tmp_path)


# --- datasets ------------------------------------------------------------


def test_status_names_the_datasets(release: Path, live_release: Path, tmp_path: Path) -> None:
    found = Datasets.of_status(Status(dataset=release.name, live=str(live_release)), release.parent)
    assert found.live is not None
    assert (title(found.core), title(found.live)) == (release.name, live_release.name)
    rows = inputs.load_samples(str(release)).rows
    few = small.write(tmp_path / "few", [row for row in rows if row.type_code in ("clean", "CD")])
    for status, says in (
        (Status(dataset=str(few)), "a board needs a dataset with every type"),
        (Status(dataset=str(release), own=(str(few),)), "`own` takes datasets of own tools alone"),
        (Status(dataset=str(release), live=str(release)), "is not a live dataset"),
        (Status(dataset=str(tmp_path / "none")), "no dataset"),
        (Status(dataset="nobody/nothing@v1"), "nobody/nothing: the Hub did not answer"),
    ):
        refuses(says, Datasets.of_status, status)


# --- who vouches --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(
    data: Datasets, live_release: Path, local_run_of: RunOf, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """A folder with the entries of a run over rows and of a live run."""
    folder = tmp_path_factory.mktemp("verify") / "results"
    submit.init(str(folder), data.core.name, live=str(live_release))
    live = made.played(folder.parent / "live", inputs.load_live(str(live_release)), "oracle")
    for run in (local_run_of("name-biased"), live):
        submit.submit(run, str(folder), Submission(model="Alpha-3B"))
    assert len(check.Checker(str(folder)).check().new) == 2
    return str(folder)


@pytest.fixture
def runs(place: str) -> dict[str, str]:
    """By kind."""
    return {entry.kind: entry.run for entry in repository.read_entries(repository.open_place(place))[1]}


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
    live = inputs.load_live(str(live_release))
    refuses(
        r"is of another dataset|is not taken",
        verify.verify,
        place,
        runs["live"],
        repeated=local_run_of("oracle"),
        by="ann",
    )
    # Each of the six tasks has one row that the liar alone gets right: the oracle leaves a lost answer open.
    other = made.played(tmp_path / "liar", live, "liar")
    refuses(
        r"0\.273 here, 0\.000 submitted, p = 0\.031",
        verify.verify,
        place,
        runs["live"],
        repeated=other,
        by="ann",
    )
    same = made.played(tmp_path / "same", live, "oracle")
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

    def asked(agent: str, rows: Sequence[schema.Sample], work: str) -> Vouched:
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
    refuses("add under `tiers`", verify.with_tier, text, parse_status(text, ""), "o/m/i", ONE)
