"""No command deletes or replaces what it did not make: every command, every output option, hostile places.

The table below says of every parameter that could name a file or a folder whether it is read or written; a
parameter that is missing from it fails a test by its name.
"""

import ast
import json
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import metadata
from io import StringIO
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from robustbench_tc.cli import _derive, main, verbs
from robustbench_tc.io import marker
from robustbench_tc.proxy import journal

from . import released
from .builders import rlla_rows
from .conftest import NIGHTLY, ROOT, Done
from .eval import small
from .trees import Tree, tree, write

Rbtc = Callable[..., Done]

NOWHERE = "http://127.0.0.1:9"
ENDPOINT = f"openai:m@{NOWHERE}/v1"


class Output(NamedTuple):
    """A parameter that names something to write."""

    command: str
    """The command line; {out} is the place, {new} a fresh one, {build} and the like were made before."""
    ours: str | None = None
    """Which of the things made before this command would replace, or go on with."""
    goes_on: bool = False
    """In a folder of ours it adds to what is there instead of replacing it."""


CHESS, CLUB = "bfcl_v3__BFCL_v3_simple__simple_starter_2", "chess_club.record_result"
BUILD = "build --profile bundled --types CD --out {out}"
TRAINING = "build toolrl-dr --rlla {rlla} --configs mixed --out {out}"
LIVE = "build live --worlds {world} --kinds silent_no_op --out {out}"
LIVE_RUN = "eval {live} --worlds {world} --agent oracle --out {out}"
LIVE_REPORT = "report {live_run} --worlds {world} --out {out}"
EVAL = "eval {release} --agent oracle --out {out}"
SPACE = "leaderboard space {out} --results acme/results"
SITE = "leaderboard build {results} --out {out}"
REPORT = "report {run} --out {out}"
FETCH = f"data fetch --mirror {NOWHERE} --source tooleyes --sources {{out}}"
MODEL = "--generator " + ENDPOINT + " --store {out} --out {new}"

LOGGED = {
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
    "tools": [{"name": "find", "description": "Finds."}],
}

