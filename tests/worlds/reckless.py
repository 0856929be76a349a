"""A world for tests that runs the code it is given: as if a model's arguments had found a hole in it.

It has nothing of ours: only what any world offers, WORLD with call, state and generated.
"""

import json


class Reckless:
    """It counts, and it runs code."""

    def __init__(self, state: dict[str, int], seed: int) -> None:
        self.data = state

    def call(self, name: str, arguments: dict[str, object]) -> str:
        if name == "add":
            self.data["count"] += int(str(arguments["amount"]))
            return str(self.data["count"])
        names: dict[str, object] = {"world": self}
        try:
            exec(str(arguments["code"]), names)
        except Exception as error:  # a world answers with its errors
            return json.dumps({"error": f"{type(error).__name__}: {error}"})
        return str(names.get("found"))

    def state(self) -> dict[str, int]:
        return self.data

    def generated(self) -> list[str]:
        return []


WORLD = Reckless
