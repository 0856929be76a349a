"""The benchmark under inspect_ai itself, in its own environment (`make test-inspect`)."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from inspect_evals_lint import lint_task_files

from robustbench_tc import api
from robustbench_tc.api.building import build_live
from robustbench_tc.builders import configs
from robustbench_tc.builders.live.build import VERSION as LIVE_VERSION
from robustbench_tc.eval import inputs
from robustbench_tc.eval.adapters import logs, rows
from robustbench_tc.eval.stats import runs, summary
from robustbench_tc.io import parquet
from tests import agent_server
from tests.conftest import NIGHTLY, ROOT, Done, nightly
from tests.hub import WRITER, Hub
from tests.hub_client import Client
from tests.loopback import LoopbackServer, reply
from tests.released import released, small_build

from . import episodes, played
from .bars import compared
from .harnesses import asked_by_inspect, commands, every, inspect, printed, program, run, samples, verdicts

ALSO = ("finish_reason", "injected", "score", "flags", "sample_hash")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program("inspect", "inspect")
    folder = tmp_path_factory.mktemp("live") / "robustbench-tc-live"
    build_live(out=folder, worlds=("calendar",), kinds=("silent_no_op",))
    return folder


@pytest.mark.parametrize(
    ("agent", "mode"),
    [
        pytest.param("thinks-the-gold", "prompt", marks=nightly),
        ("retries-with-a-changed-argument", "prompt"),
        pytest.param("name-biased", "fc", marks=nightly),
    ],
)
def test_every_verdict_is_that_of_our_own_run(agent: str, mode: str, release: Path, tmp_path: Path) -> None:
    log = asked_by_inspect(release, agent, tmp_path, "-T", f"mode={mode}")
    own = api.evaluate(str(release), agent=agent, mode=mode, out=tmp_path / "own").folder.path
    (theirs, left), (ours, right) = (verdicts(one, *ALSO) for one in (log, own))
    assert left == right and len(left) > 60
    assert (theirs.record.dataset_version, theirs.fingerprint) == (
        ours.record.dataset_version,
        ours.fingerprint,
    )
    # The table that inspect_ai prints is that of our statistics.
    [outcomes] = runs.align([ours])
    values = summary.summarise(outcomes).values
    expected = {name: one.value for name, one in values.items() if one is not None}
    assert expected and expected.items() <= printed(samples(tmp_path)[1]).items()


@nightly
def test_epochs_are_repeats_and_a_part_is_a_part(
    release: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    words = ("-T", "types=clean,same_name_A,transient_timeout", "--epochs", "2", "--limit", "12")
    log = asked_by_inspect(release, "gives-up-on-error", tmp_path, *words)
    with logs.opened([str(log)]) as found:
        run = found[0].read_run()
    assert len(run.rows["id"]) == 24
    assert set(run.rows["repeat"].tolist()) == {0, 1}
    assert set(run.rows["type_code"].tolist()) == {"clean", "same_name_A", "transient_timeout"}
    found_pair = api.compare(log, log).overall["clean"]
    assert found_pair.n == 5 and found_pair.only_a == 0
    assert msgspec.json.encode(api.report([log]))
    assert rbtc("report", log, "--out", tmp_path / "report").code == 0


def test_what_is_wrong_is_one_line(release: Path, live: Path, tmp_path: Path) -> None:
    wrong = (
        (("-T", "dataset=nowhere"), "nowhere"),
        (("-T", f"dataset={release}", "-T", "types=same_name_Q"), "did you mean same_name_"),
        (("-T", f"dataset={release}", "-T", "mode=tools"), "mode 'tools': prompt or fc"),
        (("-T", f"dataset={live}", "-T", "types=silent_op"), "unknown type in this dataset"),
    )
    for words, said in wrong if NIGHTLY else wrong[:1]:
        done = inspect("eval", "robustbench_tc/benchmark", "--model", "mockllm/model", *words, place=tmp_path)
        assert done.returncode != 0 and said in done.stdout + done.stderr, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr


def test_a_server_that_fails_leaves_no_wrong_answers(release: Path, tmp_path: Path) -> None:
    """Nobody listens at the address: samples fail, and none of them counts."""
    done = inspect(
        *(
            "eval",
            "robustbench_tc/benchmark",
            "--model",
            "openai-api/rbtc/nobody",
            "-T",
            f"dataset={release}",
        ),
        *("--limit", "3", "--max-retries", "0", "--no-fail-on-error", "--timeout", "5"),
        place=tmp_path,
    )
    with logs.opened([str(log) for log in (tmp_path / "logs").glob("*.eval")]) as found:
        assert len(found) == 1, done.stdout + done.stderr
        run = found[0].read_run()
    assert set(run.rows["correct"].tolist()) == {-1} and set(run.rows["status"].tolist()) == {"request_error"}


@nightly
def test_other_providers_are_not_asked_for_calls(release: Path, tmp_path: Path) -> None:
    done = inspect(
        *("eval", "robustbench_tc/benchmark", "--model", "mockllm/model", "-T", f"dataset={release}"),
        *("-T", "mode=fc", "--limit", "1"),
        place=tmp_path,
    )
    assert "mode=fc needs chat completions" in done.stdout + done.stderr


OF_HF = """
import sys, yaml
from inspect_ai._eval.task.hf import HFTask
print([HFTask.model_validate(one).id for one in yaml.safe_load(open(sys.argv[1], "rb"))["tasks"]])
"""


def test_the_hubs_reader_runs_the_tasks_of_a_release(tmp_path: Path) -> None:
    """`eval.yaml` by inspect_ai's own model, and `inspect eval hf/ORG/NAME` against the loopback Hub: right
    is the first accepted answer letter by letter, with the tools as text in the system message."""
    python = program("inspect", "python")
    small_build(tmp_path / "build")
    release = tmp_path / "robustbench-tc"
    released(tmp_path / "build", release)
    read = subprocess.run([python, "-c", OF_HF, release / "eval.yaml"], capture_output=True, text=True)
    tasks = ["clean", "perturbed", "observation", "reward", "transition"]
    assert read.stdout.strip() == str(tasks), read.stderr
    plain = [one for path in sorted(release.glob("*/test-*.parquet")) for one in parquet.read_rows([path])]
    clean = {one["messages"][-1]["content"]: one for one in plain if one.get("type_code") == "clean"}
    asked: list[list[dict[str, str]]] = []

    def answer(body: dict[str, Any]) -> Any:
        asked.append(body["messages"])
        row = clean.get(body["messages"][-1]["content"])
        return reply("I cannot." if row is None or row["source"] == "bfcl_v3" else row["gold_call"])

    with Hub() as hub, LoopbackServer(answer) as server:
        with Client(hub.environment(WRITER, tmp_path / "publisher")) as client:
            client.publish(release, "acme/robustbench-tc", WRITER)
        env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
        words = ("eval", "hf/acme/robustbench-tc@v1.0.0", "--model", "openai-api/rbtc/m")
        done = inspect(*words, place=tmp_path, RBTC_BASE_URL=server.url, HF_HUB_OFFLINE="0", **env)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {header["eval"]["task"].rpartition("/")[2]: whole for _, header, whole in every(tmp_path)}
    assert set(found) == set(tasks)
    by_id = {one["id"]: one for one in plain if "gold_call" in one}
    for sample in found["clean"]:
        row = by_id[sample["metadata"]["id"]]
        assert sample["scores"]["match"]["value"] == ("I" if row["source"] == "bfcl_v3" else "C")
    assert {one["metadata"]["type_code"] for one in found["transition"]} == {"transient_timeout"}
    system, *said = next(one for one in asked if one[-1]["content"] in clean)
    row = clean[said[-1]["content"]]
    assert row["tools"] in system["content"] and said == [dict(one) for one in row["messages"]]


def test_forty_random_live_episodes_earn_what_they_earn_in_our_loop(live: Path, tmp_path: Path) -> None:
    lines = list(compared(live, 40, tmp_path, "inspect_ai"))
    assert lines[1].startswith("inspect_ai: 40 of 40 rewards are ours, 40 with all of success, ")
    log, header, whole = samples(tmp_path / "inspected-0")
    shown = printed(header)
    assert {"clean", "accuracy_live_silent_no_op"} <= set(shown)
    scored = [one["metadata"]["verdict"] for sample in whole for one in sample["scores"].values()]
    clean = {one["clean_id"]: one["success"] for one in scored if one["type_code"] == "clean"}
    met = [one for one in scored if one["met"]]  # who never met the fault says nothing about it
    assert 0 < len(met) < len(clean)
    lost = sum(clean[one["clean_id"]] - one["success"] for one in met) / len(met)
    assert shown["delta_matched_live_silent_no_op"] == pytest.approx(lost)
    with logs.opened([str(log)]) as found:  # pairs by the ids of its samples, as any other log
        assert len(found[0].read_run().rows["id"]) == 40


def test_the_commands_of_live_episodes(live: Path, tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    """The page's, on two rows; what is built is the fixture's."""
    build, evaluate, compare = commands("harnesses.md", "### Live episodes")
    (tmp_path / build.removeprefix("rbtc build live --out ")).symlink_to(live)
    wanted = list(rows.Rows(str(live), types="silent_no_op").rows)[:2]
    all_rows = inputs.load_live(str(live)).rows
    due = {one.row: one for one in episodes.drawn(all_rows, len(all_rows))}
    words = evaluate.removeprefix("inspect ").split()
    with played.serving(all_rows, [due[name] for name in wanted]) as url:
        done = inspect(
            *words, "--limit", 2, "--max-samples", 1, place=tmp_path, LOCAL_BASE_URL=url, LOCAL_API_KEY="none"
        )
    assert done.returncode == 0, done.stdout + done.stderr
    [log] = (tmp_path / "logs").glob("*.eval")
    for name in compare.split()[2:]:
        shutil.copy(log, tmp_path / name)
    compared_ = rbtc("compare", *(tmp_path / name for name in compare.split()[2:]))
    assert compared_.code == 0, compared_.err


@pytest.fixture(scope="module")
def template() -> Path:
    """The repository for the register, as the command prints it."""
    return api.list_inspect()


def test_the_template_is_what_the_register_takes(template: Path) -> None:
    linted = lint_task_files(template, ["src/rbtc_inspect/tasks.py"])
    (found,) = linted.packages
    assert found.passed() and found.summary()["pass"] > 10, found.diagnostics
    listed = subprocess.run(["git", "ls-files", template], cwd=ROOT, capture_output=True, text=True).stdout
    lines = [(ROOT / name).read_text().splitlines() for name in listed.split()]
    assert 40 < sum(map(len, lines)) <= 60
    pinned = re.findall(
        r'= "OWNER/([\w-]+)", "v([\d.]+)"', (template / "src/rbtc_inspect/tasks.py").read_text()
    )
    assert pinned == [("robustbench-tc", configs.VERSION), ("robustbench-tc-live", LIVE_VERSION)]


def test_the_template_runs_where_it_is_installed(
    template: Path, release: Path, live: Path, tmp_path: Path
) -> None:
    (tmp_path / "robustbench-tc").symlink_to(release)
    site = tmp_path / "site-packages"  # elsewhere inspect_ai takes tasks for nobody's
    install = ("pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", site, template)
    subprocess.run([sys.executable, "-m", *map(str, install)], check=True)
    task = ("rbtc_inspect/robustbench_tc", "--model", "openai-api/rbtc/oracle")
    path = f"{site}{os.pathsep}{ROOT / 'src'}"
    with agent_server.serving("oracle", inputs.load_samples(str(release)).rows) as url:
        done = inspect(
            *("eval", *task, "-T", f"dataset={release}", "-T", "revision=null", "-T", "types=clean"),
            place=tmp_path,
            PYTHONPATH=path,
            RBTC_BASE_URL=url,
        )
    assert done.returncode == 0 and printed(samples(tmp_path)[1])["clean"] == 1.0, done.stdout + done.stderr
    # Without usage in its replies inspect_ai's mock counts tokens, with a table that it downloads.
    code = (
        "import sys, types, tiktoken, rbtc_inspect, test_tasks; "
        "tiktoken.get_encoding = lambda _: types.SimpleNamespace(encode=lambda text, **_: text.split()); "
        "test_tasks.test_a_clean_row_is_asked_and_scored(); "
        "print(len(rbtc_inspect.robustbench_tc_live(sys.argv[1], None).dataset))"
    )
    tested = run(
        *("inspect", "python", "-c", code, live),
        place=tmp_path,
        PYTHONPATH=f"{path}{os.pathsep}{template / 'tests'}",
    )
    assert tested.stdout.split()[-1:] == [str(len(inputs.load_live(str(live)).rows))], tested.stderr


def test_nothing_of_ours_imports_inspect_ai() -> None:
    code = (
        "import sys, robustbench_tc.cli._launch as c, robustbench_tc.api, robustbench_tc.eval.adapters.logs; "
        "c.app(); print([m for m in sys.modules if m.startswith(('inspect_ai', 'lm_eval'))])"
    )
    done = subprocess.run(
        [program("inspect", "python"), "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_commands_of_the_page(release: Path, tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    install, evaluate, report = commands("harnesses.md", "## inspect_ai")
    assert install.startswith("pip install 'robustbench-tc[inspect]'")
    settings, said = evaluate.partition("inspect ")[::2]
    assert settings.split()[0] == "LOCAL_BASE_URL=http://localhost:8000/v1"
    (tmp_path / "robustbench-tc").symlink_to(release)
    with agent_server.serving("oracle", inputs.load_samples(str(release)).rows) as url:
        done = inspect(*said.split(), place=tmp_path, LOCAL_BASE_URL=url, LOCAL_API_KEY="none")
    assert done.returncode == 0, done.stdout + done.stderr
    given = [str(one) for one in sorted((tmp_path / "logs").glob("*.eval"))]
    words = report.removeprefix("rbtc ").replace("--out report", f"--out {tmp_path / 'report'}").split()
    assert words[1] == "logs/*.eval"
    done_report = rbtc(words[0], *given, *words[2:])
    assert done_report.code == 0, done_report.err
    assert (tmp_path / "report" / "report.html").is_file()