OUTPUTS: dict[str, list[Output]] = {
    "init folder": [Output("init {out}")],
    "cases import --out": [
        Output("cases import {log} --out {out}"),
        Output("cases import {log} --faults --out {out}"),
    ],
    "cases draft --out": [Output("cases draft {tools} --out {out}")],
    "build --out": [
        Output(BUILD, "build"),
        Output(f"{BUILD} --force", "build"),
        Output(f"{BUILD} --force --discard-changes", "build"),
    ],
    "build --store": [Output(f"build --profile bundled --types query_paraphrase {MODEL}")],
    "build toolrl-dr --out": [
        Output(TRAINING, "training"),
        Output(f"{TRAINING} --force", "training"),
        Output(f"{TRAINING} --force --discard-changes", "training"),
    ],
    "build live --out": [
        Output(LIVE, "live"),
        Output(f"{LIVE} --force", "live"),
        Output(f"{LIVE} --force --discard-changes", "live"),
    ],
    "build toolrl-dr --store": [Output(f"build toolrl-dr --rlla {{rlla}} --configs full {MODEL}")],
    "eval --out": [
        Output(EVAL, "run", goes_on=True),
        Output(f"{EVAL} --fresh", "run"),
        Output(f"{EVAL} --fresh --discard-changes", "run"),
        Output(LIVE_RUN, "live_run", goes_on=True),
        Output(f"{LIVE_RUN} --fresh", "live_run"),
        Output(f"{LIVE_RUN} --fresh --discard-changes", "live_run"),
    ],
    "score run": [
        Output("score {out}", "run", goes_on=True),
        Output("score {out} --worlds {world}", "live_run", goes_on=True),
    ],
    "score --out": [Output("score {journal} --dataset {release} --out {out}", "run", goes_on=True)],
    "gate --junit": [Output("gate {run} --junit {out}")],
    "gate --save-baseline": [Output("gate {run} --save-baseline {out}", "baseline")],
    "gate --markdown": [Output("gate {run} --markdown {out}")],
    "import --out": [Output("import {lines} {release} --model m --out {out}", "run", goes_on=True)],
    "export --out": [
        Output("export {run} --out {out}"),
        Output("export {run} --layout paper --out {out}"),
    ],
    "export hub --out": [Output("export hub {run} --dataset acme/x --out {out}")],
    "export requests --out": [Output("export requests {release} --model m --begin {new} --out {out}")],
    "export requests --begin": [Output("export requests {release} --model m --begin {out} --out {new}")],
    "sweep --out": [Output("sweep {models} {release} --out {out}")],
    "report --out": [
        Output(REPORT, "report"),
        Output(f"{REPORT} --discard-changes", "report"),
        Output(LIVE_REPORT, "live_report"),
        Output(f"{LIVE_REPORT} --discard-changes", "live_report"),
    ],
    "sql --out": [
        Output("sql table2 --paper --out {out}"),
    ],
    "release --out": [Output("release {gated} --version 1.0.0 --out {out}", "build")],
    "audit folder": [Output("audit {out}")],
    "audit --out": [
        Output("audit {build} --out {out}", "build"),
        Output("audit {run} --dataset {release} --out {out}", "build"),
    ],
    "audit --store": [Output(f"audit {{build}} --judge m@{NOWHERE}/v1 --store {{out}} --out {{new}}")],
    "audit --review-out": [Output("audit {build} --review-out {out}")],
    "data amend --out": [
        Output(
            "data amend {trial} --clean-id {chess} --answers {answers} --reason because --out {out}", "build"
        )
    ],
    "data amend release": [Output("data amend {out} --withdraw --reason because")],
    "data fetch --sources": [Output(FETCH), Output(f"{FETCH} --discard-changes")],
    "lint --save": [Output("lint --save {out} -- {python} {mcp} plain")],
    "drill --sarif": [Output("drill --sarif {out} -- {python} {mcp} plain")],
    "drill --badge": [Output("drill --badge {out} -- {python} {mcp} plain")],
    "drill --save-plan": [Output("drill --save-plan {out} -- {python} {mcp} plain")],
    "proxy --journal": [
        Output("proxy --upstream http://127.0.0.1:9/v1 --plan {plan} --port {port} --journal {out}"),
        Output("proxy --mcp-url http://127.0.0.1:9/mcp --plan {plan} --port {port} --journal {out}"),
    ],
    "proxy --write": [Output("proxy --plan {plan} --mcp-servers {servers} --write {out} --journal {new}")],
    "proxy run --journal": [
        Output("proxy run {release} --command true --upstream http://127.0.0.1:9/v1 --journal {out}")
    ],
    "proxy run --out": [
        Output(
            "proxy run {release} --command true --upstream http://127.0.0.1:9/v1 --journal {new} --out {out}"
        )
    ],
    "leaderboard init place": [Output("leaderboard init {out} {release}")],
    "leaderboard submit --to": [
        Output("leaderboard submit {run} --to {out} --dataset {release} --model acme/alpha")
    ],
    "leaderboard check place": [Output("leaderboard check {out} --dataset {release}")],
    "leaderboard build --out": [Output(SITE, "site")],
    "leaderboard serve place": [Output("leaderboard serve {out} --port {port}")],
    "leaderboard verify place": [
        Output("leaderboard verify {out} acme/alpha/20261120-000000000000 --repeated {run}")
    ],
    "leaderboard verify --out": [
        Output(
            "leaderboard verify {results} acme/alpha/20261120-000000000000"
            " --base-url http://127.0.0.1:9/v1 --out {out}"
        )
    ],
    "leaderboard space folder": [
        Output(SPACE, "space"),
        Output(f"{SPACE} --force", "space"),
        Output(f"{SPACE} --force --discard-changes", "space"),
    ],
}

INPUTS = """
eval --rlla, verify release, import predictions, cases import logs, cases import --tools,
cases import --redact,
cases draft tools, cases review cases,
eval --reuse, summary run, export run, export hub run,
eval --reuse, summary run, export run, export requests --second-pass, sweep file,
failures run, release build,
publish folder, build --sources, build toolrl-dr --rlla, build toolrl-dr --sources,
build live --sources, build toolrl-dr --tokenizer,
audit --benchmark, audit --sources, audit --rlla,
train check --model-dir, train check --recipe-file,
data amend --answers, data amend --sources, build --errata,
release --benchmark, release --sign, release --sources, verify --key, sql --run,
leaderboard submit run, leaderboard build place, leaderboard verify --repeated,
gate run, lint files, drill --inputs, proxy --plan, proxy --mcp-servers, proxy explain plan,
build --cases, compare --log-key, report --log-key
"""
"""Parameters that name something to read (some of the last ones: a key, a format)."""

