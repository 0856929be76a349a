"""A small world for tests: coins that can be counted, added, taken, and a note that nobody can read back."""

from typing import Annotated

from robustbench_tc.worlds.base import Failure, Task, Turn, World, call, read, write


class Purse(World):
    """A purse."""

    name = "purse"

    @read
    def count_coins(self) -> dict[str, int]:
        """How many coins are in the purse."""
        return {"coins": self.data["coins"]}

    @read
    def list_receipts(self) -> list[dict[str, object]]:
        """Receipts of what was put in, oldest first."""
        return list(self.data["receipts"])

    @write(undo="take_coins")
    def add_coins(self, amount: Annotated[int, "How many coins to put in."]) -> dict[str, object]:
        """Puts coins into the purse and gives a receipt."""
        if amount < 1:
            raise Failure("amount must be at least 1")
        self.data["coins"] += amount
        receipt = {"receipt": self.new_id("R-"), "amount": amount}
        self.data["receipts"].append(receipt)
        return receipt

    @write(undo="add_coins")
    def take_coins(self, amount: Annotated[int, "How many coins to take out."]) -> dict[str, int]:
        """Takes coins out of the purse."""
        if amount > self.data["coins"]:
            raise Failure("there are not so many coins")
        self.data["coins"] -= amount
        return {"coins": self.data["coins"]}

    @write(idempotent=True)
    def whisper(self, text: Annotated[str, "What is whispered."]) -> str:
        """Whispers something into the purse; nothing shows it afterwards."""
        self.data["whisper"] = text
        return "whispered"


WORLD = Purse

TASKS = [
    Task(
        "purse_1",
        {"coins": 3, "receipts": [], "whisper": ""},
        [Turn("Put two coins into the purse.", [call("add_coins", amount=2)])],
    ),
    Task(
        "purse_2",
        {"coins": 5, "receipts": [], "whisper": ""},
        [
            Turn("How many coins do I have?", [call("count_coins")]),
            Turn("Take all of them out.", [call("take_coins", amount=5)]),
            Turn("Whisper 'empty' into it.", [call("whisper", text="empty")]),
        ],
    ),
]
