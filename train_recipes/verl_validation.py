"""Validation by component in verl: `install` adds `validation.summary` to what a trainer logs.

verl tells validation rows apart by a random id that it gives each one on its way to the rollout; the loader
reads it back, and so knows which row an answer belongs to. The first validation of a run is kept beside its
checkpoints: a resumed run compares with it too. `verl_plugin` is what verl imports.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from . import validation


class Named:
    """verl's validation loader. `rows` says what each id of verl's is, once the batch was answered."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self.rows: dict[str, validation.Row] = {}

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._loader:
            found = [
                validation.row(info, model["ground_truth"])
                for info, model in zip(batch["extra_info"], batch["reward_model"], strict=True)
            ]
            yield batch  # verl writes `uid` into it
            self.rows.update(zip(batch["uid"], found, strict=True))


def install(trainer: Any) -> None:
    """Wraps the two methods of verl's trainer class that validation goes through; once."""
    if hasattr(trainer, "_rbtc_rows"):
        return
    validate, update = trainer._validate, trainer._val_metrics_update

    @wraps(validate)
    def _validate(self: Any) -> Any:
        loader = self.val_dataloader
        self.val_dataloader = named = Named(loader)
        self._rbtc_rows = named.rows
        try:
            return validate(self)
        finally:
            self.val_dataloader = loader

    @wraps(update)
    def _val_metrics_update(
        self: Any, sources: Any, uids: Sequence[str], infos: Mapping[str, Any], turns: Any, **more: Any
    ) -> dict[str, float]:
        found: dict[str, float] = update(self, sources, uids, infos, turns, **more)
        answers = [
            validation.scored(self._rbtc_rows[uid], reward)
            for uid, reward in zip(uids, infos["reward"], strict=True)
        ]
        return found | validation.compared(
            answers, Path(self.config.trainer.default_local_dir), self.global_steps
        )

    trainer._rbtc_rows = {}
    trainer._validate = _validate
    trainer._val_metrics_update = _val_metrics_update
