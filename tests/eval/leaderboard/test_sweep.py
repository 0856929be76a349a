"""A sweep over three servers that are programs: one dies, one has no tool parser; killed again and again."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from robustbench_tc.eval import inputs, predictions
from robustbench_tc.eval.leaderboard import repository

from ...commands import LIMIT_S, journaled, running
from ...conftest import NIGHTLY, Rbtc
from ...trees import write
from .. import small

FAKE = Path(__file__).with_name("fake_model.py")


@pytest.fixture
def few(release: Path, tmp_path: Path) -> Path:
    """Two sources under every type: servers and kills are the test's point, not rows."""
    rows = inputs.load_samples(str(release)).rows
    return small.write(tmp_path / "few", [row for row in rows if row.source in ("apibank", "tooleyes")])


def models(folder: Path, release: Path) -> Path:
    """A file of three models, of which one is asked in both modes."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    rows = inputs.load_samples(str(release)).rows
    fatal = next(row for row in rows if row.source == "tooleyes").messages[-1].content.strip()[:30]
    common = f'base_url = "http://127.0.0.1:{port}/v1"\nmax_retries = 0\nconcurrency = 2\n'
    serve = f"{sys.executable} {FAKE} {port}"
    file = folder / "models.toml"
    file.write_text(
        f'[steady]\nserve = "{serve} steady"\nmode = "fc"\n{common}submission = {{licence = "mit"}}\n'
        f"[mortal]\nserve = '''{serve} mortal \"{fatal}\"'''\nmode = \"fc\"\n{common}"
        f'[unparsed]\nserve = "{serve} unparsed"\nmode = ["fc", "prompt"]\n{common}'
    )
    return file


def results(out: Path) -> dict[str, Any]:
    """What a sweep left: runs with predictions, without the seconds that they took, and what failed."""
    runs = {
        run.name: [
            msgspec.structs.replace(one, latency_s=None)
            for one in predictions.read_predictions(run / "predictions.parquet")
        ]
        for run in sorted((out / "sweep").glob("*-*"))
    }
    failed = json.loads((out / "sweep" / "failures.json").read_bytes())
    public = repository.runs(repository.Folder(out).files())
    return {
        "complete": {name: found for name, found in runs.items() if not name.startswith("mortal")},
        "failed": [(one["model"], one["mode"], one["step"]) for one in failed],
        "public": sorted((run.rsplit("/", 1)[0], sorted(files)) for run, files in public.items()),
    }


def alive() -> list[str]:
    """Guards, servers and their children."""
    listed = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(FAKE) in line]


def test_two_runs_and_two_failures_whatever_is_killed(few: Path, tmp_path: Path, rbtc: Rbtc) -> None:
    file, out, killed = models(tmp_path, few), tmp_path / "results", tmp_path / "killed"
    done = rbtc("sweep", file, few, "--out", out)
    whole = results(out)
    assert done.code == 1 and "2 complete runs, 2 failures" in done.out, done
    assert list(whole["complete"]) == ["steady-fc", "unparsed-prompt"]
    assert whole["failed"] == [("mortal", "fc", "eval"), ("unparsed", "fc", "probe")]
    assert "mortal fc: eval: " in done.out and "stopped answering" in done.out
    assert "unparsed fc: probe: " in done.out and "native call: no" in done.out
    files = ["predictions.parquet", "run.json", "submission.yaml"]
    assert whole["public"] == [("local/steady", files), ("local/unparsed", files)]
    page = (out / "sweep" / "report" / "report.html").read_text()
    assert "steady" in page and "unparsed" in page and "mortal" not in page
    assert "exit code 3" in (out / "sweep" / "servers.log").read_text()
    assert alive() == []

    # Again: nothing is asked of what is complete, and nothing submitted twice.
    asked = journaled(out / "sweep" / "steady-fc")
    assert rbtc("sweep", file, few, "--out", out, "--json").code == 1
    assert results(out) == whole and journaled(out / "sweep" / "steady-fc") == asked
    checked = rbtc("leaderboard", "check", out)
    assert checked.code == 0 and checked.out.count("new: ") == 2 and "entries: 2" in checked.out

    card = (out / "README.md").read_bytes().replace(bytes(out), bytes(killed))
    write(killed, {"README.md": card})  # what is left where it is killed while it begins
    words = ("sweep", file, few, "--out", killed)
    work = killed / "sweep"
    marks = (
        lambda: (work / "servers.log").exists(),
        lambda: journaled(work / "steady-fc") > 5,
        lambda: (killed / "runs").exists(),
        lambda: journaled(work / "unparsed-prompt") > 5,
        lambda: (work / "report").exists() or len(list(killed.glob("runs/*/*/*"))) == 2,
    )
    for mark in marks if NIGHTLY else marks[1:3]:  # by day: among the answers of a run, and among its files
        with running(tmp_path / "said", *words) as command:
            command.until(mark)
            command.kill()
    with running(tmp_path / "said", *words) as command:
        command.until(lambda: len(alive()) >= 3)  # the guard, the server, its child
        assert f"kept in {killed}; run the same command again to resume" in command.interrupt()
    assert alive() == []
    with running(tmp_path / "said", *words) as command:
        assert command.process.wait(LIMIT_S) == 1, (tmp_path / "said").read_text()
    assert results(killed) == whole
    assert rbtc("leaderboard", "check", killed).out.count("new: ") == 2
    assert alive() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a]\nserv = 'x'", "unknown field `serv`"),
        ("[a]\ntemperature = -1", "`float` >= 0"),
        ("[a\n", "models.toml"),
    ],
)
def test_a_file_of_something_else_is_one_line(text: str, said: str, tmp_path: Path, rbtc: Rbtc) -> None:
    (tmp_path / "models.toml").write_text(text)
    assert said in rbtc("sweep", tmp_path / "models.toml", "--out", tmp_path / "out").refusal
    assert not (tmp_path / "out").exists()


def test_servers_that_do_not_come_are_named(release: Path, tmp_path: Path, rbtc: Rbtc) -> None:
    file, out = tmp_path / "models.toml", tmp_path / "out"
    file.write_text(
        "[no-such-model]\n[gone]\nserve = 'no-such-program --port 1'\nbase_url = 'http://127.0.0.1:9/v1'\n"
        "[broken]\nserve = '''sh -c \"echo out of memory; exit 7\"'''\nbase_url = 'http://127.0.0.1:9/v1'\n"
        "[slow]\nserve = 'sleep 60'\nwait_s = 0.5\nbase_url = 'http://127.0.0.1:9/v1'\n"
        "[away]\nbase_url = 'http://127.0.0.1:9/v1'\nmax_retries = 0\n"
    )  # fmt: skip
    started = time.monotonic()
    done = rbtc("sweep", file, release, "--samples", 1, "--out", out, "--json")
    found = {one["model"]: (one["step"], one["reason"]) for one in json.loads(done.out)["failures"]}
    assert done.code == 1 and time.monotonic() - started < 30
    assert found["no-such-model"][0] == "serve" and "unknown model" in found["no-such-model"][1]
    assert "no-such-program" in found["gone"][1]
    assert "out of memory; exit code 7" in found["broken"][1]
    assert found["slow"][0] == "serve" and "no answer at" in found["slow"][1]
    assert found["away"][0] == "probe" and "nothing answers at" in found["away"][1]
    assert json.loads((out / "sweep" / "failures.json").read_bytes()) == json.loads(done.out)["failures"]
