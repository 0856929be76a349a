"""What the page's browser shows: rows and replies, bounded, each shared part once, compressed into base64.

A perturbed text is kept as what differs from its clean text; rows of one sample lie together, so that the
compressor sees what they share. Nothing of it is markup: base64 has no character that ends a script element,
and `browser.js` puts every text in as text.
"""

import base64
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import sources, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.stats import failures
from robustbench_tc.eval.stats.runs import Run
from robustbench_tc.eval.wanted import unmet
from robustbench_tc.io import parquet
from robustbench_tc.schema import Json, Sample, Verdict, dumps, loads, record

from .cases import Case, lost
from .pool import Pool, cut

BUDGET = 4_000_000
"""Characters that the embedded rows may take: the whole page stays below 5 MB."""

CLIPS = (8_000, 4_000, 2_000, 1_000, 500, 250)
"""Characters kept of a reply: the most with which the rows fit the budget."""

MOST_ROWS = 12_000
"""Rows embedded; of a larger dataset whole samples, as many of each source."""

_COLUMNS = (
    "id repeat sample_hash status raw_output tool_calls first_output finish_reason error calls correct "
    "reason error_mode flags"
).split()


class Embedded(msgspec.Struct, frozen=True):
    """The browser's data, or why there is none."""

    text: str = ""
    """Base64 of raw deflate of JSON; empty where there is none."""
    notes: tuple[str, ...] = ()
    """What is not on the page, one line each."""
    rows: int = 0
    clip: int = 0
    """Characters kept of a reply."""
    cases: dict[str, tuple[Case, ...]] = {}
    """Label of a run that lost something → of each component one lost sample."""


