"""The site of docs/, built by its workflow's own commands, and the notebook in it, run again.

`python -m tests.test_docs` writes the outputs that the notebook holds.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from robustbench_tc import api
from robustbench_tc.eval import inputs

from . import agent_server
from .commands import shell
from .conftest import ROOT

NOTEBOOK = ROOT / "docs" / "notebooks" / "first-look.ipynb"
EXECUTE = ROOT / ".venv-docs" / "bin" / "jupyter-execute"


@pytest.fixture(autouse=True)
def environment() -> None:
    if os.environ.get("RBTC_HARNESSES") != "1" or not EXECUTE.exists():
        pytest.skip("runs programs of .venv-docs: make test-docs")


def executed(folder: Path) -> dict[str, Any]:
    """The notebook after a run of every cell in an empty folder, an agent of ours behind the endpoint."""
    api.build(folder / "served", profile="bundled")
    rows = inputs.load_samples(str(folder / "served")).rows
    work = folder / "work"
    work.mkdir()
    shutil.copy(NOTEBOOK, work)
    home = {name: str(folder / "home") for name in ("HF_HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR")}
    with agent_server.serving("gives-up-on-error", rows) as url:
        around = {**os.environ, **home, "OPENAI_BASE_URL": url, "MODEL": "scripted"}
        around["PYTHONWARNINGS"] = "ignore"  # tqdm's, that there are no widgets
        words: list[str | Path] = [EXECUTE, "--inplace", NOTEBOOK.name]
        done = subprocess.run(words, cwd=work, env=around, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads((work / NOTEBOOK.name).read_text())
    for cell in found["cells"]:
        cell["metadata"] = {}
        for output in cell.get("outputs", []):
            if len(output.get("data", {})) > 1:  # an object's own text beside what is shown of it
                del output["data"]["text/plain"]
    found["metadata"]["language_info"] = {"name": "python"}
    return found


def test_the_notebook_says_what_a_run_of_it_says(tmp_path: Path) -> None:
    held = json.loads(NOTEBOOK.read_text())
    assert executed(tmp_path)["cells"] == held["cells"]
    code = [cell for cell in held["cells"] if cell["cell_type"] == "code"]
    assert not any(output.get("name") == "stderr" for cell in code for output in cell["outputs"])
    assert all(cell["outputs"] for cell in code) and NOTEBOOK.stat().st_size < 100_000
    assert not re.search(r"/tmp/|/home/|/root/|127\.0\.0\.1", NOTEBOOK.read_text())


def test_the_site_is_built_by_the_commands_of_its_workflow() -> None:
    build, deploy = yaml.safe_load((ROOT / ".github" / "workflows" / "docs.yml").read_text())["jobs"].values()
    (command,) = (step["run"] for step in build["steps"] if "run" in step)
    (kept,) = (step["with"]["path"] for step in build["steps"] if "upload-pages" in step.get("uses", ""))
    shell(ROOT, f"rm -rf {kept} && {command}")
    site = ROOT / kept
    page = (site / "notebooks" / "first-look.html").read_text()
    assert "<svg" in page and "cheap" in page
    assert (site / "index.html").is_file() and 'href="notebooks/first-look.html"' in (
        site / "index.html"
    ).read_text()
    assert deploy["needs"] == "build" and deploy["permissions"] == {"pages": "write", "id-token": "write"}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        text = json.dumps(executed(Path(place)), indent=1, ensure_ascii=False, sort_keys=True)
    NOTEBOOK.write_text(text + "\n")
    sys.stdout.write(f"wrote {NOTEBOOK.relative_to(ROOT)}\n")
