"""ToolRL's rlla_4k, the data that ToolRL-DR starts from: which files, which rows, which cannot serve.

Three forms of the same rows: the RL parquet (`prompt`, `reward_model`), the raw JSON that it was made from
(`instruction`, `input`, `output`), and the SFT file of 400 rows, which stands in for the 4,000 with its
distilled thoughts replaced by the RL files' fixed ones. The form of a prompt is `rlla_form`'s matter.

An rlla row beside its registry (`rlla_form`): the gold text, the transcript.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha1, sha256
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from robustbench_tc.errors import UserError
from robustbench_tc.eval.prompts.rlla_form import (
    CALL_THOUGHT,
    REPLY_THOUGHT,
    Registry,
    parse_system,
    system_text,
)
from robustbench_tc.io import parquet
from robustbench_tc.schema import Call, Json, Message, Sample

SOURCE = "rlla"

GIT_BLOBS = {
    "train.parquet": "0ddc730c556e4d26449dbdb55a1b28be824a8bfe",
    "test.parquet": "ccdac1cc0112fb54dd68cbc88d9abfe28ce3d749",
    "rlla_rl.json": "1827b67d516cca98f58541c8d218a038d13321e3",
    "rlla_sft.json": "7264a450b031b23b6b54dae109bc81b7ff7b929f",
}
"""Git's names of the four files at ToolRL commit 8cee13e: whether a user's file is upstream's."""

_SPLIT_SEED, _TEST_SHARE = 31415, 0.02
"""How upstream split the 4,000 raw rows: shuffled with numpy's legacy generator, the last 2 % are test."""

Split = Literal["train", "validation"]


class RllaRow(msgspec.Struct, frozen=True, kw_only=True):
    """One training row, and what is needed to write its prompt and gold back."""

    sample: Sample
    """The clean row: source `rlla`, one user message (the transcript), no golden answer where none calls."""
    split: Split
    system: str
    registry: Registry
    """The system text taken apart; put together again it is the same, byte for byte."""
    gold: str
    """The whole gold text."""


class Dropped(msgspec.Struct, frozen=True):
    """A row that cannot serve, and why."""

    clean_id: str
    split: Split
    reason: str


Form = Literal["rl_parquet", "raw_json", "sft_json"]

FORMS: tuple[tuple[Form, str, str], ...] = (
    ("rl_parquet", "rlla_4k", "train.parquet"),
    ("raw_json", "rlla_4k_raw", "rlla_rl.json"),
    ("sft_json", "rlla_4k_raw", "rlla_sft.json"),
)
"""Forms of the train rows with their folders and files, the best first."""


class RllaFiles(NamedTuple):
    """Where the rows come from."""

    train: Path
    form: Form
    validation: Path | None
    """None: the raw file's own last 2 %."""


def find_files(folder: Path) -> RllaFiles:
    """The best files under `folder` (ToolRL's `dataset` folder, or the mirror's root, or the files' own).

    The RL parquet before the raw JSON before the SFT file. Raises UserError when there is nothing to train on
    or nothing to validate on.
    """
    if not folder.is_dir():
        raise UserError(f"no folder {folder}: --rlla takes the folder with ToolRL's rlla_4k files")
    roots = [folder, folder / "dataset", folder / "toolrl" / "dataset"]

    def first(inner: str, name: str) -> Path | None:
        paths = [root / part / name for root in roots for part in (inner, ".")]
        return next((path for path in paths if path.is_file()), None)

    test = first("rlla_4k", "test.parquet")
    for form, inner, name in FORMS:
        if train := first(inner, name):
            if test is None and form != "raw_json":
                raise UserError(f"no test.parquet under {folder}: the validation split is ToolRL's test file")
            return RllaFiles(train, form, test)
    raise UserError(
        f"no train.parquet, rlla_rl.json or rlla_sft.json under {folder}: "
        "`rbtc data fetch` downloads ToolRL's files, --rlla names their folder"
    )


def provenance(path: Path) -> dict[str, Json]:
    """Name, size and sha256 of a source file, and whether it is upstream's file at the pinned commit."""
    data = path.read_bytes()
    blob = sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False)
    return {
        "file": path.name,
        "bytes": len(data),
        "sha256": sha256(data).hexdigest(),
        "pinned": GIT_BLOBS.get(path.name) == blob.hexdigest(),
    }


def read_rows(files: RllaFiles) -> Iterator[RllaRow | Dropped]:
    """Every row of `raw`, parsed."""
    return (row(*texts) for texts in raw(files))


Raw: TypeAlias = tuple[str, Split, str, str, str]
"""Clean id, split, and the texts of one upstream row: system, user, gold."""


def raw(files: RllaFiles) -> Iterator[Raw]:
    """Every row, validation first, in file order; one at a time, so a large parquet stays on disk."""
    if files.validation is not None:
        for index, texts in enumerate(_parquet(files.validation)):
            yield f"{SOURCE}__test_{index}", "validation", *texts
    if files.form == "rl_parquet":
        for index, texts in enumerate(_parquet(files.train)):
            yield f"{SOURCE}__train_{index}", "train", *texts
    elif files.form == "sft_json":
        for index, (system, user, gold) in enumerate(_json(files.train)):
            yield f"{SOURCE}__sft_{index}", "train", system, user, canned(gold)
    else:
        rows = list(_json(files.train))
        test = set() if files.validation else raw_test(len(rows))
        splits: tuple[Split, Split] = ("validation", "train")
        for split in splits:
            for index, texts in enumerate(rows):
                if (index in test) is (split == "validation"):
                    yield f"{SOURCE}__raw_{index}", split, *texts


