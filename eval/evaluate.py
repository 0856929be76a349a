"""A dataset and whoever is asked in, a run folder with every answer and its verdict out; or, before anything
is asked or written, what that would take (`rbtc eval --dry-run`)."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from robustbench_tc.io import folders, parquet
from robustbench_tc.schema import MAX_STEPS, Json, LiveRow, Sample, dumps
from robustbench_tc.shown import Part
from robustbench_tc.worlds.handle import WorldType

from . import agents, growth, reasons, record, session, verdicts
from .data import Selection
from .defend.chain import budget
from .dialogue import Dialogue, begin
from .inputs import Dataset
from .journal import Lines, replay
from .live.inputs import LiveData, world_types
from .record import RunFolder, Settings
from .run import Progress
from .scripted import most_replies
from .speakers import body
from .who import Effort, Who

CHARACTERS = 4
"""Of a request, taken for one token."""

TURN = MAX_STEPS + 2
"""Replies in a turn of a live row at most: with calls, one that asks the user, and the last."""


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a session takes; of bounds the first is the least."""

    rows: int
    """Times repeats, without those that are answered."""
    requests: tuple[int, int]
    """The least where no call is made and equal requests are asked once."""
    prompt_tokens: tuple[int, int]
    """The most: as if every request was as long as a row's first one."""
    completion_tokens: int | None
    """At most; None where replies have no limit."""
    cost: tuple[float, float] | None
    """From the least prompts alone to the most of everything; None without prices, or a limit of replies."""
    first: Json
    """The body of the first request; None where nothing is left to ask."""

    def shown(self) -> Iterator[Part]:
        """The bounds, then the first request."""
        yield f"{self.rows:,} rows to ask, {_between(self.requests)} requests"
        tokens = _between(self.prompt_tokens)
        yield f"about {tokens} prompt tokens (a token for every {CHARACTERS} characters)"
        if self.completion_tokens is not None:
            yield f"at most {self.completion_tokens:,} completion tokens"
        if self.cost is not None:
            yield f"cost {self.cost[0]:.4g} to {self.cost[1]:.4g}"
        yield "nothing was asked and nothing written; the first request:"
        yield from msgspec.json.format(msgspec.json.encode(self.first), indent=1).decode().splitlines()


def _between(bounds: tuple[int, int]) -> str:
    return " to ".join(f"{one:,}" for one in dict.fromkeys(bounds))


