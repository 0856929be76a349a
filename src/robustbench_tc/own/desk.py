"""The bundled example of own tools and cases: the support desk that `rbtc init` writes."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parents[1] / "data"

FRAMEWORKS = ("langgraph", "openai-agents", "pydantic-ai")
"""Frameworks that the example has an agent of."""


def desk() -> dict[str, bytes]:
    """Its files by path below the folder, in the order of their names."""
    root = DATA / "desk"
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return dict(sorted((path.relative_to(root).as_posix(), path.read_bytes()) for path in files))


def framework(name: str) -> dict[str, bytes]:
    """The agent of a framework and its requirements, by the names that `rbtc init` gives them."""
    names = [f"{name.replace('-', '_')}_{part}" for part in ("agent.py", "requirements.txt")]
    return {one: (DATA / "frameworks" / one).read_bytes() for one in names}


NEXT: tuple[str, ...] = (
    "rbtc build --cases cases.yaml --out bench",
    "rbtc eval bench --agent name-biased --out run",
    "rbtc gate run",
)
"""The next commands, as in README.md of the example."""


class Example(NamedTuple):
    """The example as it was written."""

    folder: Path
    files: tuple[str, ...]
    framework: str | None

    def shown(self) -> Iterator[str]:
        """The files, and the commands to go on with."""
        yield f"wrote {len(self.files)} files: {', '.join(self.files)}"
        yield "next:"
        if self.folder.resolve() != Path.cwd():
            yield f"  cd {shlex.quote(str(self.folder))}"
        commands = NEXT
        if self.framework is not None:
            name = self.framework.replace("-", "_")
            agent = f"{self.framework}/bin/python {name}_agent.py"
            commands = (
                NEXT[0],
                f"python -m venv {self.framework}",
                f"{self.framework}/bin/pip install --require-hashes -r {name}_requirements.txt",
                f'rbtc eval bench --command "{agent}" --out runs/{self.framework}',
            )
        yield from (f"  {line}" for line in commands)
