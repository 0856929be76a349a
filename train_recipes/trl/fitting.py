"""`smoke --data`: the rows of a real training set that the smoke test's model can hold.

Its positions and its answers end at some number of tokens, whatever a row needs: what does not fit is left
out and counted by its reason, in rows.json beside the rows that are kept.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from robustbench_tc.errors import UserError
from robustbench_tc.io import marker

from .. import dataset
from . import data, toy

KEPT = "rows.json"
"""Written last: with it the rows are all there."""

CONFIG = "full"


def take(name: str, out: Path, answer: int) -> dict[str, Any]:
    """Writes a tokenizer for the dataset's rows and the rows that fit into `out`; returns rows.json.

    What is there already is taken as it is. Raises UserError where it is of other rows, and where fewer fit
    than the model is taught.
    """
    shards = dataset.locate(name, CONFIG)
    files = {path.name: marker.sha256(path) for path in (*shards.train, *shards.validation)}
    if (out / KEPT).is_file():
        known: dict[str, Any] = json.loads((out / KEPT).read_text())
        if known["sha256"] != files:
            raise UserError(f"{out} holds a smoke test on other rows: choose another --out, or --fresh")
        return known
    tokenizer = toy.tokenizer_of(data.rows(shards.train), out / "tokenizer")
    said: dict[str, Any] = {"config": CONFIG, "sha256": files}
    for split, paths in zip(("train", "validation"), shards, strict=True):
        rows = data.rows(paths)
        reasons = [_too_long(tokenizer, row, answer) for row in rows]
        kept = [at for at, reason in enumerate(reasons) if not reason]
        if split == "train" and len(kept) < toy.SFT_ROWS:
            raise UserError(
                f"{name}: {len(kept)} of {len(rows)} train rows fit the smoke test's model, which is taught "
                f"{toy.SFT_ROWS}"
            )
        folder = out / "toolrl-dr" / CONFIG
        folder.mkdir(parents=True, exist_ok=True)
        table = pa.concat_tables([pq.read_table(path) for path in paths]).take(kept)
        pq.write_table(table, folder / f"{split}-00000-of-00001.parquet")
        left = Counter(reason for reason in reasons if reason)
        said[split] = {"rows": len(rows), "kept": len(kept), "left_out": dict(sorted(left.items()))}
    (out / KEPT).write_text(json.dumps(said, indent=1) + "\n")
    return said


def _too_long(tokenizer: Any, row: dict[str, Any], answer: int) -> str:
    """Why a row does not fit; "" where it does."""
    prompt = len(tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=False))
    if prompt + answer > toy.POSITIONS:
        return f"prompt and answer over {toy.POSITIONS} tokens of the toy"
    # One more: the end of the turn.
    if len(tokenizer.encode(row["ground_truth"], add_special_tokens=False)) + 1 > answer:
        return f"gold over {answer} tokens of the toy"
    return ""
