"""The harness against `transformers serve` with a tiny random model.

Needs an environment of its own (`make env-serve`): RBTC_SERVE_PYTHON or .venv-serve/bin/python.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from robustbench_tc.eval.record import Mode
from robustbench_tc.llm import Endpoint

from ..conftest import ROOT, Rbtc
from . import tiny_model


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    python = Path(os.environ.get("RBTC_SERVE_PYTHON", ROOT / ".venv-serve" / "bin" / "python"))
    if not python.is_file():
        pytest.skip(f"no serving environment at {python}: make env-serve, or set RBTC_SERVE_PYTHON")
    folder = tmp_path_factory.mktemp("serve")
    environment = tiny_model.offline(folder / "home")
    model = tiny_model.make_model(python, folder / "tiny", environment)
    port = tiny_model.free_port()
    command = [str(python.with_name("transformers")), "serve", str(model), "--device", "cpu"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with tiny_model.serving(command, port, folder / "log", environment, 120) as url:
        yield Endpoint(str(model), url)


@pytest.mark.parametrize("mode", ["prompt", "fc"])
def test_twenty_samples_go_end_to_end(served: Endpoint, tmp_path: Path, mode: Mode) -> None:
    tiny_model.twenty_samples_end_to_end(served, tmp_path / "run", mode)


def test_the_probe_prints_what_this_server_does(
    served: Endpoint, rbtc: Rbtc, capfd: pytest.CaptureFixture[str]
) -> None:
    done = rbtc("probe", served.model, "--base-url", served.base_url, "--json")
    found = {one["check"]: one for one in json.loads(done.out)["findings"]}
    # A random model says nothing sensible: the server still takes tools, schemas and parameters.
    assert found["answers a question"]["answer"] == "no" and found["tools accepted"]["answer"] == "yes"
    with capfd.disabled():
        for one in found.values():
            print(one["check"], one["answer"], one["note"][:120], sep=" | ")  # noqa: T201 - make test-serve shows it
