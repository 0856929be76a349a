"""The harness against a server that none of us wrote: `transformers serve` with a tiny random model.

Needs an environment of its own (`make serve-env`): RBTC_SERVE_PYTHON or .venv-serve/bin/python. Random
weights answer with noise, so what is tested is the wire: requests, replies, both passes, the files.
"""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustbench_tc.eval import inputs, predictions, prompts, record, session
from robustbench_tc.eval.record import Mode
from robustbench_tc.llm import Endpoint

from ..conftest import ROOT
from . import small

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
    vocab_size=len(tokenizer), hidden_size=64, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=8192,
    eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
)
Qwen2ForCausalLM(config).save_pretrained(sys.argv[1])
tokenizer.save_pretrained(sys.argv[1])
"""


@pytest.fixture(scope="module")
def serve_python() -> Path:
    found = Path(os.environ.get("RBTC_SERVE_PYTHON", ROOT / ".venv-serve" / "bin" / "python"))
    if not found.is_file():
        pytest.skip(f"no serving environment at {found}: make serve-env, or set RBTC_SERVE_PYTHON")
    return found


@pytest.fixture(scope="module")
def served(serve_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A tiny random model behind `transformers serve`."""
    folder = tmp_path_factory.mktemp("serve")
    home = folder / "home"
    (home / "hub").mkdir(parents=True)  # without it /v1/models answers 500
    environment = os.environ | {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    model = folder / "tiny"
    subprocess.run([serve_python, "-c", MAKE_MODEL, model], env=environment, check=True, timeout=300)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(serve_python.with_name("transformers")), "serve", str(model), "--device", "cpu"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)], env=environment, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                assert server.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
                time.sleep(0.5)
        yield Endpoint(str(model), f"http://127.0.0.1:{port}/v1")
    finally:
        server.terminate()
        server.wait(20)


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_twenty_samples_go_end_to_end(served: Endpoint, tmp_path: Path, mode: Mode) -> None:
    dataset = inputs.Dataset(name="small", rows=tuple(small.rows()))
    selection = inputs.Selection(limit=20)
    rows = inputs.select(dataset, selection)
    settings = record.Settings(
        fingerprint=dataset.fingerprint(),
        model=served.model,
        mode=mode,
        backend="openai",
        decoding={"temperature": 0.0, "max_tokens": 16},
        prompt_version=prompts.prompt_version(),
        selection=selection,
        repeat=1,
    )
    run = record.start(tmp_path / "run", dataset, settings, len(rows))
    opened = session.endpoint(served, settings.decoding, concurrency=4, timeout_s=120, max_retries=1)
    session.run(run, rows, dataset.hashes(), opened, concurrency=4)
    found = predictions.read(run.predictions_path)
    assert [one.id for one in found] == [row.id for row in rows]
    assert [one.error for one in found if one.status != "ok"] == []
    assert {one.finish_reason for one in found} <= {"length", "stop", "tool_calls"}
    assert all((one.completion_tokens or 0) <= 16 * (1 + bool(one.injected)) for one in found)
