"""The in-process vLLM backend over a stand-in for the package: batches, native calls, refusals."""

import asyncio
import csv
import shlex
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from robustbench_tc import schema
from robustbench_tc.eval import inputs, predictions, record, request_settings, session, vllm, who
from robustbench_tc.eval.models import find, models, serve_command

from ..refusals import refuses
from . import small

CALL = '<tool_call>\n{"name": "ping", "arguments": {"a": 1}}\n</tool_call>'


class Engine:
    """Stands in for `vllm.LLM`: takes requests one by one, answers them together, in order."""

    def __init__(self, model: str, **options: Any) -> None:
        if model == "absent":
            raise OSError("no such weights\nsecond line")
        self.limit = options.get("max_model_len", 20_000)
        self.waiting: list[dict[str, Any]] = []
        self.batches: list[list[dict[str, Any]]] = []
        engines.append(self)

    def enqueue_chat(self, messages: Any, sampling: Any, use_tqdm: bool, **options: Any) -> list[str]:
        assert not use_tqdm
        if (length := len(schema.dumps(messages))) > self.limit:
            raise ValueError(f"The prompt (length {length}) is longer than the maximum model length")
        self.waiting.append({"messages": messages, "sampling": sampling, **options})
        return ["0-8c1f"]

    def wait_for_completion(self, *, use_tqdm: bool) -> list[Any]:
        assert not use_tqdm
        batch, self.waiting = self.waiting, []
        self.batches.append(batch)
        if any("explode" in schema.dumps(one["messages"]) for one in batch):
            raise RuntimeError("out of memory")
        one = SimpleNamespace(text=f"Well.\n{CALL}", token_ids=[1, 2, 3], finish_reason="stop", logprobs=None)
        return [SimpleNamespace(outputs=[one], prompt_token_ids=[1] * 5) for _ in batch]


engines: list[Engine] = []


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("vllm")
    module.LLM = Engine  # type: ignore[attr-defined]
    module.SamplingParams = SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", module)


def user(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_a_run_is_recorded_as_over_http(tmp_path: Any, mode: record.Mode) -> None:
    dataset = inputs.Dataset(name="small", rows=tuple(small.rows()))
    sampling = {"temperature": 0.0, "max_tokens": 16, "top_k": 4, "stop": ["END"], "min_p": 0.1}
    decoding = {**sampling, "chat_template_kwargs": {"enable_thinking": False}}
    settings = small.settings(
        fingerprint=dataset.fingerprint(), model="tiny", mode=mode, backend="vllm", decoding=decoding
    )
    rows = dataset.rows
    run = record.start(tmp_path / "run", dataset, settings, len(rows))
    opened = who.vllm("tiny", request_settings.RequestSettings(decoding=decoding), who.Effort(concurrency=16))
    session.run(run, dataset, opened)
    found = predictions.read_predictions(run.answers_path)
    assert [one.id for one in found] == [row.id for row in rows]
    transition = [one for one in found if one.component == "transition"]
    assert {one.injected for one in transition} == {True}
    native = [{"id": "call_0", "name": "ping", "arguments": '{"a":1}'}] if mode == "fc" else None
    assert {schema.dumps(one.tool_calls) for one in found} == {schema.dumps(native)}
    assert {one.raw_output for one in found} == {"Well.\n" if mode == "fc" else f"Well.\n{CALL}"}
    engine = engines[-1]
    assert max(len(batch) for batch in engine.batches) == 16
    asked = [one for batch in engine.batches for one in batch]
    assert len(asked) + run.record.sessions[-1].shared == len(rows) + len(transition)
    assert all(one["chat_template_kwargs"] == {"enable_thinking": False} for one in asked)
    assert all((one["tools"] is not None) == (mode == "fc") for one in asked)
    assert vars(asked[0]["sampling"]) == sampling


def test_a_prompt_beyond_the_context_is_too_long_and_an_engine_error_a_failed_request() -> None:
    async def both() -> Any:
        engine = vllm.VLLMTransport("tiny", batch=2, max_model_len=200)
        texts = ("x" * 300, "hello", "there", "explode")
        said = await asyncio.gather(*(engine.send(user(text)) for text in texts), return_exceptions=True)
        await engine.close()
        return said

    too_long, fine, broken_too, broken = asyncio.run(both())
    assert (too_long.code, broken_too.code, broken.code) == ("too_long", "server_error", "server_error")
    assert "out of memory" in broken.message
    assert fine.completion_tokens == 3


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (CALL, 1),
        (CALL + "\n" + CALL, 2),
        ('<tool_call>{"name": "a"}</tool_call>', 1),
        ("<tool_call>{broken}</tool_call>", 0),
        ('<tool_call>["a"]</tool_call>', 0),
        (CALL + "<tool_call>{broken}</tool_call>", 0),
        ("no call", 0),
        ("<tool_call>" * 50_000, 0),
        ("<tool_call>{" * 50_000 + "</tool_call>", 0),
    ],
)
def test_calls_are_cut_out_of_the_text_or_it_is_left_whole(text: str, calls: int) -> None:
    rest, found = vllm.cut_calls(text)
    assert len(found or ()) == calls
    assert calls or rest == text


