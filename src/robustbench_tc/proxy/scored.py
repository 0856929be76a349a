"""A door's journal as a run folder: what `rbtc report`, `gate` and `compare` read.

And a program of the user's, run once for each row behind the LLM door, for frameworks that own their loop.
Its request is the clean one, on standard input, as `--command` gives it; the door makes the row of it on the
way to the model. OPENAI_BASE_URL and ANTHROPIC_BASE_URL are in its environment, the verdicts in the
journal.
"""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from robustbench_tc import seeding, taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import inputs, predictions, prompts, record, verdicts, wire
from robustbench_tc.eval.callables import command
from robustbench_tc.eval.callables.agent import task_of
from robustbench_tc.eval.callables.invocation import Invocation
from robustbench_tc.eval.callables.task import Failed
from robustbench_tc.eval.data import Selection
from robustbench_tc.eval.dialogue import Dialogue
from robustbench_tc.eval.inputs import Dataset
from robustbench_tc.eval.record import Answer, RunFolder, Settings
from robustbench_tc.eval.scripted import Scripted
from robustbench_tc.eval.speakers import status_of
from robustbench_tc.io.numbers import counts
from robustbench_tc.llm.errors import from_status
from robustbench_tc.llm.wire_names import safe_name
from robustbench_tc.option import Tell
from robustbench_tc.schema import Json, Sample
from robustbench_tc.shown import Line, Part

from .journal import LEFT, LLM, Exchange, Opened, read_exchanges
from .plan import Session
from .summary import as_replies

INCOMPLETE, REFUSED = "incomplete", "refused upstream"
"""Why an attempt has no answer: the agent asked no further, or its server gave none."""


class Attempt(NamedTuple):
    """What one session did with a row."""

    row: Sample
    session: str
    repeat: int
    """The session's."""
    answers: tuple[Answer, ...]
    """As the harness would have had them; the last may be a failure."""


def attempts(exchanges: Iterable[Exchange], rows: Mapping[str, Sample], settings: Settings) -> list[Attempt]:
    """What each session did with each row that was put to its model.

    Of conversations that a session begins again the first with an answer counts; without one, the first.
    """
    conversations: dict[tuple[str, str], list[list[Exchange]]] = {}
    for one in exchanges:
        if one.row is not None and one.row in rows:
            found = conversations.setdefault((one.session, one.row), [])
            if one.turn == 0 or not found:  # a conversation begins, or begins again
                found.append([])
            found[-1].append(one)
    made = []
    for (session, row_id), found in conversations.items():
        row, repeat = rows[row_id], found[0][0].repeat
        tries = [Attempt(row, session, repeat, _answers(row, lines, settings)) for lines in found]
        answered = (one for one in tries if one.answers[-1].status != "request_error")
        made.append(next(answered, tries[0]))
    return made


def _answers(row: Sample, lines: Sequence[Exchange], settings: Settings) -> tuple[Answer, ...]:
    """The replies of one conversation as the harness would have had them, until one counts or is missing."""
    said: dict[int, Json] = {}
    failed: dict[int, Exchange] = {}
    for line in lines:
        for number, reply in enumerate(line.replies, line.turn + 1):
            said.setdefault(number, reply)
        if line.status >= 400 or not line.replies:
            failed[line.turn + len(line.replies) + 1] = line
    env = Scripted(row, settings)
    dialogue = Dialogue(env, settings, lines[0].repeat)
    while dialogue.ended is None:
        number = dialogue.number
        if number in said:
            dialogue.reply(dialogue.noted(_answer(row, said[number], dialogue.base())))
        else:
            dialogue.reply(_failure(row, failed.get(number), dialogue.base()))
    return tuple(env.answers)


def _answer(row: Sample, reply: Json, base: Answer) -> Answer:
    calls = wire.names_back(row.tools, reply.get("tool_calls"))
    return replace(base, text=reply.get("text"), tool_calls=calls, finish_reason=reply.get("finish_reason"))


def _failure(row: Sample, line: Exchange | None, base: Answer) -> Answer:
    """Why there is no reply. A refused length or registry is an answer, as in the harness."""
    base = replace(base, status="request_error")
    if line is None:
        return replace(base, error=f"{INCOMPLETE}: the agent did not ask on after its call was answered")
    if line.status == LEFT or line.status < 400:
        return replace(base, error=f"{INCOMPLETE}: {line.error or 'the reply cannot be read'}")
    error = from_status(
        line.status, {"error": {"message": line.error or ""}}, {}, with_tools=bool(row.tools), now=0.0
    )
    status = status_of(error, wire.first(row, "fc"))
    said = str(error) if status != "request_error" else f"{REFUSED}: {error.message}"
    return replace(base, status=status, error=said)