@dataclass(kw_only=True)
class Evaluation:
    """A run before, while and after its rows are asked."""

    folder: RunFolder
    asked: Progress
    """How far this session is: rows times repeats, done, and those without an answer."""
    data: Dataset | LiveData = field(repr=False)
    who: Who = field(repr=False)
    selection: Selection
    kinds: Mapping[str, WorldType] = field(default_factory=dict, repr=False)
    """The worlds of live rows, by their names."""
    worlds: Sequence[str] = ()
    """Python files of the worlds of live rows that this package does not bring."""
    world_python: str | None = None
    unexpected: list[str] = field(default_factory=list)
    """Of a reference agent, once scored: ids whose verdict is not the known one."""

    @classmethod
    def begin(
        cls,
        data: Dataset | LiveData,
        who: Who,
        selection: Selection,
        *,
        repeat: int = 1,
        worlds: Sequence[str] = (),
        world_python: str | None = None,
        out: str | Path | None = None,
        fresh: bool = False,
        discard_changes: bool = False,
        reuse: str | Path | Sequence[str | Path] = (),
        dry: bool = False,
    ) -> Self:
        """The run of these rows, which goes on or grows where its folder is there; nothing is asked yet, and
        where it is `dry` nothing written.

        `fresh`: the run that is there is thrown away; `reuse`: runs of equal settings to take answers from.
        Raises UserError for a wrong selection or folder, and for a world that is not at hand.
        """
        rows, kinds = data.select(selection), {}
        if isinstance(data, LiveData):
            kinds = world_types(data.select(selection), worlds, world_python)
        settings = who.identity(data, growth.joined(data, (), selection)[0], repeat)
        usual = record.default_place(who.name, who.mode, who.suffix, live=isinstance(data, LiveData))
        path = usual if out is None else Path(out)
        others = [Path(one) for one in ([reuse] if isinstance(reuse, str | Path) else reuse)]
        session.check_reuse(others, settings, path)
        if fresh and not dry and os.path.lexists(path):
            record.open_run(path)  # says what it is instead
            folders.remove_dir(path, kind="run", discard_changes=discard_changes)
        folder = record.start(path, data, settings, len(rows) * repeat, dry=dry)
        if not dry:
            session.reuse(folder, data, selection, others)
        folder.notes += who.notes
        return cls(
            folder=folder,
            asked=Progress(len(rows) * folder.record.settings.repeat),
            data=data,
            who=who,
            selection=selection,
            kinds=kinds,
            worlds=worlds,
            world_python=world_python,
        )

    @property
    def agent(self) -> str | None:
        """The reference agent; None behind defences and for live rows: no verdict is known beforehand."""
        return None if self.who.chain or self.folder.record.live else self.who.agent

    @property
    def answered(self) -> int:
        """Answers that are on disk, those of earlier sessions included."""
        # An earlier session's are in the record before this session has counted them.
        return max(self._there, self.asked.done - self.asked.request_errors)

    @property
    def how_far(self) -> str:
        """A line for people."""
        folder, before = self.folder, self.folder.before
        taken_back = before is not None and folder.record.expected == before.expected
        tail = ", none of them new" if taken_back else ""
        return f"{folder.record.how_far(self.answered)} have their answers in {folder.path}{tail}"

    @property
    def _there(self) -> int:
        totals = self.folder.record.totals
        statuses = totals.get("status") or totals.get("ended") or {}
        return sum(count for status, count in statuses.items() if status != "request_error")

    def ask(
        self,
        effort: Effort,
        *,
        probe: bool = False,
        say: Callable[[str], None] = lambda line: None,
        progress: Callable[[Progress], None] = lambda state: None,
    ) -> None:
        """One session over the rows. A run that it was to grow stays as it was where it gets no new answer.

        `probe`: a server is asked five questions before the first row, once a run; `say` gets what fails.
        Raises UserError where it cannot go on; all answers are kept.
        """

        def moved(state: Progress) -> None:
            self.asked = state
            progress(state)

        folder, there = self.folder, self._there
        try:
            self.asked = session.run(
                folder,
                self.data,
                self.who.opening(self.data, effort),
                selection=self.selection,
                words=self.who.words,
                worlds=self.kinds,
                first=self.who.asked,
                ask_first=probe,
                say=say,
                progress=moved,
            )
        except BaseException:  # an interrupt too: what nobody answered is taken back
            if folder.before is not None and self._there <= there:
                session.take_back(folder, self.data)
            raise

    def dry_run(self) -> DryRun:
        """What `ask` would take. An agent in this process is asked the same."""
        folder, settings = self.folder, self.folder.record.settings
        there = Lines(folder.journal_path)
        todo = [
            begin(row, settings, repeat, words=self.who.words)
            for repeat in range(settings.repeat)
            for row in session.sample_by_sample(self.data.select(self.selection))
            if not replay(there, begin(row, settings, repeat))
        ]
        return planned(todo, settings, self.who.settings.price)

    def why_failed(self) -> list[str]:
        """Lines for people: why requests failed."""
        sessions = self.folder.record.sessions
        found = reasons.of_predictions(self.folder.answers_path)
        return [*reasons.lines(found, sessions[-1] if sessions else None)]

    def score(self) -> None:
        """Writes `scores.parquet`."""
        verdicts.score_data(self.folder, self.data, self.worlds, self.world_python)
        if self.agent is None or isinstance(self.data, LiveData):
            return
        rows, anchors = self.data.by_id, self.data.anchors()
        self.unexpected = [
            row["id"]
            for row in parquet.read_rows([self.folder.scores_path], ["id", "correct"])
            if row["correct"] is not agents.is_right(self.agent, rows[row["id"]], anchors[row["id"]])
        ]


def planned(
    dialogues: Sequence[Dialogue], settings: Settings, price: tuple[float, float] | None = None
) -> DryRun:
    """What asking these takes, none of which has begun."""
    bodies = [body(ask, settings) for one in dialogues if (ask := one.ask()) is not None]
    least: dict[str, tuple[int, int]] = {}
    most = long = 0
    for number, (one, said) in enumerate(zip(dialogues, bodies, strict=True)):
        text = dumps((one.repeat, said))
        fewest, replies = _replies(one.env.row)
        requests = replies * budget(one.env.chain)
        first = text if settings.shares else str(number)
        if first in least:
            requests -= 1  # asked for another row already
        least[first] = fewest, fewest * len(text)
        most, long = most + requests, long + requests * len(text)
    short = sum(characters for _, characters in least.values())
    limit = settings.decoding.get("max_tokens")
    completion = most * limit if isinstance(limit, int) else None
    cost = None
    if price is not None and completion is not None:
        asked_for, answered = price
        spent = long / CHARACTERS * asked_for + completion * answered
        cost = (short / CHARACTERS * asked_for / 1e6, spent / 1e6)
    return DryRun(
        rows=len(dialogues),
        requests=(sum(requests for requests, _ in least.values()), most),
        prompt_tokens=(short // CHARACTERS, long // CHARACTERS),
        completion_tokens=completion,
        cost=cost,
        first=next(iter(bodies), None),
    )


def _replies(row: Sample | LiveRow) -> tuple[int, int]:
    """How many count for a row, at least and at most."""
    if isinstance(row, LiveRow):
        return len(row.turns), len(row.turns) * TURN
    return 1, most_replies(row)
