"""Pull requests that want more than to add one run: each is refused or inert, and the honest run stays."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from robustbench_tc.eval.leaderboard import checker, repository
from robustbench_tc.eval.leaderboard.entry import Entry
from tests.hub import ADA

from . import made
from .conftest import RunOf
from .hubs import Results

Files = dict[str, bytes | None]

DAY = "20261120"


class Attacker:
    """What a stranger has to make a pull request of."""

    def __init__(self, results: Results, folder: Path) -> None:
        self.place = repository.Hub(results.name)
        [self.honest] = results.read()[0]
        self.theirs = f"runs/{self.honest.run}"
        self.folder = folder
        self.run = made.name_of(folder, "mallory", day=DAY)

    def files(self, run: str | None = None) -> Files:
        """A good run of the attacker's."""
        return {f"runs/{run or self.run}/{path.name}": path.read_bytes() for path in self.folder.iterdir()}

    def read(self, name: str) -> bytes:
        return self.place.read_file(f"{self.theirs}/{name}")

    def named(self, name: str) -> Files:
        return {f"runs/{self.run}/{name}": b"x"}

    @property
    def forged(self) -> Entry:
        """The honest entry as the attacker's, so that it looks as a checker had made it."""
        inputs = checker.digests(self.folder)
        return msgspec.structs.replace(
            self.honest, run=self.run, inputs=inputs, submitter="mallory", flags=()
        )

    def status(self) -> bytes:
        vouched = {"tier": "reproduced", "by": "the maintainers", "day": "2026-11-20", "reason": "we did"}
        line = f"tiers:\n  {self.run}: {json.dumps(vouched)}\n".encode()
        return self.place.read_file("status.yaml").replace(b"tiers: {}\n", line)


OPEN: dict[str, tuple[str, Callable[[Attacker], Files]]] = {
    "status": ("changes 'status.yaml'", lambda a: {**a.files(), "status.yaml": a.status()}),
    "no-status": ("removes 'status.yaml'", lambda a: {"status.yaml": None}),
    "all-entries": (
        "changes 'entries.json'",
        lambda a: {**a.files(), **repository.write_entries([a.forged, a.honest])},
    ),
    "their-entry": (
        "changes 'runs/lab/",
        lambda a: {f"{a.theirs}/entry.json": checker.encode(msgspec.structs.replace(a.honest, flags=()))},
    ),
    "forged-entry": (
        "adds entry.json, which only the checker writes",
        lambda a: {**a.files(), f"runs/{a.run}/entry.json": checker.encode(a.forged)},
    ),
    "their-words": ("changes", lambda a: {f"{a.theirs}/submission.yaml": b"model: lab/Alpha-3B\nnote: no\n"}),
    "their-replies": (
        "changes",
        lambda a: {f"{a.theirs}/predictions.parquet": a.files()[f"runs/{a.run}/predictions.parquet"]},
    ),
    "removed": ("removes", lambda a: {f"{a.theirs}/run.json": None, **a.files()}),
    "renamed": (
        "removes",
        lambda a: {
            path: data
            for name in ("run.json", "predictions.parquet", "submission.yaml", "entry.json")
            for path, data in (
                (f"{a.theirs}/{name}", None),
                (f"{a.theirs.replace('lab', 'mallory')}/{name}", a.read(name)),
            )
        },
    ),
    "two-runs": ("one run, and nothing else", lambda a: a.files() | a.files(a.run.replace("mallory", "b"))),
    "card": ("changes 'README.md'", lambda a: {**a.files(), "README.md": b"Send your token to me"}),
    "attributes": ("changes '.gitattributes'", lambda a: {".gitattributes": b"* filter=evil\n"}),
    "a-program": ("a run is run.json", lambda a: a.files() | a.named("check.py")),
    "a-folder": ("one run, and nothing else", lambda a: a.files() | a.named("more/run.json")),
    "beside": ("one run, and nothing else", lambda a: {**a.files(), "runs/x.json": b"{}"}),
    "elsewhere": ("one run, and nothing else", lambda a: {**a.files(), "Runs/a/b/c": b"{}"}),
    "capitals": ("a run is run.json", lambda a: a.named("RUN.JSON") | a.named("submission.yaml")),
    "up": ("is no run", lambda a: a.files(f"mallory/..../{a.run[-21:]}")),
    "markup": ("cannot be listed", lambda a: a.files(f"mallory/<script>/{a.run[-21:]}")),
    "invisible": ("cannot be listed", lambda a: a.files(f"mallory/Alpha\u200b3B\n/{a.run[-21:]}")),
    "deep": ("is no run", lambda a: a.files(f"mallory/a/b/{a.run[-21:]}")),
    "too-long": ("at most 20,000", lambda a: a.files() | {f"runs/{a.run}/submission.yaml": b"#" * 70_000}),
    "too-large": ("at most", lambda a: a.files() | {f"runs/{a.run}/run.json": b" " * (9 << 20)}),
    "half": ("a run is run.json", lambda a: dict(list(a.files().items())[:2])),
    "other-id": ("does not fit the files", lambda a: a.files(f"mallory/Alpha-3B/{DAY}-0123456789ab")),
    "to-come": ("has not come", lambda a: a.files(a.run.replace(DAY, "20991231"))),
    "no-day": ("is no run", lambda a: a.files(a.run.replace(DAY, "20261340"))),
    "theirs-in-capitals": ("is there already", lambda a: a.files(a.honest.run.replace("lab", "LAB"))),
}  # fmt: skip

