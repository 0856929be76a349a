"""`rbtc eval` and the verbs after it, as a user meets them: exit code, standard output, one line of error."""

import json
from pathlib import Path
from typing import Any

import pytest

from robustbench_tc import schema
from robustbench_tc.eval import agents, predictions, prompts

from ..conftest import Rbtc
from ..loopback import NO_MODEL, SERVER_ERROR, LoopbackServer, reply
from . import small

pytestmark = pytest.mark.usefixtures("new_folder")


@pytest.mark.parametrize("name", agents.AGENTS)
def test_every_agent_gets_its_known_verdicts_over_http(rbtc: Rbtc, release: Path, name: str) -> None:
    mode = "fc" if len(name) % 2 else "prompt"
    said = rbtc("eval", release, "--agent", name, "--mode", mode, "--out", "run")
    assert said.code == 0, said.err
    assert f"all {len(small.rows())} verdicts on the agent {name} are the known ones" in said.out
    assert len(said.out.splitlines()) <= 16, "the end of eval is the first screen"
    assert len(predictions.read_predictions(Path("run/predictions.parquet"))) == len(small.rows())


def test_the_headline_of_the_name_biased_agent(rbtc: Rbtc, release: Path) -> None:
    rbtc("eval", release, "--agent", "name-biased", "--out", "run")
    found = json.loads(rbtc("summary", "run", "--json").out)
    lines = found["summary"]["lines"]
    assert lines["clean"]["accuracy"] == 1.0
    assert lines["reward"]["delta"] > 0.5
    for component in ("observation", "action", "transition"):
        assert lines[component]["delta"] in (None, 0.0)
    for code in ("CD", "TD", "CD_AB", "TD_AB"):
        assert found["error_modes"][code] == {"name_bias": lines[code]["n"]}
    assert "· small (" in rbtc("summary", "run").out
    paper = json.loads(rbtc("summary", "run", "--subset", "paper", "--json").out)
    assert paper["summary"]["lines"]["perturbed"]["n"] < lines["perturbed"]["n"]