TEXTS = (
    "store",
    "out",
    "output",
    "dir",
    "folder",
    "target",
    "dest",
    "path",
    "save",
    "export",
    "cache",
    "log",
    "release",
)
"""Names under which a parameter of any type is taken for a place."""


def places() -> Iterator[str]:
    """Every parameter of every command that could name a file or a folder."""
    for verb in verbs.VERBS:
        for one in _derive.declared(verb.function):
            parts = one.shown.strip("-").lower().split("-")
            if "Path" in str(one.hint) or any(part in TEXTS for part in parts):
                yield f"{verb.name} {one.shown if not one.is_argument else one.name}"


def test_every_parameter_that_names_a_place_is_in_the_table() -> None:
    found = set(places()) - {"quickstart --out"}  # its folders are those of build, eval, build live
    found -= {"report --held-out"}  # RUN=DOMAIN, of a run that stands beside it
    read = {name.strip() for name in INPUTS.replace("\n", " ").split(",") if name.strip()}
    assert found - read - set(OUTPUTS) == set(), "say whether it is read or written"
    assert (read | set(OUTPUTS)) - found == set(), "no longer there"


# --- what the commands would replace ------------------------------------------------------------------


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of everything that commands make, through the commands."""
    root = tmp_path_factory.mktemp("made")
    names = (
        "build training live live_run live_report run report space rlla release gated lines trial"
        " results site baseline"
    )
    found = {name: root / name for name in names.split()}
    ferries = [rlla_rows.ferry_row(n) for n in range(8)]
    rlla_rows.write(found["rlla"], ferries, [rlla_rows.ferry_row(1_000)])
    small.write(found["release"], small.rows())
    released.small_build(found["gated"])
    run("build", "--profile", "bundled", "--types", "CD", "--out", found["build"])
    run("build", "toolrl-dr", "--rlla", found["rlla"], "--configs", "mixed", "--out", found["training"])
    found["world"] = ROOT / "tests" / "worlds" / "purse.py"
    found |= {"python": Path(sys.executable), "mcp": ROOT / "tests" / "own" / "mcp_server.py"}
    one = journal.Exchange(
        session="made_1.0", repeat=0, row=small.rows()[0].id,
        replies=[{"text": "Done.", "tool_calls": None, "finish_reason": "stop"}],
    )  # fmt: skip
    files: dict[str, str | bytes] = {
        "log.jsonl": json.dumps(LOGGED),
        "tools.json": json.dumps(LOGGED["tools"]),
        "journal.jsonl": journal.encoded(one),
        "plan.yaml": "version: 1\n",
        "servers.json": '{"mcpServers": {"a": {"url": "http://127.0.0.1:9/mcp"}}}',
        "models.toml": f'[m]\nbase_url = "{NOWHERE}/v1"\nmax_retries = 0\n',
        "answers.json": json.dumps([[{"name": CLUB, "parameters": {"moves": [46]}}]]),
    }
    write(root, files)
    found |= {name.partition(".")[0]: root / name for name in files}
    run(*LIVE.format(world=found["world"], out=found["live"]).split(" "))
    run("eval", found["release"], "--agent", "oracle", "--out", found["run"])
    run("report", found["run"], "--out", found["report"])
    run("gate", found["run"], "--save-baseline", found["baseline"])
    run(*LIVE_RUN.format(live=found["live"], world=found["world"], out=found["live_run"]).split(" "))
    run(*LIVE_REPORT.format(**found, out=found["live_report"]).split(" "))
    run("export", found["run"], "--out", found["lines"])
    released.released(found["build"], found["trial"], trial=True)
    with pytest.MonkeyPatch.context() as patch:
        without_gradio(patch)
        run(*SPACE.format(out=found["space"]).split(" "))
    run("leaderboard", "init", found["results"], found["release"])
    run(*SITE.format(**found, out=found["site"]).split(" "))
    return found


def run(*words: object) -> None:
    """A command in this process, without its output."""
    with (
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
        suppress(SystemExit),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["rbtc", *map(str, words)])
        main()


def without_gradio(patch: pytest.MonkeyPatch) -> None:
    """Lets a Space be exported where gradio is not installed."""
    from robustbench_tc.eval.leaderboard import space

    version = metadata.version
    patch.setattr(space, "requirements", lambda: ["gradio==6.0.0"])
    patch.setattr(metadata, "version", lambda name: "6.0.0" if name == "gradio" else version(name))


# --- the places ---------------------------------------------------------------------------------------

Prepare = Callable[[Path], Path]
"""Makes a place under a root. Which places are refused and why: tests/io/test_folders.py."""

MINE: dict[str, str | bytes] = {"thesis.txt": "years of work", "photos/1.jpg": b"\xff\xd8\xff", ".env": "A=1"}
FOREIGN = {
    "manifest.json": '{"manifest_version": 3}',
    "build_report.json": '{"kind": "robustbench-tc"}',
    "audit_report.json": "{}",
    "rbtc.json": '{"kind": "robustbench-tc"}',
    "run.json": '{"format": 1}',
    "journal.jsonl": "notes",
    "scores.parquet": "x",
    "report.html": "<html>",
}
"""Names that our own folders have, with what others may write into such files."""


def holding(files: Mapping[str, str | bytes]) -> Prepare:
    return lambda root: write(root / "out", files)


def linked(target: str) -> Prepare:
    def prepare(root: Path) -> Path:
        write(root / "elsewhere", MINE)
        (root / "out").symlink_to(target)
        return root / "out"

    return prepare


def a_file(text: str) -> Prepare:
    return lambda root: write(root, {"out": text}) / "out"


STRANGERS: dict[str, Prepare] = {
    "a folder of strangers' files": holding(MINE),
    "one with files of our names": holding(MINE | FOREIGN),
    "a link to it": linked("elsewhere"),
    "a link that leads nowhere": linked("nowhere"),
    "a link to a file": linked("elsewhere/thesis.txt"),
    "a file of many lines": a_file("my\nonly\ncopy\n"),
    "a JSON file": a_file('{"key": "mine"}\n'),
}


def ours_with(source: Path, change: Callable[[Path], object]) -> Prepare:
    def prepare(root: Path) -> Path:
        shutil.copytree(source, root / "out", symlinks=True)
        change(root / "out")
        return root / "out"

    return prepare


def changed(out: Path) -> None:
    """Another byte at the end of every file of ours but the markers, without spoiling its form."""
    for path in sorted(out.rglob("*")):
        if not path.is_file() or path.name in (marker.BUILD, marker.OWN, "run.json", "journal.jsonl"):
            continue
        if path.suffix == ".parquet":
            pq.write_table(pq.read_table(path), path, compression="none")
        else:
            path.write_bytes(path.read_bytes() + b"\n")


COMING: dict[str, Callable[[Path], object]] = {
    "a file": lambda out: write(out, {"thesis.txt": "years"}),
    "a file deep inside": lambda out: write(out, {"a/b/c.txt": "years"}),
    "a link": lambda out: (out / "link").symlink_to("/etc/hostname"),
}
"""What is not ours, in a folder of ours."""


# --- the tests ----------------------------------------------------------------------------------------


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A working folder of its own; no sources of this machine; fetching gives up at once."""
    from robustbench_tc.builders.sources import upstream

    home = tmp_path / "here"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.setenv("RBTC_SOURCES", str(tmp_path / "no sources"))
    monkeypatch.setattr(f"{upstream.__name__}.time.sleep", lambda seconds: None)
    without_gradio(monkeypatch)
    return monkeypatch


