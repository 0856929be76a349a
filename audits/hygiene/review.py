"""Every find in a build that nobody reviewed yet: what `rbtc audit --review-out` shows."""

from collections.abc import Iterator
from itertools import chain

from robustbench_tc import taxonomy
from robustbench_tc.schema import Sample, loads, record

from ..folder import Folder
from . import files
from .reviewed import Candidate
from .rows import RowTexts
from .texts import CREDENTIAL, Find, Flagged
from .training import TrainingTexts


def candidates(folder: Folder) -> Iterator[Candidate]:
    """The finds in clean rows of a benchmark build or all rows of another one, and in files: once."""
    seen = set()
    rows = _ROWS[folder.kind](folder)
    beside = (("files", flagged.place, flagged, find) for flagged, find in files.to_review(folder))
    for source, row, flagged, find in chain(rows, beside):
        one = Candidate(
            rule=find.said.partition(" ")[0] if find.rule == CREDENTIAL else find.rule,
            source=source,
            hash=find.fingerprint(flagged.text),
            row=row,
            found=find.value,
            text=flagged.text,
        )
        if one.hash not in seen:
            seen.add(one.hash)
            yield one


def _benchmark(folder: Folder) -> Iterator[tuple[str, str, Flagged, Find]]:
    texts = RowTexts()
    for raw in folder.rows(taxonomy.CLEAN):
        row = record(raw, Sample)
        for flagged, find in texts.to_review(raw, row):
            yield row.source, f"{row.id} {flagged.place}", flagged, find


def _training(folder: Folder) -> Iterator[tuple[str, str, Flagged, Find]]:
    texts = TrainingTexts()
    for config in folder.configs():
        for split in folder.splits(config):
            for number, raw in enumerate(folder.rows(config, split)):
                info = raw["extra_info"]
                info = loads(info) if isinstance(info, str) else info
                turns = [turn["content"] for turn in raw.get("prompt") or raw["messages"]]
                gold = raw["reward_model"]["ground_truth"] if "reward_model" in raw else turns[-1]
                for flagged, find in texts.to_review(turns, gold, loads(info["changes"])):
                    yield str(raw.get("data_source") or "rlla"), f"{config}/{split}[{number}]", flagged, find


def _live(folder: Folder) -> Iterator[tuple[str, str, Flagged, Find]]:
    from ..live.entries import entries
    from ..live.scan import LiveTexts

    texts = LiveTexts()
    for entry in entries(folder):
        if entry.row is not None:
            whole = entry.clean is None or bool(entry.differs)
            for flagged, find in texts.to_review(entry.row, whole=whole):
                yield entry.row.world, f"{entry.where} {flagged.place}", flagged, find


_ROWS = {"benchmark": _benchmark, "training": _training, "live": _live}