AFTER: dict[str, Callable[[Attacker], Files]] = {
    "a tier": lambda a: {"status.yaml": a.status()},
    "a forged entry": lambda a: {
        f"runs/{a.run}/entry.json": checker.encode(a.forged),
        **repository.write_entries([a.forged, a.honest]),
    },
    "other replies": lambda a: {f"runs/{a.run}/predictions.parquet": a.read("predictions.parquet")},
    "other words": lambda a: {f"runs/{a.run}/submission.yaml": b"model: Alpha-3B\nlicence: mit\n"},
    "another run with an entry": lambda a: {
        **a.files(a.run.replace("mallory", "b")),
        f"runs/{a.run.replace('mallory', 'b')}/entry.json": checker.encode(a.forged),
    },
    "their run removed": lambda a: {f"{a.theirs}/{name}": None for name in ("run.json", "submission.yaml")},
    "their replies": lambda a: {
        f"{a.theirs}/predictions.parquet": a.files()[f"runs/{a.run}/predictions.parquet"]
    },
    "all entries removed": lambda a: {"entries.parquet": None, "entries.json": None},
}


@pytest.fixture
def attacker(listed: Results, run_of: RunOf) -> Attacker:
    return Attacker(listed, run_of("oracle"))


def test_a_pull_request_adds_one_run_and_nothing_else(listed: Results, attacker: Attacker) -> None:
    numbers = {name: listed.push(files(attacker)) for name, (_, files) in OPEN.items()}
    before = listed.files
    report = listed.check()
    for name, (wanted, _) in OPEN.items():
        found = report.pulls[numbers[name]]
        assert isinstance(found, str) and wanted in found, (name, found)
        assert len(found) < 400 and found.isascii() and "\n" not in found
        assert "It is not taken" in listed.comments(numbers[name])[-1][1]
    assert listed.files == before and not report.problems


@pytest.mark.parametrize("what", AFTER)
def test_what_is_pushed_after_the_check_is_not_believed(
    listed: Results, attacker: Attacker, what: str
) -> None:
    number = listed.push(attacker.files())
    assert isinstance(listed.check().pulls[number], Entry)
    checked, before = listed.head(number), listed.files
    listed.push(AFTER[what](attacker), onto=number)
    listed.merge(number)
    report = listed.check()
    assert report.new == [] and report.entries == 1
    why = f"{number} is merged, and it was changed after it was checked (commit {checked[:12]})"
    assert why in report.problems[0]
    assert attacker.run in report.refused
    found, dropped = listed.read()
    assert found == [attacker.honest] and attacker.run in dropped
    assert {path: file for path, file in listed.files.items() if path in before} == before
    listed.check()
    assert (
        len(listed.comments(number)) == 2 and "changed after it was checked" in listed.comments(number)[1][1]
    )


def test_what_was_refused_and_merged_gets_no_entry(listed: Results, attacker: Attacker) -> None:
    before = listed.files
    number = listed.push({**attacker.files(), "status.yaml": attacker.status()})
    listed.check()
    listed.merge(number)
    assert f"pull request {number} is merged, and it was refused" in listed.check().problems[0]
    assert listed.read()[0] == [attacker.honest]
    assert listed.files["status.yaml"] == before["status.yaml"]


def test_a_copy_of_an_honest_run_takes_its_entry_from_nobody(listed: Results, attacker: Attacker) -> None:
    """A pull request from before it was merged adds the very files, and then more."""
    number = listed.push(attacker.files())
    same = listed.push(attacker.files(), token=ADA)
    listed.check()
    listed.merge(same)
    listed.push({"x.txt": b"x"}, onto=number)
    listed.merge(number)
    assert [(entry.run, entry.submitter) for entry in listed.check().new] == [(attacker.run, "ada")]


def test_a_run_stays_with_whoever_brought_it_first(listed: Results, attacker: Attacker) -> None:
    """The attacker has an earlier pull request, and puts the very files into it."""
    theirs = listed.push({"x.txt": b"x"})
    ours = listed.push(attacker.files(), token=ADA)
    listed.check()
    listed.merge(ours)
    assert [entry.submitter for entry in listed.check().new] == ["ada"]
    listed.push({"x.txt": None, **attacker.files()}, onto=theirs)
    listed.check()
    listed.merge(theirs)
    found = listed.check(everything=True).new
    assert {entry.submitter for entry in found} == {"ada"} and len(found) == 2