def embed(runs: Sequence[Run], labels: Sequence[str], release: str | Path | None = None) -> Embedded:
    """The rows that the runs were asked, with their replies. Never raises for a dataset that is not there:
    the notes say so. The same texts give the same JSON; its compressed form may differ between versions of
    zlib.
    """
    rows, why = _rows(runs, release)
    if not rows:
        return Embedded(notes=(why,))
    notes = [why] if why else []
    every, kept = len(rows), _spread(rows, MOST_ROWS)
    while True:
        for clip in CLIPS:
            text = packed(_data(kept, runs, labels, clip))
            if len(text) <= BUDGET:
                break
        fewer = _spread(kept, len(kept) // 2)
        if len(text) <= BUDGET or len(fewer) == len(kept):  # one sample stays, whatever it holds
            break
        kept = fewer
    if len(kept) < every:
        notes.append(f"The page holds {len(kept)} of {every} rows: whole samples, as many of each source.")
    with_texts = (
        (run, label)
        for run, label in zip(runs, labels, strict=True)
        if "raw_output" in _there(Path(run.path) / "scores.parquet")
    )
    cases = {label: found for run, label in with_texts if (found := lost(run, kept))}
    return Embedded(text, tuple(notes), len(kept), clip, cases)


def packed(value: Json) -> str:
    """Raw deflate of the JSON text in base64, which `embedded` in page.js reads."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(squeeze.compress(msgspec.json.encode(value)) + squeeze.flush()).decode()


def _rows(runs: Sequence[Run], release: str | Path | None) -> tuple[list[Sample], str]:
    """The rows that the runs were asked, samples together, and a line about those that are not there."""
    named = runs[0].record.dataset
    place = Path(release) if release is not None else Path(named)
    short = named.rstrip("/").rpartition("/")[2] or "unnamed"
    if not (release or named) or not place.is_dir():
        return [], f"The dataset folder of these runs ({short}) is not on this machine: --dataset names one."
    try:
        dataset = inputs.load(str(place))
    except (
        UserError,
        ValueError,
        LookupError,
        TypeError,
        OSError,
    ) as error:  # Arrow's errors are some of these
        said = (str(error).splitlines() or ["damaged"])[0][:300].replace(str(place.resolve()), place.name)
        return [], f"The dataset cannot be read: {said.replace(str(place), place.name or short)}"
    asked: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for row, digest in zip(run.rows["id"].tolist(), run.rows["sample_hash"].tolist(), strict=True):
            asked[row].add(digest)
    fitting = {row for row, digests in asked.items() if digests == {dataset.hash_of(row)}}
    if not fitting:
        return [], f"The dataset folder {place.name} has none of the texts that these runs were asked."
    samples = {row.clean_id: i for i, row in enumerate(dataset.rows) if row.type_code == taxonomy.CLEAN}
    with_clean = fitting | {f"{row.rpartition('::')[0]}::{taxonomy.CLEAN}" for row in fitting}
    rows = [row for row in dataset.rows if row.id in with_clean]
    rows.sort(key=lambda row: samples.get(row.clean_id, len(samples)))  # stable: types stay in their order
    left = len(asked) - len(fitting)
    why = (
        f"{left} of {len(asked)} rows of these runs have other texts in {place.name}, or none."
        if left
        else ""
    )
    return rows, why


def _spread(rows: Sequence[Sample], most: int) -> list[Sample]:
    """Whole samples in turns over the sources, until `most` rows are there (one sample at least)."""
    if len(rows) <= most:
        return list(rows)
    of_sample: dict[str, int] = defaultdict(int)
    queues: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        of_sample[row.clean_id] += 1
        queues[row.source][row.clean_id] = None
    order = sorted(
        ((turn, source, one) for source, ids in queues.items() for turn, one in enumerate(ids)),
    )
    kept: set[str] = set()
    count = 0
    for _, _, one in order:
        if kept and count + of_sample[one] > most:
            break
        kept.add(one)
        count += of_sample[one]
    return [row for row in rows if row.clean_id in kept]


# --- the tables ---------------------------------------------------------------------------------------


def _data(rows: Sequence[Sample], runs: Sequence[Run], labels: Sequence[str], clip: int) -> Json:
    """Everything that the browser reads; the arrays are described in browser.js, where they are read."""
    kinds = [(taxonomy.CLEAN, taxonomy.CLEAN, "")]
    named = (*(one.code for one in taxonomy.types("all")), *(row.type_code for row in rows))
    kinds += [(one.code, taxonomy.named(one.code), one.component or "") for one in taxonomy.among(named)]
    types = {code: place for place, (code, _, _) in enumerate(kinds)}
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    texts, tools = Pool(), Pool()
    samples = {one: place for place, one in enumerate(dict.fromkeys(row.clean_id for row in rows))}
    heads = {row.clean_id: (row.clean_id, row.source, row.category, row.output_format) for row in rows}
    table = []
    for row in rows:
        anchor = clean.get(row.clean_id, row)
        table.append(
            (
                samples[row.clean_id],
                types[row.type_code],
                [
                    (message.role, texts.add(message.content, _content(anchor, at)))
                    for at, message in enumerate(row.messages)
                ],
                [tools.add(dumps(tool), _tool(anchor, at)) for at, tool in enumerate(row.tools)],
                texts.add(gold_said(row), gold_said(anchor)),
                -1 if row.injected_error is None else texts.add(row.injected_error),
                list(row.flags),
                row.generator,
            )
        )
    places = {row.id: place for place, row in enumerate(rows)}
    hashes = {
        row: digest
        for run in runs
        for row, digest in zip(run.rows["id"].tolist(), run.rows["sample_hash"].tolist(), strict=True)
    }
    return {
        "types": kinds,
        "texts": texts.entries,
        "text_totals": texts.totals,
        "tools": tools.entries,
        "tool_totals": tools.totals,
        "samples": [heads[one] for one in samples],
        "rows": table,
        "runs": [
            {"label": label, "mode": run.mode, "answers": _answers(run, rows, places, hashes, clip)}
            for run, label in zip(runs, labels, strict=True)
        ],
        "reasons": failures.REASONS,
        "clip": clip,
    }


def _content(anchor: Sample, at: int) -> str | None:
    return anchor.messages[at].content if at < len(anchor.messages) else None


def _tool(anchor: Sample, at: int) -> str | None:
    return dumps(anchor.tools[at]) if at < len(anchor.tools) else None


def gold_said(row: Sample) -> str:
    """The accepted answers, one a line: each parameter with its accepted values."""
    answers = []
    for answer in row.golden_answers:
        calls = []
        for call in answer:
            said = ", ".join(f"{key}: {_accepted(values)}" for key, values in call.parameters.items())
            calls.append(f"{call.name}({said})")
        answers.append("; ".join(calls) or "no call")
    return "\n".join(answers)


def _accepted(values: Json) -> str:
    return " | ".join(dumps(value) for value in values) if isinstance(values, list) else dumps(values)


def _reason(row: Mapping[str, Any], sample: Sample) -> str:
    """The scorer's code for what is wrong; of own tools the sentence, with what the argument had to be."""
    code = str(row.get("reason") or "")
    if sample.source != sources.OWN or row["correct"] is not False:
        return code
    blank: dict[str, Any] = {"variant": None, "score": 0.0, "error_mode": None, "flags": []}
    verdict = record({"calls": "[]", **blank, **{k: v for k, v in row.items() if v is not None}}, Verdict)
    return code if unmet(verdict, sample) is None else failures.said(verdict, sample)


def _answers(
    run: Run, rows: Sequence[Sample], places: Mapping[str, int], hashes: Mapping[str, str], clip: int
) -> list[Json]:
    """One entry per prediction, in the order of the rows."""
    found = []
    scores = Path(run.path) / "scores.parquet"
    for row in parquet.read_rows([scores], _there(scores)):
        place = places.get(row["id"])
        if place is None or hashes.get(row["id"]) != row["sample_hash"]:
            continue
        verdict = -1 if row["status"] == "request_error" or row["correct"] is None else int(row["correct"])
        found.append(
            (
                place,
                row["repeat"],
                verdict,
                row.get("error_mode") or "",
                _reason(row, rows[place]),
                row["status"],
                row.get("flags") or [],
                row.get("finish_reason") or "",
                *cut(row.get("raw_output"), clip),
                *cut(calls_said(row.get("calls")), clip),
                *cut(row.get("first_output"), clip),
                *cut(row.get("tool_calls"), clip),
                str(row.get("error") or "")[:500],
            )
        )
    found.sort(key=lambda one: one[:2])
    return found


def _there(scores: Path) -> list[str]:
    import pyarrow.parquet as pq

    names = set(pq.read_schema(scores).names)
    return [name for name in _COLUMNS if name in names]


def calls_said(text: str | None) -> str:
    """The calls that were read from a reply, one a line: `name(key: value)`."""
    if not text:
        return ""
    try:
        calls = loads(text)
        return "\n".join(_said(call) for call in calls)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return text  # not as `rbtc score` writes them: shown as it stands


def _said(call: Mapping[str, Any]) -> str:
    parameters: Iterable[tuple[str, Json]] = call["parameters"].items()
    return f"{call['name']}({', '.join(f'{key}: {dumps(value)}' for key, value in parameters)})"
