"""The bundled example of own tools and cases: the support desk that `rbtc init` writes."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable


def desk() -> dict[str, bytes]:
    """Its files by path below the folder, in the order of their names."""
    root = files("robustbench_tc").joinpath("data", "desk")
    return dict(sorted((name, file.read_bytes()) for name, file in _below(root)))


FRAMEWORKS = ("langgraph", "openai-agents", "pydantic-ai")
"""Frameworks that the example has an agent of."""


def framework(name: str) -> dict[str, bytes]:
    """The agent of a framework and its requirements, by the names that `rbtc init` gives them."""
    root = files("robustbench_tc").joinpath("data", "frameworks")
    names = [f"{name.replace('-', '_')}_{part}" for part in ("agent.py", "requirements.txt")]
    return {one: root.joinpath(one).read_bytes() for one in names}


def _below(folder: Traversable, inside: str = "") -> Iterator[tuple[str, Traversable]]:
    for one in folder.iterdir():
        if one.is_dir():
            if one.name != "__pycache__":  # installers compile agent.py
                yield from _below(one, f"{inside}{one.name}/")
        else:
            yield f"{inside}{one.name}", one
