"""A run under TRL goes on from its last whole checkpoint; with `--sampling` that has the order of rows."""

import json
from collections.abc import Iterator
from pathlib import Path

from robustbench_tc.errors import UserError

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


def last_whole(out: Path, *, sampling: bool) -> tuple[Path | None, bool]:
    """The newest checkpoint that is all there, and whether the run has all its steps with it.

    A run that was killed while it wrote one leaves a part: the one before it is taken. Raises UserError where
    there are only parts: to begin again without a word would lose what was paid for.
    """
    found = [path for path in out.glob("checkpoint-*") if path.name.removeprefix("checkpoint-").isdecimal()]
    for path in sorted(found, key=lambda one: int(one.name.rpartition("-")[2]), reverse=True):
        try:
            state = json.loads((path / "trainer_state.json").read_text())
            if sampling:
                Place(*json.loads((path / STATE).read_text())["place"])
            return path, state["global_step"] >= state["max_steps"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    if found:
        raise UserError(f"{out} has no whole checkpoint ({len(found)} in part): remove them to begin again")
    return None, False


def save(drawing: Drawing, checkpoint: Path) -> None:
    """Puts the state beside a checkpoint's other files."""
    (checkpoint / STATE).write_text(json.dumps(drawing.state) + "\n")


def load(drawing: Drawing, checkpoint: Path) -> None:
    """Goes on from a checkpoint that `save` was called for."""
    drawing.restore(json.loads((checkpoint / STATE).read_text()))