class Scored(NamedTuple):
    """A run folder that was made of a journal."""

    folder: RunFolder
    predictions: int
    failures: dict[str, int]
    """Rows without an answer, by reason."""


def score(
    path: Path,
    *,
    dataset: str | None = None,
    model: str | None = None,
    repeat: int | None = None,
    out: Path | None = None,
) -> Scored:
    """Writes predictions and verdicts of the journal's sessions into a run folder.

    `dataset`: where the plan's dataset lies now. `model`: the run's name, by default what most requests
    name. `repeat`: how many attempts at each row count, by default as many as every row has. A folder that
    was made of the same journal before is written again.

    Raises UserError for a journal without cases, or of another dataset.
    """
    if out is not None:
        record.check_place(out)
    notes: list[str] = []
    lines = read_exchanges(path, notes.append)
    exchanges = as_replies(lines)
    if not any(one.row is not None for one in exchanges):
        reasons = counts(Counter(one.skipped for one in exchanges if one.skipped is not None))
        why = "its plan names no dataset (`bench:`), so nothing says which calls are right"
        if reasons:
            why = f"no request got a row of the plan's dataset ({reasons})"
        raise UserError(
            f"{path} cannot be scored: {why}; `rbtc summary {path}` shows its calls, errors and recoveries"
        )
    opened = [one.opened for one in lines if one.opened is not None]
    data = _dataset(path, opened, dataset)
    with path.open("rb") as file:
        first = file.readline()  # stays while lines are added: another journal does not take a run's place
    names = Counter(one.model for one in exchanges if one.row is not None and one.model)
    settings = Settings(
        fingerprint=data.fingerprint(),
        model=model or min(names, key=lambda name: (-names[name], name), default="agent"),
        mode="fc",
        backend="door",
        decoding={"journal": hashlib.sha256(first).hexdigest()[:16]},
        prompt_version=prompts.prompt_version(),
        repeat=1,
    )
    by_row: dict[str, list[Attempt]] = defaultdict(list)
    for one in sorted(attempts(exchanges, data.by_id, settings), key=lambda one: one.repeat):
        by_row[one.row.id].append(one)
    if not by_row:
        raise UserError(f"{path}: none of its rows is in {data.name}: name the right one with --dataset")
    repeats = repeat or min(map(len, by_row.values()))
    begun = [row for row in data.rows if row.id in by_row]
    defend = next((one.defend for one in opened if one.defend), ())
    settings = replace(settings, selection=_selection(data, begun), repeat=repeats, defend=defend)
    made = [
        predictions.combine(
            row, data.hashes[row.id], settings, *(replace(answer, repeat=number) for answer in one.answers)
        )
        for row in begun
        for number, one in enumerate(by_row[row.id][:repeats])
    ]
    place, expected = out or record.default_place(settings.model, "fc", "-door"), len(begun) * repeats
    folder = record.start(place, data, settings, expected)
    folder.notes += [*notes, *_unseen(by_row, data, lines)]
    folder.record.settings, folder.record.expected = settings, expected
    folder.record.left_out = data.left_out | _left_out(data, exchanges, opened, by_row, repeats)
    predictions.leave(folder, made)
    verdicts.score_file(folder, data)
    failures = Counter(one.error or "" for one in made if one.status == "request_error")
    failures[f"fewer than {repeats} attempts"] = expected - len(made)
    return Scored(folder, len(made), dict((+failures).most_common()))


def _unseen(by_row: Mapping[str, Sequence[Attempt]], data: Dataset, lines: Sequence[Exchange]) -> list[str]:
    """Names the servers, by their tools, whose calls no door of the MCP saw in sessions of which others were
    seen: an agent that called them is judged as if it had not."""
    listed: dict[str, set[str]] = defaultdict(set)
    for line in lines:
        listed[line.session].update(line.lists or ())
    for session in {line.session for line in lines if line.door == LLM}:
        listed.pop(session, None)  # the model's door sees every call
    clean = {row.clean_id: row.tools for row in data.rows if row.type_code == taxonomy.CLEAN}
    unseen = {
        (tool.name, one.session)
        for tries in by_row.values()
        for one in tries
        for tool in clean.get(one.row.clean_id, ())
        if (there := listed[one.session])
        and there.isdisjoint((tool.name, tool.name.rpartition(":")[2], safe_name(tool.name)))
    }
    if not unseen:
        return []
    tools, sessions = (sorted(set(names)) for names in zip(*unseen, strict=True))
    return [
        f"no door stood before the server of {', '.join(tools)} in {len(sessions)} of the sessions "
        f"({sessions[0]} is one): calls of these tools were not seen"
    ]


