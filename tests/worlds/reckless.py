"""A world for tests that runs the code it is given: as if a model's arguments had found a hole in it."""

from robustbench_tc.worlds.base import Failure, Task, World, read, write


class Reckless(World):
    """It counts, and it runs code."""

    name = "reckless"

    @write()
    def add(self, amount: int) -> int:
        """Adds to the count."""
        self.data["count"] += amount
        return int(self.data["count"])

    @read
    def run(self, code: str) -> str:
        """Runs Python; what it leaves in `found` is the answer."""
        names: dict[str, object] = {"world": self}
        try:
            exec(code, names)
        except Exception as error:
            raise Failure(f"{type(error).__name__}: {error}") from None
        return str(names.get("found"))


WORLD = Reckless
TASKS = [Task("reckless_1", {"count": 0}, [])]
