"""A tiny random model behind a server that none of us wrote, and twenty samples through it.

Random weights answer with noise, so what is tested is the wire: requests, replies, both passes, the files.
"""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from robustbench_tc.eval import inputs, predictions, prompts, record, session
from robustbench_tc.eval.data import Selection
from robustbench_tc.eval.record import Mode
from robustbench_tc.eval.request_settings import RequestSettings
from robustbench_tc.eval.who import Effort, endpoint
from robustbench_tc.llm import Endpoint

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
    vocab_size=len(tokenizer), hidden_size=128, intermediate_size=64, num_hidden_layers=2,
    num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=8192,
    eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
)
Qwen2ForCausalLM(config).save_pretrained(sys.argv[1])
tokenizer.save_pretrained(sys.argv[1])
"""
"""Qwen2 with byte tokens. Heads of 64: what vLLM's CPU attention takes."""


def offline(home: Path) -> dict[str, str]:
    """The environment of a process that has no Hub to ask."""
    (home / "hub").mkdir(parents=True)  # without it transformers' /v1/models answers 500
    return os.environ | {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


def make_model(python: Path, folder: Path, environment: Mapping[str, str]) -> Path:
    subprocess.run([python, "-c", MAKE_MODEL, folder], env=environment, check=True, timeout=300)
    return folder


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def serving(
    command: Sequence[str], port: int, log: Path, environment: Mapping[str, str], patience_s: float
) -> Iterator[str]:
    """Runs a server until the block ends; yields its base URL once /health answers."""
    with log.open("wb") as said:
        server = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
    try:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                assert server.poll() is None and time.monotonic() < deadline, log.read_text()[-2000:]
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(30)


def twenty_samples_end_to_end(served: Endpoint, out: Path, mode: Mode) -> None:
    """Every row has its prediction, nothing failed, and replies are as long as was asked for."""
    dataset = inputs.Dataset(name="small", rows=tuple(small.rows()))
    selection = Selection(limit=20)
    rows = dataset.select(selection)
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
    run = record.start(out, dataset, settings, len(rows))
    effort = Effort(concurrency=4, timeout_s=120, max_retries=1)
    session.run(run, dataset, endpoint([served], RequestSettings(decoding=settings.decoding), effort))
    found = predictions.read(run.answers_path)
    assert [one.id for one in found] == [row.id for row in rows]
    assert [one.error for one in found if one.status != "ok"] == []
    assert {one.finish_reason for one in found} <= {"length", "stop", "tool_calls"}
    assert all((one.completion_tokens or 0) <= 16 * (1 + bool(one.injected)) for one in found)