def _dataset(path: Path, opened: Sequence[Opened], name: str | None) -> Dataset:
    """The plan's dataset, from where it lies now (`name`), or by its name beside the journal or here. Raises
    UserError for another one."""
    benches = [one.bench for one in opened if one.bench is not None]
    if name is None and not benches:
        raise UserError(f"{path} does not name its dataset: give it with --dataset")
    if name is None:
        beside = path.resolve().parent / benches[-1]
        name = str(beside) if beside.is_dir() else benches[-1]
    try:
        data = inputs.load_samples(name)
    except UserError as error:
        raise UserError(f"{error}; {path} was made with it, give its location with --dataset") from None
    there = {one.fingerprint for one in opened if one.fingerprint is not None}
    if there - {data.fingerprint()}:
        raise UserError(
            f"{data.name} is another dataset than {path} was made with ({', '.join(sorted(there))}): name "
            "the right one with --dataset; sessions of several datasets cannot be one run"
        )
    return data


def _selection(data: Dataset, begun: Sequence[Sample]) -> Selection:
    """As few words as select these rows."""
    types, ids = dict.fromkeys(row.type_code for row in begun), tuple(row.id for row in begun)
    shortest = (Selection(), Selection(types=tuple(types)), Selection(ids=ids))
    return next(one for one in shortest if [row.id for row in data.select(one)] == [*ids])


def _left_out(
    data: Dataset,
    exchanges: Sequence[Exchange],
    opened: Sequence[Opened],
    by_row: Mapping[str, Sequence[Attempt]],
    repeats: int,
) -> dict[str, int]:
    """What the run does not hold, by reason: rows, attempts and sessions."""
    asked = {tries[0].row.type_code for tries in by_row.values()}
    types = {code for one in opened for code in one.types} or asked
    with_row = {one.session for one in exchanges if one.row is not None}
    skipped = {one.session: one.skipped for one in exchanges if one.session not in with_row and one.skipped}
    found = Counter(f"session without its row: {reason}" for reason in skipped.values())
    found["row that no session asked"] = sum(
        row.type_code in types and row.id not in by_row for row in data.rows
    )
    beyond = sum(max(0, len(tries) - repeats) for tries in by_row.values())
    found[f"attempt beyond the {repeats} of each row"] = beyond
    return dict(+found)


class Ran(NamedTuple):
    """What became of the programs, and the run that was made of the journal."""

    there: int
    """Sessions that the journal had already."""
    failures: dict[str, int]
    """Why programs ended badly: the row counts by what the journal has of it."""
    scored: Scored

    def shown(self) -> Iterator[Part]:
        """What went wrong, and where the run is."""
        for reason, count in (*self.failures.items(), *self.scored.failures.items()):
            yield Line(f"{count} × {reason}", aside=True)
        if self.there:
            yield Line(f"{self.there} sessions were in the journal already", aside=True)
        yield (
            f"{self.scored.predictions} predictions in {self.scored.folder.path}; `rbtc report` and "
            "`rbtc gate` read it"
        )


async def drive(
    words: Sequence[str],
    rows: Sequence[Sample],
    types: Sequence[str],
    url: str,
    *,
    there: Collection[str],
    at_once: int,
    timeout_s: float,
    progress: Tell,
) -> tuple[int, dict[str, int]]:
    """Runs the program for each row of these types whose session is not `there`.

    `url`: the door's, up to `/v1`. Returns how many sessions were there, and why programs ended badly.
    """
    slots, failures, done = asyncio.Semaphore(at_once), Counter[str](), 0
    clean = {row.clean_id: row for row in rows if row.type_code == taxonomy.CLEAN}
    wanted = [
        (Session(row.clean_id, types.index(row.type_code)), clean[row.clean_id])
        for row in rows
        if row.type_code in types and row.clean_id in clean
    ]
    left = [(session, row) for session, row in wanted if str(session) not in there]

    async def one(session: Session, row: Sample) -> None:
        nonlocal done
        async with slots:
            base = f"{url.removesuffix('/v1')}/s/{quote(str(session), safe='')}/v1"
            # The clean request: the program has tools of its own, no call comes back to the harness.
            task = task_of(
                row,
                wire.first(row, "fc"),
                Invocation(row, 1, {}),
                session=f"{seeding.rng(0, 'door', 'session', str(session)).getrandbits(64):016x}",
                seed=seeding.rng(0, "door", "seed", row.clean_id).getrandbits(31),
            )
            try:
                addresses = {"OPENAI_BASE_URL": base, "ANTHROPIC_BASE_URL": base.removesuffix("/v1")}
                await command.run(words, task, timeout_s, addresses)
            except TimeoutError:
                failures[f"it took longer than {timeout_s:g} s"] += 1
            except Failed as failed:
                failures[str(failed)] += 1
        done += 1
        progress(f"{done} of {len(left)} rows")

    async with asyncio.TaskGroup() as group:
        for session, row in left:
            group.create_task(one(session, row))
    return len(wanted) - len(left), dict(failures.most_common())
