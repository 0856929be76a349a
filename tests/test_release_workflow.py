"""Files for other people's platforms: linters find nothing in them, their commands are ours as they are, and
nothing that is typed in becomes code."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from robustbench_tc.own.desk import desk

from .commands import shell
from .conftest import ROOT, Done

FILES = ROOT / ".github"
WORKFLOW = FILES / "workflows" / "release.yml"


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    if not WORKFLOW.is_file():
        pytest.skip("a source distribution has no workflow")
    found: dict[Any, Any] = yaml.safe_load(WORKFLOW.read_text())
    return found


def scripts(workflow: dict[Any, Any]) -> list[str]:
    return [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]


def test_every_command_and_option_of_ours_exists(workflow: dict[Any, Any], rbtc: Callable[..., Done]) -> None:
    text = "\n".join(scripts(workflow)).replace("\\\n", " ")
    commands = [shlex.split(line.strip()) for line in text.splitlines() if line.strip().startswith("rbtc ")]
    verbs = [next(word for word in command[1:] if not word.startswith("-")) for command in commands]
    assert verbs == ["data", "build", "release", "verify", "publish", "verify"]
    for command in commands:
        words = command[1:3] if command[1] == "data" else command[1:2]
        said = rbtc(*words, "--help").out
        for option in (word for word in command if word.startswith("--")):
            assert option in said, (command, option)
    assert "--previous" in rbtc("release", "--help").out and "--dry-run" in rbtc("publish", "--help").out


def test_nothing_that_is_typed_in_is_put_into_a_script(workflow: dict[Any, Any]) -> None:
    for script in scripts(workflow):
        assert "${{" not in script


def test_a_run_may_only_ask_for_its_own_identity(workflow: dict[Any, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "read", "id-token": "write", "attestations": "write"}
    assert job["environment"] == "release"
    assert sorted(re.findall(r"secrets\.(\w+)", WORKFLOW.read_text())) == ["HF_TOKEN", "RELEASE_KEY"]


def test_the_bundle_lies_beside_the_release_and_is_kept(workflow: dict[Any, Any]) -> None:
    """What is published has the files of its manifest and the maintainers' signature only."""
    (job,) = workflow["jobs"].values()
    commands = "\n".join(scripts(workflow)).replace("\\\n", " ")
    signed, verified = re.findall(r"sigstore (?:sign|verify github) .*--bundle (\S+)", commands)
    assert signed == verified and not signed.startswith("release/")
    assert signed in job["steps"][-1]["with"]["path"].split()


# --- what their platforms' linters say --------------------------------------------------------------------


def linted(*words: str | Path) -> str:
    """What a linter of the environment says of files."""
    program = Path(sys.executable).parent / words[0]
    done = subprocess.run([program, *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else done.stdout + done.stderr or str(done.returncode)


def test_the_linters_find_nothing_and_would_find_something(workflow: dict[Any, Any], tmp_path: Path) -> None:
    assert (
        linted("zizmor", "--offline", "--no-progress", "--quiet", "--collect=all", FILES, "action.yml") == ""
    )
    ours = sorted((FILES / "workflows").glob("*.yml"))
    assert len(ours) == 3
    given, typo = tmp_path / "given.yml", tmp_path / "typo.yml"
    given.write_bytes(desk()[".github/workflows/rbtc.yml"])
    typo.write_text(WORKFLOW.read_text().replace("runs-on:", "run-on:"))
    form = ("check-jsonschema", "--builtin-schema")
    assert linted(*form, "vendor.github-workflows", *ours, given) == ""
    assert "'runs-on' is a required property" in linted(*form, "vendor.github-workflows", typo)
    assert linted(*form, "vendor.dependabot", FILES / "dependabot.yml") == ""
    for text in (path.read_text() for path in ours):
        declared = (yaml.safe_load(text)[True].get("workflow_dispatch") or {}).get("inputs", {})
        assert set(re.findall(r"inputs\.(\w+)", text)) == set(declared)
    updates = yaml.safe_load((FILES / "dependabot.yml").read_text())["updates"]
    assert {one["package-ecosystem"] for one in updates} == {"github-actions", "pip"}


def test_a_package_is_released_by_its_tag_without_a_token(workflow: dict[Any, Any]) -> None:
    text = (FILES / "workflows" / "package.yml").read_text()
    package = yaml.safe_load(text)
    build, publish = package["jobs"].values()
    assert package[True] == {"push": {"tags": ["v[0-9]*"]}} and "secrets." not in text
    assert package["permissions"] == {"contents": "read"} and "permissions" not in build
    assert publish["permissions"] == {"id-token": "write"} and publish["needs"] == "build"
    names = [step.get("name", "") for step in build["steps"]]
    assert names.index("The tag is the version") < names.index("Test") < names.index("Build")
    check = scripts(package)[0]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for tag, code in ((f"v{version}", 0), ("v9.9.9", 1)):
        shell(ROOT, check, code, os.environ | {"GITHUB_REF_NAME": tag})
    (sent,) = (step for step in publish["steps"] if "gh-action-pypi-publish" in step["uses"])
    assert sent["with"] == {"attestations": True}


def test_the_hook_lints_tool_files(
    workflow: dict[Any, Any], tmp_path: Path, rbtc: Callable[..., Done]
) -> None:
    manifest = ROOT / ".pre-commit-hooks.yaml"
    assert linted("pre-commit", "validate-manifest", manifest) == ""
    (hook,) = yaml.safe_load(manifest.read_text())
    for name, taken in {"tools.json": True, "a/my_tools.json": True, "package.json": False}.items():
        assert bool(re.search(hook["files"], name)) == taken
    program, *words = hook["entry"].split()
    assert program == "rbtc"
    same = [json.dumps([{"name": "find", "parameters": {"type": "object"}}])] * 2
    paths = [tmp_path / f"{name}_tools.json" for name in "ab"]
    for path, text in zip(paths, same, strict=True):
        path.write_text(text)
    assert rbtc(*words, paths[0]).code == 0 and rbtc(*words, *paths).code == 1
