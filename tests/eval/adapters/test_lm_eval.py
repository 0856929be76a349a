"""The benchmark under lm-eval itself, in its own environment (`make test-lm-eval`)."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import msgspec
import pytest

from robustbench_tc import api, taxonomy
from robustbench_tc.eval import data, inputs, wire
from robustbench_tc.eval.adapters.logs import opened
from tests import agent_server
from tests.conftest import Done, nightly
from tests.eval import small

from .harnesses import NOBODY, asked_by_lm_eval, commands, lm_eval, tasks, verdicts

STATIC = (taxonomy.CLEAN, *taxonomy.COMPONENTS[:3])


@pytest.fixture(scope="module")
def release(bundled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled rows of eight samples, with model-written types among them."""
    rows = inputs.load_samples(str(bundled)).select(data.Selection(samples=8))
    return small.write(tmp_path_factory.mktemp("lm-eval") / "release", rows)


def test_every_verdict_is_that_of_our_own_run(
    release: Path, tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    results, runs = [], []
    for agent in ("thinks-the-gold", "name-biased"):
        place = tmp_path / agent
        place.mkdir()
        results.append(asked_by_lm_eval(release, agent, place))
        run = api.evaluate(str(release), agent=agent, mode="prompt", types=STATIC, out=place / "own")
        runs.append(run.folder.path)
        more = ("score", "flags", "sample_hash")
        (theirs, left), (ours, right) = (verdicts(one, *more) for one in (results[-1], runs[-1]))
        assert left == right and len(left) > 80
        assert theirs.fingerprint == ours.fingerprint
    by_logs, by_runs = (api.compare(one[0], one[1]) for one in (results, runs))
    for name in ("overall", "deltas", "types", "overall_holm", "deltas_holm", "power"):
        assert msgspec.json.encode(getattr(by_logs, name)) == msgspec.json.encode(getattr(by_runs, name)), (
            name
        )
    # What lm-eval prints is the accuracy of our table.
    printed = json.loads(results[1].read_bytes())["results"]
    for component in STATIC:
        pair = by_runs.overall[component]
        assert printed[f"rbtc_{component}"]["correct,none"] == pytest.approx(pair.b, abs=1e-12)
    assert rbtc("report", *results, "--allow-missing", "--out", tmp_path / "report").code == 0


def test_messages_go_out_as_they_are(release: Path, tmp_path: Path) -> None:
    """The agents' server knows only requests of its rows; here the log says what was sent."""
    found = asked_by_lm_eval(release, "oracle", tmp_path, "--limit", "3", tasks_="rbtc_action")
    rows = {row.id: row for row in inputs.load_samples(str(release)).rows}
    [samples] = found.parent.glob("samples_rbtc_action_*.jsonl")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    assert len(lines) == 3
    for line in lines:
        [text] = line["arguments"]["gen_args_0"]["arg_0"]
        assert json.loads(text) == wire.first(rows[line["doc"]["id"]], "prompt").messages
    with opened([str(found)]) as logs:
        run = logs[0].read_run()
    assert len(run.rows["id"]) == 3 and set(run.rows["type_code"].tolist()) <= set(taxonomy.codes())


def clean(url: str, release: Path, place: Path, *words: str, **metadata: str) -> CompletedProcess[str]:
    """The clean rows asked at an address."""
    return lm_eval(
        *("run", "--model", "local-chat-completions", "--tasks", "rbtc_clean", "--include_path", tasks()),
        *("--model_args", f"model=m,base_url={url}/chat/completions"),
        *("--metadata", json.dumps({"dataset": str(release)} | metadata), *words),
        place=place,
    )


def test_rows_that_need_a_second_request_are_counted(release: Path, tmp_path: Path) -> None:
    rows = inputs.load_samples(str(release)).rows
    left = sum(row.component == "transition" for row in rows)
    with agent_server.serving("oracle", rows) as url:
        done = clean(url, release, tmp_path, "--apply_chat_template", "--limit", "1")
    assert done.returncode == 0, done.stderr
    assert (
        f"{left} of {len(rows)} rows are left out: lm-eval has one request a row" in done.stdout + done.stderr
    )


@pytest.mark.parametrize(
    ("metadata", "words", "said"),
    [
        (
            {"types": "transient_timeout"},
            ("--apply_chat_template",),
            "no row for rbtc_clean is among those chosen",
        ),
        pytest.param({}, (), "add --apply_chat_template", marks=nightly),
        pytest.param(
            {},
            ("--apply_chat_template", "--system_instruction", "Be nice."),
            "rows are asked as they are",
            marks=nightly,
        ),
    ],
)
def test_what_is_wrong_is_one_line(
    metadata: dict[str, str], words: tuple[str, ...], said: str, release: Path, tmp_path: Path
) -> None:
    done = clean(NOBODY, release, tmp_path, *words, **metadata)
    assert done.returncode != 0 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_the_commands_of_the_page(release: Path, tmp_path: Path, rbtc: Callable[..., Done]) -> None:
    install, evaluate, report = commands("harnesses.md", "## lm-eval")
    assert install.startswith("pip install 'robustbench-tc[lm-eval]'")
    (tmp_path / "robustbench-tc").symlink_to(release)
    with agent_server.serving("oracle", inputs.load_samples(str(release)).rows) as url:
        told = evaluate.replace("$(rbtc list lm-eval)", tasks())
        told = told.replace("http://localhost:8000/v1", url)
        done = lm_eval("run", *told.partition("lm-eval run ")[2].split(), place=tmp_path)
    assert done.returncode == 0, done.stderr
    results = sorted((tmp_path / "out").glob("*/results_*.json"))
    said = report.removeprefix("rbtc ").replace("--out report", f"--out {tmp_path / 'report'}").split()
    assert said[1] == "out/*/results_*.json"
    shown = rbtc(said[0], *results, *said[2:])
    assert shown.code == 0, shown.err
