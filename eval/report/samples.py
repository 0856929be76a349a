"""What a page holds of the runs themselves, bounded: rows and replies in its browser, episodes step by step.

The browser's data hold each shared part once, compressed into base64. Rows of one sample lie together, so
that the compressor sees what they share. Nothing of it is markup: base64 has no character that ends a script
element, and `browser.js` puts every text in as text. Where a page cannot hold every episode, wrong and
faulted ones come first, and it says how many it left out.
"""

import base64
import hashlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.builders import plain
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs
from robustbench_tc.eval.data import order as order_of
from robustbench_tc.eval.stats import failures
from robustbench_tc.eval.stats.failures import Judged
from robustbench_tc.eval.stats.runs import Run
from robustbench_tc.eval.stats.values import codes_of
from robustbench_tc.safe_text import safe
from robustbench_tc.schema import Call, Episode, Json, Sample, Verdict, dumps

from ..live.episodes import check_all, read_episodes
from ..live.score import LiveScore
from ..live.show import Shown, replay, short
from ..record import open_run
from ..verdicts import live_data_of

BUDGET = 4_000_000
"""Characters that the embedded rows may take: the whole page stays below 5 MB."""

CLIPS = (8_000, 4_000, 2_000, 1_000, 500, 250)
"""Characters kept of a reply: the most with which the rows fit the budget."""

MOST_ROWS = 12_000
"""Rows embedded; of a larger dataset whole samples, in proportion to the sources."""


ROW_TEXT = 20_000
"""Characters kept of a text of a row, and of a golden answer."""


class Cut(NamedTuple):
    """A text as it is embedded."""

    text: str
    total: int
    """Its length in characters where it was cut, else 0."""


def cut(text: str, most: int) -> Cut:
    """The first `most` characters."""
    return Cut(text, 0) if len(text) <= most else Cut(text[:most], len(text))


class Pool(dict[Cut, int]):
    """Texts by number, each once."""

    def add(self, text: str) -> int:
        """The number of `text`."""
        return self.setdefault(cut(text, ROW_TEXT), len(self))

    @property
    def totals(self) -> dict[str, int]:
        """Number → characters of a text that was cut."""
        return {str(place): one.total for one, place in self.items() if one.total}


CASE_TEXT = 700
"""Characters of a text that a case shows; the browser of rows has it whole."""


class Case(msgspec.Struct, frozen=True):
    """A lost sample."""

    component: str
    type_code: str
    row: str
    """The id of the perturbed row."""
    request: Cut
    sides: tuple[tuple[tuple[str, Cut], ...], tuple[tuple[str, Cut], ...]]
    """The clean answer and the perturbed one: what was replied, gold and verdict, by name."""

    @property
    def length(self) -> tuple[int, str]:
        """How much there is to read; of cases with as much the first id."""
        texts = [self.request, *(text for side in self.sides for _, text in side)]
        return sum(text.total or len(text.text) for text in texts), self.row


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
    episodes: dict[str, tuple[Shown, ...]] = {}
    """Label of a live run → its episodes, step by step."""


def embed_live(
    runs: Sequence[Run],
    labels: Sequence[str],
    dataset: str | None = None,
    worlds: Sequence[str] = (),
    world_python: str | None = None,
) -> Embedded:
    """The episodes of live runs, replayed without the model.

    Raises UserError for a dataset or a world that is not at hand, and for episodes that were edited.
    """
    most, notes, drawn = MOST_EPISODES // len(runs), [], {}
    for run, label in zip(runs, labels, strict=True):
        folder = open_run(Path(run.path))
        data = live_data_of(folder, dataset)
        check_all(folder, data.by_id)
        episodes = [one for one in read_episodes(folder.path) if one.ended != "request_error"]
        drawn[label] = tuple(replay(chosen(episodes, run.live, most), data, worlds, world_python))
        if left_out := len(episodes) - len(drawn[label]):
            notes.append(f"{left_out} episodes of {label} are left out: wrong and faulted ones come first.")
    return Embedded(notes=tuple(notes), episodes=drawn)


