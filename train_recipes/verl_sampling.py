"""`data.sampling` in verl: the order of the train rows by `sampling`, its weights by each validation.

verl saves the state of its loader, and with it that of this sampler, in every checkpoint.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from robustbench_tc.errors import UserError

from .sampling import Drawing, drawing


class Sampler:
    """What verl's loader takes as its sampler."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing

    def __len__(self) -> int:
        return self.drawing.rows

    def __iter__(self) -> "Draws":
        return Draws(self.drawing)


class Draws:
    """One pass; its state is where the next draw begins, and the weights."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing, self._draws = drawing, drawing.epoch()

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return next(self._draws)

    def state_dict(self) -> dict[str, Any]:
        """For the checkpoint."""
        return self._drawing.state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a checkpoint."""
        self._drawing.restore(state)
        self._draws = self._drawing.epoch()


def check_share(mode: str, columns: Collection[str]) -> None:
    """UserError where rows of a mixture would be drawn by type: their share would move."""
    if mode != "uniform" and "agent_name" in columns:
        raise UserError(f"data.sampling={mode}: a mixture keeps its share of retry rows: leave it uniform")


def wrap(create: Any) -> Any:
    """verl's `create_rl_sampler`, which looks at `data.sampling` first."""

    def create_rl_sampler(config: Any, dataset: Any) -> Any:
        mode = config.get("sampling", "uniform")
        if mode == "uniform":
            return create(config, dataset)
        check_share(mode, dataset.dataframe.column_names)
        types = [str(info["type_code"]) for info in dataset.dataframe["extra_info"]]
        return Sampler(drawing(types, mode, config.get("seed") or 0))

    return create_rl_sampler