def test_weights_that_cannot_be_loaded_and_a_missing_package_are_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refuses(r"vLLM cannot load absent: no such weights$", vllm.VLLMTransport, "absent", batch=1)
    monkeypatch.setitem(sys.modules, "vllm", None)
    refuses(r"pip install -e '.\[vllm\]'", vllm.VLLMTransport, "tiny", batch=1)


# --- The models' table, and the line that serves one --------------------------------------------------


def test_the_table_is_the_papers(shared: Path) -> None:
    with (shared / "spec" / "paper" / "models.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == [one.name for one in models().values() if one.group != "open"]
    for row in rows:
        model = models()[row["model"]]
        closed = row["mode"] == "api"
        assert (model.mode, model.group) == ("fc" if closed else row["mode"], row["group"])
        assert (model.weights or "") == ("" if closed else row["hf_id"])
        assert (model.thinking or "", model.dtype or "") == (row["thinking"], row["dtype"])
        for name in ("params_b", "max_model_len", "temperature", "max_tokens"):
            assert getattr(model, name) == (float(row[name]) if row[name] else None)


def test_every_open_model_with_weights_has_a_line() -> None:
    for model in models().values():
        if model.weights is None:
            continue
        words = shlex.split(serve_command(model.name))
        assert words[:3] == ["vllm", "serve", model.weights]
        assert ("--enable-auto-tool-choice" in words) == (model.parser is not None) == (model.mode == "fc")
        assert (model.source or "").startswith("https://") == (model.parser is not None), model.name
        assert words[-len(shlex.split(model.flags)) or len(words) :] == shlex.split(model.flags)


def test_every_family_of_open_models_is_there() -> None:
    there = " ".join(one.name for one in models().values() if one.group == "open").lower()
    for family in (
        "qwen3",
        "glm",
        "gpt-oss",
        "gemma",
        "deepseek",
        "llama",
        "mistral",
        "kimi",
        "granite",
        "smollm",
    ):
        assert family.replace("mistral", "ministral") in there


def test_the_lines_of_a_thinking_fc_model_and_of_weights_of_ones_own() -> None:
    assert serve_command("qwen3-8b") == (
        "vllm serve Qwen/Qwen3-8B --served-model-name Qwen3-8B qwen3-8b --port 8000 --dtype bfloat16 "
        "--max-model-len 16384 --enable-auto-tool-choice --tool-call-parser hermes "
        """--default-chat-template-kwargs '{"enable_thinking":false}'"""
    )
    assert serve_command("ToolRL-DR-Full", weights="out/full").startswith("vllm serve out/full ")


def test_models_are_found_by_name_and_by_weights_in_any_case() -> None:
    assert find("QWEN3-8B") is find("qwen/qwen3-8b") is models()["Qwen3-8B"]
    assert find("tiny") is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Qwen3-8", "unknown model 'Qwen3-8': did you mean Qwen3-8B"),
        ("o4-mini", "o4-mini is a closed model"),
        ("ToolRL-DR-Full", "no published weights: name a folder or Hub id after it"),
    ],
)
def test_a_model_that_cannot_be_served_is_one_line(name: str, said: str) -> None:
    refuses(said, serve_command, name)
