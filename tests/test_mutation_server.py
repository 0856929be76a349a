"""The process that runs the tests of a mutation run: a fork per run, so that runs leave nothing behind."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from .conftest import ROOT

Ask = Callable[..., str]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Runs a file of tests in the server, with limits in seconds: in all, and of computing."""
    folder = tmp_path_factory.mktemp("mutation")
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "scripts" / "mutation_server.py")],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None and server.stdout is not None
    into, out = server.stdin, server.stdout

    def run(code: str, in_all: float = 60, computing: int = 60) -> str:
        (folder / "test_it.py").write_text(code)
        into.write(json.dumps([in_all, computing, ["-q", "-p", "no:cacheprovider", "test_it.py"]]) + "\n")
        into.flush()
        return out.readline().strip()

    yield run
    into.close()
    assert server.wait(30) == 0
    out.close()


def test_it_answers_with_pytests_exit_code_and_remembers_nothing(ask: Ask) -> None:
    keep = "import sys\ndef test_it():\n    assert not hasattr(sys, 'kept'); sys.kept = 1\n"
    assert [ask(keep), ask(keep)] == ["0", "0"]
    assert ask("def test_it():\n    print('to the log'); assert False\n") == "1"
    assert ask("import no_such_module\n") == "2"
    assert ask("") == "5"


def test_tests_that_do_not_end_are_stopped_by_either_limit(ask: Ask) -> None:
    assert ask("import time\ndef test_it():\n    time.sleep(60)\n", in_all=1.5) == "124"
    assert ask("def test_it():\n    while True: pass\n", computing=2) == "124"
    assert ask("def test_it():\n    pass\n") == "0"
