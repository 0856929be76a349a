"""The bundled example of own tools and cases: the support desk that `rbtc init` writes."""

from pathlib import Path

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
