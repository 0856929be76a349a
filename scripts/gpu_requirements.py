"""Whether what install-gpu.sh installs resolves together with this package: a dry run, nothing is fetched.

    make check-gpu

flash-attn has no wheel and cannot say what it needs without torch, so its needs stand here.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDS = {"flash-attn": ["torch", "einops"]}
"""What flash-attn's setup.py asks for."""
SHOWN = ("torch", "flash-attn", "vllm", "verl", "transformers", "datasets", "huggingface-hub")


def wanted() -> list[str]:
    """Every requirement of the three steps, and this package's own."""
    script = (ROOT / "train_recipes" / "install-gpu.sh").read_text()
    pinned = re.findall(r"\b[a-z][\w-]*==[\w.]+", "\n".join(re.findall(r"^run .*", script, re.M)))
    lines = (ROOT / "train_recipes" / "requirements-gpu.txt").read_text().splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*pinned, *(line for line in lines if line and line[0] != "#"), *project["dependencies"]]


def project(requirements: list[str]) -> str:
    """A project that needs them all, for uv."""
    flash = next(one.partition("==")[2] for one in requirements if one.startswith("flash-attn=="))
    listed = {"project": requirements, "flash-attn": NEEDS["flash-attn"]}
    given = {name: "[" + ", ".join(f'"{one}"' for one in ones) + "]" for name, ones in listed.items()}
    return (
        '[project]\nname = "gpu"\nversion = "0"\nrequires-python = ">=3.11"\n'
        f"dependencies = {given['project']}\n"
        f'[[tool.uv.dependency-metadata]]\nname = "flash-attn"\nversion = "{flash}"\n'
        f"requires-dist = {given['flash-attn']}\n"
    )


def main() -> None:
    """Prints the versions, or why there are none."""
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pyproject.toml"
        path.write_text(project(wanted()))
        line = [
            uv,
            "pip",
            "compile",
            path,
            "--python-version",
            "3.11",
            "--python-platform",
            "linux",
            "--quiet",
        ]
        done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"install-gpu.sh does not resolve: {done.stderr.strip()}")
    found = dict(re.findall(r"^([\w-]+)==([\w.+]+)", done.stdout, re.M))
    sys.stdout.write(f"{len(found)} packages: {', '.join(f'{name} {found[name]}' for name in SHOWN)}\n")


if __name__ == "__main__":
    main()