def words(output: Output, place: Path, made: dict[str, Path], new: Path) -> list[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    known = {**made, "chess": CHESS, "out": place, "new": new, "port": port}
    return [part.format(**known) for part in output.command.split(" ")]


def tried(rbtc: Rbtc, output: Output, place: Path, made: dict[str, Path]) -> tuple[Tree, Done]:
    """All around a place before a command, and what the command said."""
    before, root = tree(place.parent), place.parent
    return before, rbtc(*words(output, place, made, root.with_name(f"new-{root.name}")))


def refused(done: Done) -> None:
    assert done.code != 0, done
    assert "Traceback" not in done.err, done.err
    assert done.code == 1, done.err  # 2 is a wrong command line: the table is wrong


def kept(before: Tree, root: Path, what: str) -> None:
    after = tree(root)
    lost = {
        name: "changed" if name in after else "gone"
        for name, held in before.items()
        if after.get(name) != held
    }
    assert lost == {}, what


ALL = [(name, output) for name, outputs in OUTPUTS.items() for output in outputs]

STEP = 1 if NIGHTLY else 3
"""By day each command meets a third of the places, the next command others."""


def test_a_command_refuses_every_strangers_place(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    cases = [*product(ALL, STRANGERS.items())][::STEP]
    for number, ((name, output), (what, prepare)) in enumerate(cases):
        root = tmp_path / str(number)
        before, done = tried(rbtc, output, prepare(root), made)
        kept(before, root, f"{output.command}: {what}: {done}")
        refused(done)
        if name != "audit folder":
            assert set(tree(root)) == set(before), f"{output.command}: {what}: something was left behind"


OURS = [(name, output) for name, output in ALL if output.ours is not None]


def test_a_command_never_loses_what_came_into_a_folder_of_ours(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    cases = [(one, *coming) for _, one in OURS for coming in COMING.items()]
    for number, (output, what, change) in enumerate(cases):
        root = tmp_path / str(number)
        before, done = tried(rbtc, output, ours_with(made[output.ours or ""], change)(root), made)
        if output.goes_on:  # in its own folder it writes its own files; the others are as they were
            ours = set(tree(made[output.ours or ""]))
            before = {n: held for n, held in before.items() if n.partition("/")[2] not in ours}
        kept(before, root, f"{output.command}: {what}: {done}")
        if not output.goes_on:
            refused(done)


def test_changed_files_of_ours_are_replaced_on_request_only(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    written_once = [output for _, output in OURS if output.ours not in ("run", "live_run")]
    for number, output in enumerate(written_once):
        root = tmp_path / str(number)
        before, done = tried(rbtc, output, ours_with(made[output.ours or ""], changed)(root), made)
        if "--discard-changes" in output.command:
            assert done.code == 0, done
            assert tree(root) != before
            assert [path.name for path in root.iterdir()] == ["out"]
        else:
            kept(before, root, f"{output.command}: {done}")
            refused(done)


def identities(folder: Path) -> set[tuple[int, int]]:
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return {(one.st_ino, one.st_mtime_ns) for one in found}


REPLACING = ("--force", "--fresh", "report ")


def test_a_whole_folder_of_ours_is_replaced_and_nothing_is_left_beside_it(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    replacing = [output for _, output in OURS if any(word in output.command for word in REPLACING)]
    for number, output in enumerate(replacing):
        root = tmp_path / str(number)
        place = Path(shutil.copytree(made[output.ours or ""], root / "out", symlinks=True))
        before = identities(place)
        _, done = tried(rbtc, output, place, made)
        assert done.code == 0, done
        assert before.isdisjoint(identities(place)), output.command
        assert [path.name for path in root.iterdir()] == ["out"], output.command
        assert set(tree(root / "out")) == set(tree(made[output.ours or ""])), output.command


def test_a_failed_command_leaves_nothing_behind(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    """The marker is written last: where it cannot be, everything before it is undone."""

    def full(*arguments: object, **options: object) -> bytes:
        raise OSError(28, "No space left on device")

    quiet.setattr(marker, "hashes", full)
    root = tmp_path / "root"
    for command in (BUILD, TRAINING, SPACE, REPORT):
        done = rbtc(*words(Output(command), root / "out", made, tmp_path / "new"))
        refused(done)
        assert f"{root / 'out'}: No space left on device" in done.err
        assert list(root.iterdir()) == []


def test_an_audited_build_is_replaced_with_its_audit_and_nothing_else(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "root" / "out"
    shutil.copytree(made["build"], out)
    command = words(Output(BUILD + " --force"), out, made, tmp_path / "new")
    rbtc("audit", out)  # red: the samples are the starter samples
    rbtc("audit", out)  # looks at the first one's files too
    audited = tree(out)
    assert {"audit_report.json", "audit_report.html"} <= set(audited)
    assert rbtc("audit", out).code == 1 and tree(out) == audited
    for name in ("audit_report.json", "audit_report.html"):
        before = (out / name).read_bytes()
        (out / name).write_bytes(before.replace(b"rows", b"Rows", 1))
        changed = tree(out)
        refused(rbtc(*command))
        refused(rbtc("audit", out))
        assert tree(out) == changed
        (out / name).write_bytes(before)
    assert rbtc(*command).code == 0
    assert set(tree(out)) == set(tree(made["build"]))


def test_an_audit_replaces_no_strangers_report(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    write(tmp_path, {"mine": "my own audit"})
    puts: dict[str, Callable[[Path], object]] = {
        "file": lambda path: path.write_text("my own audit"),
        "link": lambda path: path.symlink_to(tmp_path / "mine"),
        "folder": lambda path: write(path, {"notes.txt": "mine"}),
    }
    for name, kind in product(("audit_report.json", "audit_report.html"), puts):
        out = tmp_path / f"{kind}-{name}"
        shutil.copytree(made["build"], out)
        puts[kind](out / name)
        before = tree(tmp_path)
        refused(rbtc("audit", out))
        assert tree(tmp_path) == before, out


def test_a_release_is_never_replaced(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    released.released(made["gated"], tmp_path / "root" / "1.0.0")
    before = tree(tmp_path / "root")
    out = tmp_path / "root" / "1.0.0"
    for command in (BUILD, TRAINING, EVAL, REPORT, SPACE):
        for flags in ("", " --force --discard-changes", " --fresh --discard-changes", " --discard-changes"):
            done = rbtc(*words(Output(command + flags), out, made, tmp_path / "new"))
            assert done.code != 0
            assert tree(tmp_path / "root") == before
    refused(rbtc("audit", out))
    assert tree(tmp_path / "root") == before


def test_a_build_of_another_kind_or_an_older_version_is_not_replaced(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    old = Path(shutil.copytree(made["build"], tmp_path / "old"))
    report = json.loads((old / marker.BUILD).read_text())
    del report["files"], report["own_sha256"], report["kind"]
    (old / marker.BUILD).write_text(json.dumps(report | {"report_version": 1}))
    for number, (source, command) in enumerate(
        (
            (made["training"], BUILD),
            (made["build"], TRAINING),
            (made["space"], BUILD),
            (made["build"], SPACE),
            (old, BUILD),
        )
    ):
        out = Path(shutil.copytree(source, tmp_path / str(number) / "out"))
        before, done = tried(rbtc, Output(command + " --force --discard-changes"), out, made)
        refused(done)
        assert tree(out.parent) == before


def test_a_run_without_its_marker_is_thrown_away_by_hand_only(
    rbtc: Rbtc, quiet: pytest.MonkeyPatch, made: dict[str, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(made["run"], run)
    (run / "rbtc.json").unlink()
    before = tree(run)
    refused(rbtc(*words(Output(EVAL + " --fresh"), run, made, tmp_path / "new")))
    assert tree(run) == before
    refused(rbtc("score", run))  # nobody knows whose verdicts these are
    assert tree(run) == before
    (run / "scores.parquet").unlink()
    assert rbtc("score", run).code == 0 and rbtc("score", run).code == 0


def test_every_deletion_stands_where_it_can_be_seen() -> None:
    """Files are deleted, renamed and overwritten in few places; a new one has to be looked at."""
    seen: dict[str, set[str]] = {}
    watched = set("rmtree unlink rmdir removedirs rename renames move truncate ftruncate".split())
    rooms = "src builders eval audits train_recipes sql dataset_cards scripts benchmarks".split()
    for path in [p for room in rooms for p in (ROOT / room).rglob("*.py")]:
        if any(part.is_symlink() for part in path.parents):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name == "replace" and len(node.args) == 1 and not node.keywords:
                name = "rename"  # of a path; text takes two
            if name == "remove" and isinstance(node.func, ast.Attribute):
                owner = getattr(node.func.value, "id", "")
                name = "unlink" if owner == "os" else name
            if name in watched:
                seen.setdefault(path.relative_to(ROOT).as_posix(), set()).add(name)
    io = "src/robustbench_tc/io/"
    assert seen == {
        f"{io}folders.py": {"rmtree", "rename"},  # unfinished ones, and those that hold named files alone
        f"{io}files.py": {"rename", "unlink", "truncate"},  # into place; unfinished files and locks of ours
        "src/robustbench_tc/llm/store.py": {"ftruncate"},  # a torn line of ours
        "src/robustbench_tc/proxy/journal.py": {"ftruncate"},  # a torn line of ours
        "src/robustbench_tc/release/yank.py": {"unlink"},  # the list of what was yanked, once it is empty
        "audits/audit_files.py": {"rmtree"},  # of an earlier audit, unchanged
        "src/robustbench_tc/release/freeze.py": {"unlink"},  # in the copy that is released
        f"{io}parquet.py": {"rename"},  # shards, in a new folder
        "builders/build.py": {"unlink", "rmdir"},  # an empty config, in a new folder
        "builders/toolrl_dr.py": {"unlink"},  # the scratch file, in a new folder
        "benchmarks/train_real/__main__.py": {"rmtree"},  # checkpoints of models that were asked
        "train_recipes/trl/smoke.py": {"rmtree", "rename"},  # its own folder, with --fresh
        "scripts/draw_mutants.py": {"rename"},  # a new session of its own
        "scripts/clean.py": {"rmtree", "unlink", "rmdir"},  # see tests/test_clean.py
    }