def test_options_narrow_what_is_asked(
    rbtc: Rbtc, release: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    listed = tmp_path / "ids.txt"
    listed.write_text("bfcl_v3__made_1::clean\ntooleyes__made_1\n")
    base = (
        "eval",
        release,
        "--no-probe",
        "--model",
        "tiny",
        "--base-url",
        server.url,
        "--no-score",
        "--out",
    )
    rbtc(*base, "a", "--types", "clean,reward", "--source", "apibank,rotbench")
    rbtc(*base, "b", "--ids", f"@{listed}")
    rbtc(*base, "c", "--limit", 7, "--repeat", 2, "--seed", 3, "--max-tokens", 9, "--logprobs")
    last = server.bodies[-1]
    a, b, c = (predictions.read_predictions(Path(name) / "predictions.parquet") for name in "abc")
    assert {one.source for one in a} == {"apibank", "rotbench"}
    assert {one.component for one in a} == {None, "reward"}
    assert {one.clean_id for one in b} == {"bfcl_v3__made_1", "tooleyes__made_1"}
    assert sum(one.source == "bfcl_v3" for one in b) == 1
    assert len(c) == 14
    assert (last["max_tokens"], last["logprobs"], last["seed"] in (3, 4)) == (9, True, True)


def test_a_model_of_the_table_is_asked_as_the_paper_did(rbtc: Rbtc, release: Path) -> None:
    with LoopbackServer(lambda body: reply("[ping(a=1)]"), models=["qwen3-8b", "o4-mini"]) as server:
        base = ("eval", release, "--no-probe", "--base-url", server.url, "--types", "clean", "--model")
        assert rbtc(*base, "qwen3-8b").code == 0
        thinking_off = server.bodies[-1]
        assert rbtc(*base, "o4-mini").code == 0
        reasoning = server.bodies[-1]
    assert Path("runs/qwen3-8b-fc/scores.parquet").is_file()
    assert thinking_off["tools"] and thinking_off["max_tokens"] == 1024
    assert thinking_off["chat_template_kwargs"] == {"enable_thinking": False}
    assert {"temperature", "max_tokens"}.isdisjoint(reasoning)
    with LoopbackServer(lambda body: reply("[ping(a=1)]"), models=["o4-mini"]) as server:
        endpoint = ("--model", "o4-mini", "--base-url", server.url, "--limit", 1, "--out", "capped")
        assert (
            rbtc("eval", release, "--no-probe", *endpoint, "--max-tokens", 50, "--temperature", 0).code == 0
        )
        assert server.bodies[-1]["max_completion_tokens"] == 50
        assert {"temperature", "max_tokens"}.isdisjoint(server.bodies[-1])
    session = json.loads(Path("capped/run.json").read_text())["sessions"][0]
    assert set(session["left_out"]) <= {"temperature", "max_tokens"}


def test_the_run_record_says_what_was_asked_of_whom(
    rbtc: Rbtc, release: Path, server: LoopbackServer
) -> None:
    rbtc("eval", release, "--no-probe", "--model", f"tiny@{server.url}", "--types", "clean", "--out", "run")
    url = server.url
    record = json.loads(Path("run/run.json").read_text())
    assert record["dataset"] == str(release) and record["dataset_version"] is None
    assert len(record["settings"]["fingerprint"]) == 32
    assert record["settings"]["prompt_version"] == prompts.prompt_version()
    assert record["settings"]["decoding"] == {"temperature": 0.0, "max_tokens": 1024}
    assert record["served_models"] == ["tiny"]
    assert record["totals"]["finish_reason"] == {"stop": 5}
    assert record["totals"]["prompt_tokens"] == 50
    assert record["sessions"][0]["endpoint"] == f"tiny@{url}"


def test_there_is_no_headline_while_rows_have_no_answer(rbtc: Rbtc, release: Path) -> None:
    sick = small.clean_rows()[0].messages[0].content
    broken = True

    def handler(body: dict[str, Any]) -> Any:
        return SERVER_ERROR if broken and body["messages"][-1]["content"] == sick else reply("[ping(a=1)]")

    with LoopbackServer(handler) as server:
        narrow = ("--types", "clean", "--max-retries", 0, "--out", "run")
        command = ("eval", release, "--no-probe", "--model", "tiny", "--base-url", server.url, *narrow)
        said = rbtc(*command)
        assert said.code == 1
        assert "1 of 5 rows have no answer (1 request_error, 0 not asked)" in said.err
        assert "accuracy" not in said.out
        assert "accuracy" in rbtc("summary", "run", "--allow-missing").out
        broken = False
        before = server.count
        assert rbtc(*command).code == 0
        assert server.count == before + 1


def test_scores_are_made_again_without_the_model_and_predictions_of_the_journal(
    rbtc: Rbtc, release: Path
) -> None:
    command = ("eval", release, "--agent", "oracle", "--out", "run", "--types", "clean,CD")
    rbtc(*command)
    before = Path("run/scores.parquet").read_bytes()
    Path("run/scores.parquet").unlink()
    assert "run is not scored yet: rbtc score run" in rbtc("summary", "run").err
    assert rbtc("score", "run").code == 0
    assert Path("run/scores.parquet").read_bytes() == before
    predicted, journal = Path("run/predictions.parquet"), Path("run/journal.jsonl")
    answered = predicted.read_bytes()
    for spoil in (lambda: predicted.write_bytes(answered[:100]), predicted.unlink):
        spoil()
        assert "rbtc eval makes it again from the journal" in rbtc("score", "run").refusal
        assert rbtc(*command).code == 0 and predicted.read_bytes() == answered
    journal.write_bytes(journal.read_bytes()[:-30])
    rows = len(predictions.read_predictions(predicted))
    assert rbtc(*command).code == 0 and len(predictions.read_predictions(predicted)) == rows


def test_a_moved_dataset_can_be_named_and_another_is_refused(rbtc: Rbtc, tmp_path: Path) -> None:
    first = small.write(tmp_path / "first", small.clean_rows())
    other = small.write(tmp_path / "other", small.clean_rows()[:4])
    rbtc("eval", first, "--agent", "oracle", "--out", "run")
    first.rename(tmp_path / "moved")
    assert "give its location with --dataset" in rbtc("score", "run").err
    assert rbtc("score", "run", "--dataset", tmp_path / "moved").code == 0
    assert "is another dataset than run was asked" in rbtc("score", "run", "--dataset", other).refusal
    assert (
        "run holds a run with other settings: dataset: "
        in rbtc("eval", other, "--agent", "oracle", "--out", "run").refusal
    )


@pytest.mark.parametrize("layout", ["ours", "paper"])
@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_exported_predictions_come_back_with_the_same_scores(
    rbtc: Rbtc, release: Path, layout: str, mode: str
) -> None:
    rbtc("eval", release, "--agent", "name-biased", "--mode", mode, "--out", "run")
    assert rbtc("export", "run", "--layout", layout, "--out", "out.jsonl").code == 0
    said = rbtc(
        "import", "out.jsonl", release, "--model", "agent-name-biased", "--mode", mode, "--out", "back"
    )
    assert said.code == 0, said.err
    before, after = (json.loads(rbtc("summary", run, "--json").out) for run in ("run", "back"))
    assert before == after


def test_the_papers_own_layout_is_evaluated(rbtc: Rbtc, shared: Path) -> None:
    example = shared / "spec" / "paper" / "release_layout_example.jsonl"
    said = rbtc("eval", example, "--agent", "oracle", "--out", "run")
    assert said.code == 0, said.err
    assert "left out: 1 × multi-turn row" in said.err
    assert [one.id for one in predictions.read_predictions(Path("run/predictions.parquet"))] == [
        "bfcl_v3__BFCL_v3_multiple__multiple_900::clean",
        "apibank__level1_900::CD_NT",
    ]


def test_what_a_user_gets_wrong_is_one_line(rbtc: Rbtc, release: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "torn.jsonl").write_text('{"id": "x')
    dead = "http://127.0.0.1:9/v1"
    with (
        LoopbackServer(lambda body: NO_MODEL) as nobody,
        LoopbackServer(lambda body: reply("[ping(a=1)]"), key="right") as closed,
    ):
        cases: list[tuple[tuple[object, ...], str]] = [
            (("eval", release), "no model: name one with --model"),
            (
                ("eval", release, "--no-probe", "--model", "m", "--base-url", dead),
                f"nothing answers at {dead}",
            ),
            (("eval", release, "--model", "m", "--base-url", nobody.url), "does not serve the model 'm': it"),
            (("eval", release, "--model", "m", "--base-url", closed.url), "refuses the key"),
            (("eval", release, "--model", "m", "--base-url", "localhost"), "must begin with http"),
            (("eval", tmp_path / "notes", "--agent", "oracle"), "is not a RobustBench-TC dataset"),
            (("eval", "nowhere", "--agent", "oracle"), "no dataset at nowhere"),
            (("eval", release, "--agent", "orcle"), "did you mean oracle"),
            (("eval", release, "--agent", "oracle", "--model", "m"), "answers in this process"),
            (("eval", release, "--agent", "oracle", "--mode", "chat"), "mode 'chat': prompt or fc"),
            (
                ("eval", release, "--agent", "oracle", "--mode", "prompt", "--defend", "strict"),
                "--defend strict: it works in fc mode, not in prompt",
            ),
            (
                ("eval", release, "--command", "cat", "--defend", "retry"),
                "--command already names what to evaluate: leave --defend out",
            ),
            (("eval", release, "--agent", "oracle", "--types", "CDD"), "did you mean CD"),
            (("eval", release, "--agent", "oracle", "--ids", "@none.txt"), "--ids: @none.txt"),
            (("eval", release, "--agent", "oracle", "--out", tmp_path / "notes", "--fresh"), "is not a run"),
            (("eval", release, "--agent", "oracle", "--out", tmp_path), "is not empty: name a new"),
            (("eval", release, "--model", "m", "--backend", "vlm"), 'Invalid value "vlm" for --backend'),
            (("eval", release, "--model", "m", "--backend", "vllm"), "pip install -e '.[vllm]'"),
            (("score", tmp_path / "notes"), "is not a run folder"),
            (("summary", tmp_path / "notes"), "is not a run folder"),
            (("import", "torn.jsonl", release, "--model", "m"), "no prediction in torn.jsonl"),
            (("list", "models", "qwen"), "unknown model 'qwen'"),
        ]
        for words, line in cases:
            said = rbtc(*words)
            assert (said.code, said.out) == (2 if (words[-1] in ("@none.txt", "vlm")) else 1, ""), words
            last = said.err.strip().splitlines()[-1]
            assert last.startswith("rbtc: ") and line in last, (words, said.err)
            assert "Traceback" not in said.err


def test_the_serve_command_is_printed_alone(rbtc: Rbtc) -> None:
    assert rbtc("list", "models", "Qwen3-8B").out.startswith("vllm serve Qwen/Qwen3-8B ")


def test_hostile_replies_are_kept_as_text(rbtc: Rbtc, release: Path) -> None:
    texts = ["[f(x=__import__('os'))]", "\x00" * 50, "[" * 100_000, "\ud83d", "<tool_call>" * 2000]
    served = iter(texts)
    with LoopbackServer(lambda body: reply(next(served, "ok"))) as server:
        said = rbtc(
            "eval", release, "--model", "tiny", "--base-url", server.url, "--types", "clean",
            "--concurrency", 1, "--out", "run", "--no-probe",
        )  # fmt: skip
    assert said.code == 0, said.err
    kept = {one.raw_output for one in predictions.read_predictions(Path("run/predictions.parquet"))}
    assert set(texts) - kept <= {"\ud83d"}
    assert all(schema.dumps(text) for text in kept)


@pytest.mark.parametrize("share", [True, False])
def test_a_dry_run_bounds_what_is_asked_then_and_shows_its_first_request(
    rbtc: Rbtc, release: Path, share: bool
) -> None:
    asked: list[dict[str, Any]] = []

    def kept(body: dict[str, Any]) -> Any:
        asked.append(body)
        return reply("[ping(a=1)]")

    with LoopbackServer(kept) as server:
        words: list[Any] = ["eval", release, "--model", "/checkpoints/step_9", "--name", "tiny"]
        words += ["--base-url", server.url, "--mode", "prompt", "--no-probe", "--price", "1,2"]
        words += ["--no-share"] * (not share)
        plan = json.loads(rbtc(*words, "--dry-run", "--json").out)
        assert not asked and not Path("runs").exists()
        assert rbtc(*words, "--limit", 20).code == 0
        part = json.loads(rbtc(*words, "--dry-run", "--json").out)
        assert part["rows"] == plan["rows"] - 20 and part["requests"][1] < plan["requests"][1]
        done = rbtc(*words)
    assert done.code == 0, done.err
    assert plan["requests"][0] <= len(asked) <= plan["requests"][1]
    assert (plan["requests"][0] < plan["rows"]) is share
    assert asked[0] == plan["first"] and asked[0]["model"] == "/checkpoints/step_9"
    run = schema.loads(Path("runs/tiny-prompt/run.json").read_bytes())
    assert (run["settings"]["model"], run["settings"]["checkpoint"]) == ("tiny", "/checkpoints/step_9")
    assert plan["cost"][0] < plan["cost"][1]
    other = ("eval", release, "--model", "/checkpoints/step_10", *words[4:])
    assert 'checkpoint: "/checkpoints/step_9" there, "/checkpoints/step_10" here' in rbtc(*other).refusal


def test_a_name_is_for_a_model_that_has_none(rbtc: Rbtc, release: Path) -> None:
    served = ("--model", "Qwen/Qwen3-8B", "--base-url", "http://127.0.0.1:9/v1")
    for words in (("--agent", "oracle"), served):
        assert "keeps its name" in rbtc("eval", release, *words, "--name", "mine").refusal


def test_the_summary_of_a_run_under_way_is_that_of_its_answers_so_far(rbtc: Rbtc, release: Path) -> None:
    assert rbtc("eval", release, "--agent", "name-biased", "--out", "run").code == 0
    whole = rbtc("summary", "run")
    run, journal = Path("run"), Path("run/journal.jsonl")
    record = schema.loads((run / "run.json").read_bytes())
    record["sessions"][-1]["seconds"], record["totals"] = None, {}
    (run / "run.json").write_text(schema.dumps(record))
    for name in ("predictions.parquet", "scores.parquet"):
        (run / name).unlink()
    before = journal.read_bytes()
    rows = record["expected"]
    assert rbtc("summary", "run").out == f"under way: {rows} of {rows} rows\n{whole.out}"
    journal.write_bytes(before[: before.rfind(b"\n", 0, len(before) // 2) + 20])  # a line is being written
    said = rbtc("summary", "run")
    assert said.code == 0 and f" of {rows} rows" in said.out.splitlines()[0]
    assert {path.name for path in run.iterdir()} == {"run.json", "journal.jsonl", "rbtc.json"}
    record["sessions"][-1]["seconds"], record["totals"] = 1.0, {"predictions": rows - 1}
    (run / "run.json").write_text(schema.dumps(record))
    assert rbtc("summary", "run").out.splitlines()[0] == said.out.splitlines()[0].replace(
        "under way", "stopped"
    )
    journal.write_bytes(b"")
    assert "no row is answered yet" in rbtc("summary", "run").refusal
