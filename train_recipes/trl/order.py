"""`--sampling` under TRL: the order of the train rows by `sampling`, kept in every checkpoint."""

import json
from collections.abc import Iterator
from pathlib import Path

from ..sampling import Drawing, Place

STATE = "sampling.json"


class Repeated:
    """TRL's order for GRPO over our draws: a prompt of a batch so often in a row, a batch so often."""

    def __init__(self, drawing: Drawing, *, in_a_row: int, batch: int, times: int) -> None:
        self.drawing = drawing
        self._in_a_row, self._batch, self._times = in_a_row, batch, times

    def __len__(self) -> int:
        return self.drawing.rows // self._batch * self._batch * self._in_a_row * self._times

    def __iter__(self) -> Iterator[int]:
        draws = self.drawing.epoch()
        while (
            len(batch := [index for _, index in zip(range(self._batch), draws, strict=False)]) == self._batch
        ):
            for _ in range(self._times):
                for index in batch:
                    yield from [index] * self._in_a_row


def save(drawing: Drawing, checkpoint: Path) -> None:
    """Puts the state beside a checkpoint's other files."""
    state = {"place": list(drawing.place), "weights": drawing.weights.state}
    (checkpoint / STATE).write_text(json.dumps(state) + "\n")


def load(drawing: Drawing, checkpoint: Path) -> None:
    """Goes on from a checkpoint that `save` was called for."""
    state = json.loads((checkpoint / STATE).read_text())
    drawing.place = Place(*state["place"])
    drawing.weights.restore(state["weights"])