def raw_test(count: int) -> set[int]:
    """Indices of the raw rows that upstream's conversion put into the test split."""
    import numpy as np

    order = np.arange(count)
    np.random.RandomState(_SPLIT_SEED).shuffle(order)
    return {int(index) for index in order[count - int(count * _TEST_SHARE) :]}


def _parquet(path: Path) -> Iterator[tuple[str, str, str]]:
    """(system, user, gold) of every row of an RL parquet."""
    import pyarrow as pa

    try:
        with parquet.opened(path) as file:
            columns = ["prompt", "reward_model"]
            for batch in file.iter_batches(batch_size=512, columns=columns, use_threads=False):
                for prompt, reward_model in zip(
                    *(column.to_pylist() for column in batch.columns), strict=True
                ):
                    turns = {turn["role"]: turn["content"] for turn in prompt or ()}
                    gold = (reward_model or {}).get("ground_truth")
                    yield turns.get("system") or "", turns.get("user") or "", gold or ""
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: not a parquet with the columns prompt (role, content) and reward_model "
            f"(ground_truth): {str(error).splitlines()[0][:120]}"
        ) from None


class _Record(msgspec.Struct):
    instruction: str
    input: str
    output: str


def _json(path: Path) -> Iterator[tuple[str, str, str]]:
    """(system, user, gold) of every record of a raw or SFT file."""
    try:
        records = msgspec.json.decode(path.read_bytes(), type=list[_Record])
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a JSON list of instruction, input, output: {error}") from None
    yield from ((record.instruction, record.input, record.output) for record in records)


def row(clean_id: str, split: Split, system: str, user: str, gold: str) -> RllaRow | Dropped:
    """One upstream row, or the reason why it cannot be read as a prompt with tools and a gold."""
    if not user.strip():
        return Dropped(clean_id, split, "no_user_text")
    try:
        registry = parse_system(system)
    except (ValueError, RecursionError):
        return Dropped(clean_id, split, "tools_not_parsed")
    if system_text(registry, registry.tools) != system:
        return Dropped(clean_id, split, "tools_not_written_back")
    try:
        calls = gold_calls(gold)
    except (ValueError, RecursionError):
        return Dropped(clean_id, split, "gold_not_decodable")
    names = [tool.name for tool in registry.tools]
    sample = Sample(
        id=f"{clean_id}::clean",
        clean_id=clean_id,
        type_code="clean",
        source=SOURCE,
        category="calls" if calls else "response",
        messages=(Message("user", user),),
        tools=registry.tools,
        golden_answers=(calls,) if calls else (),
        output_format="tool_call_tags",
        gold_tool_index=names.index(calls[0].name) if calls and calls[0].name in names else None,
    )
    return RllaRow(sample=sample, split=split, system=system, registry=registry, gold=gold)


def gold_calls(gold: str) -> tuple[Call, ...]:
    """The calls of a gold's first tool-call block, each value as its one accepted value; () without a block.

    Raises ValueError when a line is not a call.
    """
    if "<tool_call>" not in gold:
        return ()
    block = gold.split("<tool_call>", 2)[1].partition("</tool_call>")[0]
    calls = []
    for line in block.strip().split("\n"):
        value = json.loads(line)
        if not isinstance(value, dict) or not isinstance(value.get("parameters"), dict):
            raise ValueError("a line is not a call")
        if not isinstance(value.get("name"), str):
            raise ValueError("a call without a name")
        calls.append(Call(value["name"], {key: [given] for key, given in value["parameters"].items()}))
    return tuple(calls)


def canned(gold: str) -> str:
    """An SFT gold with its distilled thought replaced by the RL files' fixed one."""
    answer = gold.rpartition("</think>")[2].strip()
    return f"{CALL_THOUGHT if '<tool_call>' in answer else REPLY_THOUGHT}\n{answer}"


def gold_text(gold: str, names: Sequence[str]) -> str:
    """The gold with its calls named `names`, in order; every other byte as it was."""
    if "<tool_call>" not in gold:
        return gold
    before, tag, rest = gold.partition("<tool_call>")
    block, end, after = rest.partition("</tool_call>")
    lines = block.split("\n")
    places = [at for at, line in enumerate(lines) if line.strip()]
    for at, name in zip(places, names, strict=True):
        call = json.loads(lines[at])
        if call["name"] != name:
            wanted = call | {"name": name}
            edited = _replace_name(lines[at], call["name"], name)
            lines[at] = edited if json.loads(edited) == wanted else json.dumps(wanted)
    return before + tag + "\n".join(lines) + end + after


def _replace_name(text: str, old: str, new: str) -> str:
    """A call's text with the first occurrence of its name replaced, whether the name is escaped or not."""
    for form in (json.dumps(old), json.dumps(old, ensure_ascii=False)):
        if form in text:
            return text.replace(form, json.dumps(new, ensure_ascii=False), 1)
    return text


# --- transcript ---------------------------------------------------------------------------------------

_PAST = re.compile(r"<tool_call>.*?</tool_call>|<obs>.*?</obs>", re.DOTALL)
_NAMED = re.compile(r'\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")(?=\s*,\s*"(?:parameters|results|arguments)")')


def rename_in_history(transcript: str, names: Mapping[str, str]) -> tuple[str, list[tuple[int, str, str]]]:
    """A transcript with its past calls and results renamed; also (offset before, old, new) of each edit."""
    edits: list[tuple[int, str, str]] = []
    for block in _PAST.finditer(transcript):
        for found in _NAMED.finditer(transcript, *block.span()):
            try:
                old = json.loads(found.group(1))
            except ValueError:  # not the name of a tool
                continue
            if old in names:
                edits.append((found.start(1), found.group(1), json.dumps(names[old], ensure_ascii=False)))
    for at, before, after in reversed(edits):
        transcript = transcript[:at] + after + transcript[at + len(before) :]
    return transcript, edits