def embed(runs: Sequence[Run], labels: Sequence[str], dataset: str | Path | None = None) -> Embedded:
    """The rows that the runs were asked, with their replies. Never raises for a dataset that is not there:
    the notes say so. The same texts give the same JSON; its compressed form may differ between versions of
    zlib.
    """
    rows, why = _rows(runs, dataset)
    if not rows:
        return Embedded(notes=(why,))
    notes = [why] if why else []
    every, kept = len(rows), _spread(rows, MOST_ROWS)
    judged = {label: failures.read_judged(Path(run.path)) for run, label in zip(runs, labels, strict=True)}
    while True:
        for clip in CLIPS:
            text = packed(_data(kept, judged, clip))
            if len(text) <= BUDGET:
                break
        fewer = _spread(kept, len(kept) // 2)
        if len(text) <= BUDGET or len(fewer) == len(kept):  # one sample stays, whatever it holds
            break
        kept = fewer
    if len(kept) < every:
        notes.append(
            f"The page has {len(kept)} of {every} rows: whole samples, in proportion to the sources."
        )
    cases = {
        label: of
        for label, found in judged.items()
        if any(one.prediction.raw_output or one.prediction.tool_calls for one in found)
        and (of := lost(found, kept))
    }
    return Embedded(text, tuple(notes), len(kept), clip, cases)


def packed(value: Json) -> str:
    """Raw deflate of the JSON text in base64, which `embedded` in page.js reads."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return base64.b64encode(squeeze.compress(msgspec.json.encode(value)) + squeeze.flush()).decode()


def _rows(runs: Sequence[Run], named: str | Path | None) -> tuple[list[Sample], str]:
    """The rows that the runs were asked, samples together, and a line about those that are not there."""
    place = Path(named or runs[0].record.dataset)
    if not str(named or runs[0].record.dataset) or not place.is_dir():
        short = place.name or "unnamed"
        return [], f"The dataset folder of these runs ({short}) is not on this machine: --dataset names one."
    try:
        dataset = inputs.load_samples(str(place))
    except (UserError, ValueError, LookupError, TypeError, OSError) as error:  # some of them Arrow's
        said = (str(error).splitlines() or ["damaged"])[0][:300].replace(str(place.resolve()), place.name)
        return [], f"The dataset cannot be read: {said.replace(str(place), place.name)}"
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
    why = f"{left} of {len(asked)} rows of these runs have other texts in {place.name}, or none."
    return rows, why if left else ""


def _spread(rows: Sequence[Sample], most: int) -> list[Sample]:
    """Whole samples, of every source its share, until `most` rows are there (one sample at least)."""
    sizes, order = Counter(row.clean_id for row in rows), order_of(rows)
    ends = accumulate(sizes[one] for one in order)
    kept = {one for one, end in zip(order, ends, strict=True) if end <= most or one == order[0]}
    return [row for row in rows if row.clean_id in kept]


# --- the tables ---------------------------------------------------------------------------------------


def _data(rows: Sequence[Sample], judged: Mapping[str, Sequence[Judged]], clip: int) -> Json:
    """Everything that the browser reads; the arrays are described in browser.js, where they are read."""
    kinds = [(taxonomy.CLEAN, taxonomy.CLEAN, "")]
    named = (*(one.code for one in taxonomy.types("all")), *(row.type_code for row in rows))
    kinds += [(one.code, taxonomy.named(one.code), one.component or "") for one in taxonomy.among(named)]
    types = {code: place for place, (code, _, _) in enumerate(kinds)}
    texts, tools = Pool(), Pool()
    samples = {one: place for place, one in enumerate(dict.fromkeys(row.clean_id for row in rows))}
    heads = {row.clean_id: (row.clean_id, row.source, row.category, row.output_format) for row in rows}
    table = [
        (
            samples[row.clean_id],
            types[row.type_code],
            [(message.role, texts.add(message.content)) for message in row.messages],
            [tools.add(dumps(tool)) for tool in row.tools],
            # the accepted answers, one a line: each parameter with its accepted values
            texts.add("\n".join(calls_said(one, _accepted) or "no call" for one in row.golden_answers)),
            -1 if row.injected_error is None else texts.add(row.injected_error),
            list(row.flags),
            row.generator,
        )
        for row in rows
    ]
    places = {row.id: (place, row) for place, row in enumerate(rows)}
    return {
        "types": kinds,
        "texts": [one.text for one in texts],
        "text_totals": texts.totals,
        "tools": [one.text for one in tools],
        "tool_totals": tools.totals,
        "samples": [heads[one] for one in samples],
        "rows": table,
        "runs": [
            {
                "label": label,
                "mode": found[0].prediction.mode,
                "answers": sorted(
                    (
                        _answer(one, *places[one.prediction.id], clip)
                        for one in found
                        if one.prediction.id in places
                    ),
                    key=lambda one: one[:2],
                ),
            }
            for label, found in judged.items()
        ],
        "clip": clip,
    }


def _accepted(values: Json) -> str:
    return " | ".join(map(dumps, values)) if isinstance(values, list) else dumps(values)


def calls_said(calls: Iterable[Call], spelled: Callable[[Json], str] = dumps) -> str:
    """`name(key: value); …`"""
    return "; ".join(
        f"{call.name}({', '.join(f'{key}: {spelled(value)}' for key, value in call.parameters.items())})"
        for call in calls
    )


_NO_VERDICT = Verdict(calls=(), variant=None, score=0.0, correct=False, reason=None, error_mode=None)


def _answer(one: Judged, place: int, row: Sample, clip: int) -> tuple[Any, ...]:
    """A prediction: what was replied, what was read from it, what is wrong."""
    said, verdict = one.prediction, one.verdict or _NO_VERDICT
    return (
        place,
        said.repeat,
        int(verdict.correct) if one.verdict else -1,
        verdict.error_mode or "",
        failures.reason_text(verdict, row),
        said.status,
        list(verdict.flags),
        said.finish_reason or "",
        *cut(said.raw_output or "", clip),
        *cut(calls_said(verdict.calls), clip),
        *cut(said.first_output or "", clip),
        *cut(dumps(said.tool_calls) if said.tool_calls else "", clip),
        (said.error or "")[:500],
    )


def lost(judged: Sequence[Judged], rows: Sequence[Sample]) -> tuple[Case, ...]:
    """Of each component the shortest sample that a run lost, of the core type that lost the most."""
    samples = {row.id: row for row in rows}
    asked = {
        one.prediction.id: one
        for one in judged
        if one.prediction.repeat == 0 and one.verdict is not None and one.prediction.id in samples
    }
    pairs = defaultdict(list)
    for one in asked.values():
        clean = asked.get(f"{one.prediction.clean_id}::{taxonomy.CLEAN}")
        if clean is not None and clean.word == "right" and one.word == "wrong":
            pairs[one.prediction.type_code].append((clean, one))
    found = []
    for component in taxonomy.COMPONENTS:
        if of := [pairs[code] for code in pairs if code in codes_of(component)]:
            cases = (_case(samples, *pair) for pair in max(of, key=len))
            found.append(min(cases, key=lambda case: case.length))
    return tuple(found)


def _case(samples: dict[str, Sample], clean: Judged, perturbed: Judged) -> Case:
    def fields(judged: Judged) -> tuple[tuple[str, Cut], ...]:
        """Characters that are not seen but obeyed are shown by their codes."""
        found = failures.fields(judged, samples[judged.prediction.id])
        return tuple((name, cut(safe(text), CASE_TEXT)) for name, text in found)

    row = samples[perturbed.prediction.id]
    return Case(
        component=str(row.component),
        type_code=row.type_code,
        row=row.id,
        request=cut(safe(plain.query(row.messages, row.golden_answers)), CASE_TEXT),
        sides=(fields(clean), fields(perturbed)),
    )


# --- episodes -----------------------------------------------------------------------------------------

MOST_EPISODES = 400
"""Episodes that are drawn step by step, over all runs."""

LONGEST = 1_500
"""Characters that are shown of a text of the model's or of a result."""


def chosen(episodes: Sequence[Episode], scores: Sequence[LiveScore], most: int) -> list[Episode]:
    """The episodes that the page draws, in their order: where it cannot hold all, wrong ones come first, then
    faulted ones."""
    right = {(one.id, one.repeat): one.success is True for one in scores}

    def key(one: Episode) -> tuple[bool, bool, str, int]:
        return right.get((one.id, one.repeat), False), one.type_code == "clean", one.id, one.repeat

    kept = {(one.id, one.repeat) for one in sorted(episodes, key=key)[:most]}
    return [one for one in episodes if (one.id, one.repeat) in kept]


def outcome(shown: Shown) -> str:
    """One word for how an episode ended, which is also the class of its mark."""
    score = shown.scores
    if score.success is None:
        return "unscored"
    if score.success:
        return "right"
    return "silent" if score.silent_failure else "wrong"


def anchor(shown: Shown) -> str:
    """An id for the address of an episode: row ids may hold anything."""
    named = f"{shown.model} {shown.mode} {shown.id} {shown.repeat}"
    return "e" + hashlib.sha256(named.encode()).hexdigest()[:12]


def clip(value: Json) -> str:
    """The beginning of a text, or of a value as JSON."""
    return short(value, LONGEST)
