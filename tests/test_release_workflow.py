"""The publishing workflow: the commands in it are ours as they are, and nothing typed in becomes code."""

import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from .conftest import ROOT, Done

WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


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
    secrets = re.findall(r"secrets\.(\w+)", WORKFLOW.read_text())
    assert sorted(secrets) == ["HF_TOKEN", "RELEASE_KEY"]


def test_the_bundle_lies_beside_the_release_and_is_kept(workflow: dict[Any, Any]) -> None:
    """What is published has the files of its manifest and the maintainers' signature only."""
    (job,) = workflow["jobs"].values()
    commands = "\n".join(scripts(workflow)).replace("\\\n", " ")
    signed, verified = re.findall(r"sigstore (?:sign|verify github) .*--bundle (\S+)", commands)
    assert signed == verified and not signed.startswith("release/")
    assert signed in job["steps"][-1]["with"]["path"].split()
