"""The bundled example of own tools and cases: the support desk that `rbtc init` writes."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable


def desk() -> dict[str, bytes]:
    """Its files by path below the folder, in the order of their names."""
    root = files("robustbench_tc").joinpath("data", "desk")
    return dict(sorted((name, file.read_bytes()) for name, file in _below(root)))


def _below(folder: Traversable, inside: str = "") -> Iterator[tuple[str, Traversable]]:
    for one in folder.iterdir():
        if one.is_dir():
            if one.name != "__pycache__":  # installers compile agent.py
                yield from _below(one, f"{inside}{one.name}/")
        else:
            yield f"{inside}{one.name}", one
