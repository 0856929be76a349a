"""A door's journal as a run folder: what `rbtc report`, `gate` and `compare` read."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from robustbench_tc import taxonomy
from robustbench_tc.errors import UserError
from robustbench_tc.eval import growth, inputs, predictions, prompts, record, verdicts, wire
from robustbench_tc.eval.dialogue import Dialogue
from robustbench_tc.eval.inputs import Dataset, Selection
from robustbench_tc.eval.record import Answer, RunFolder, RunRecord, Settings
from robustbench_tc.eval.scripted import Scripted
from robustbench_tc.eval.speakers import status_of
from robustbench_tc.eval.wire import WireNames
from robustbench_tc.llm.errors import from_status
from robustbench_tc.schema import Json, Prediction, Sample

from .journal import LLM, MCP, Exchange, Opened, read
from .summary import as_replies

INCOMPLETE, REFUSED = "incomplete", "refused upstream"
"""Why an attempt has no answer: the agent asked no further, or its server gave none."""
_LEFT = 499


class Attempt(NamedTuple):
    """What one session did with a row."""

    row: Sample
    session: str
    repeat: int
    """The session's."""
    answers: tuple[Answer, ...]
    """As the harness would have had them; the last may be a failure."""

    @property
    def answered(self) -> bool:
        """Whether it can be judged."""
        return self.answers[-1].status != "request_error"

    def prediction(self, settings: Settings, sample_hash: str, repeat: int) -> Prediction:
        """For a run in which it is that repeat of the row."""
        answers = [msgspec.structs.replace(one, repeat=repeat) for one in self.answers]
        return predictions.combine(self.row, sample_hash, settings, *answers)


def attempts(exchanges: Iterable[Exchange], rows: Mapping[str, Sample], settings: Settings) -> list[Attempt]:
    """What each session did with each row that was put to its model, of the lines of this kind of door.

    Of conversations that a session begins again the first with an answer counts; without one, the first.
    """
    conversations: dict[tuple[str, str], list[list[Exchange]]] = {}
    for one in exchanges:
        if one.door == LLM and one.row is not None and one.row in rows:
            found = conversations.setdefault((one.session, one.row), [])
            if one.turn == 0 or not found:  # a conversation begins, or begins again
                found.append([])
            found[-1].append(one)
    made = []
    for (session, row_id), found in conversations.items():
        row, repeat = rows[row_id], found[0][0].repeat
        tries = [Attempt(row, session, repeat, _answers(row, lines, settings)) for lines in found]
        made.append(next((one for one in tries if one.answered), tries[0]))
    return made


def _answers(row: Sample, lines: Sequence[Exchange], settings: Settings) -> tuple[Answer, ...]:
    said: dict[int, Json] = {}
    failed: dict[int, Exchange] = {}
    for one in lines:
        for number, reply in enumerate(one.replies):
            said.setdefault(one.turn + number, reply)
        if one.status >= 400 or not one.replies:
            failed[one.turn + len(one.replies)] = one
    env = Scripted(row, settings)
    dialogue = Dialogue(env, settings, lines[0].repeat)
    while dialogue.ended is None:
        number = dialogue.number - 1
        if number in said:
            dialogue.reply(dialogue.noted(_answer(row, said[number], dialogue.base())))
        else:
            dialogue.reply(_failure(row, failed.get(number), dialogue.base()))
    return tuple(env.answers)


def _answer(row: Sample, reply: Json, base: Answer) -> Answer:
    return msgspec.structs.replace(
        base,
        text=reply.get("text"),
        tool_calls=wire.names_back(row.tools, reply.get("tool_calls")),
        finish_reason=reply.get("finish_reason"),
    )


def _failure(row: Sample, one: Exchange | None, base: Answer) -> Answer:
    """Why there is no reply. A refused length or registry is an answer, as in the harness."""
    base = msgspec.structs.replace(base, status="request_error")
    if one is None or one.status == _LEFT or one.status < 400:
        why = "the agent did not ask on after its call was answered"
        if one is not None:
            why = one.error or "the server's reply cannot be read"
        return msgspec.structs.replace(base, error=f"{INCOMPLETE}: {why}")
    body: Json = {"error": {"message": one.error or ""}}
    error = from_status(one.status, body, {}, with_tools=bool(row.tools), now=0.0)
    status = status_of(error, wire.first(row, "fc"))
    said = str(error) if status != "request_error" else f"{REFUSED}: {error.message}"
    return msgspec.structs.replace(base, status=status, error=said)


BACKEND = "door"


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
    exchanges, opened, listed, notes = _read(path)
    data = _dataset(path, opened, dataset)
    with path.open("rb") as file:
        first = file.readline()  # stays while lines are added: another journal does not take a run's place
    names = Counter(one.model for one in exchanges if one.row is not None and one.model)
    settings = Settings(
        fingerprint=data.fingerprint(),
        model=model or min(names, key=lambda name: (-names[name], name), default="agent"),
        mode="fc",
        backend=BACKEND,
        decoding={"journal": hashlib.sha256(first).hexdigest()[:16]},
        prompt_version=prompts.prompt_version(),
        selection=Selection(),
        repeat=1,
    )
    found = attempts(exchanges, data.by_id, settings)
    by_row: dict[str, list[Attempt]] = defaultdict(list)
    for one in sorted(found, key=lambda one: one.repeat):
        by_row[one.row.id].append(one)
    if not by_row:
        raise UserError(f"{path}: none of its rows is in {data.name}: name the right one with --dataset")
    repeats = repeat or min(map(len, by_row.values()))
    begun = [row for row in data.rows if row.id in by_row]
    settings = msgspec.structs.replace(
        settings, selection=_selection(data, begun), repeat=repeats, model=settings.model
    )
    hashes = data.hashes()
    made = [
        one.prediction(settings, hashes[row.id], number)
        for row in begun
        for number, one in enumerate(by_row[row.id][:repeats])
    ]
    folder = _folder(out or record.default_place(settings.model, "fc", "-door"), data, settings)
    folder.notes += [*notes, *_unseen(found, data, listed)]
    folder.record.expected = len(begun) * repeats
    folder.record.left_out = data.left_out | _left_out(data, exchanges, opened, by_row, repeats)
    folder.record.totals = predictions.totals(made)
    predictions.write(folder.predictions_path, made)
    folder.save()
    verdicts.score_file(folder, data)
    reasons = Counter(one.error or "" for one in made if one.status == "request_error")
    if absent := folder.record.expected - len(made):
        reasons[f"fewer than {repeats} attempts"] = absent
    return Scored(folder, len(made), dict(reasons.most_common()))


def _read(path: Path) -> tuple[list[Exchange], list[Opened], dict[str, set[str]], list[str]]:
    """What models, or MCP clients, did; what the doors carried out; session → names of tools that doors of
    the MCP stood before in it; notes. Raises UserError where no case is among it."""
    notes: list[str] = []
    lines = read(path, notes.append)
    ours = as_replies(lines)
    opened = [one.opened for one in lines if one.opened is not None]
    listed: dict[str, set[str]] = defaultdict(set)
    for one in lines:
        if one.lists is not None:
            listed[one.session].update(one.lists)
    if others := Counter(one.door for one in lines if one.door not in (LLM, MCP)):
        kinds = ", ".join(f"{count} of {kind[:40]}" for kind, count in sorted(others.items()))
        notes.append(f"{path}: lines of other doors are not scored: {kinds}")
    if any(one.row is not None for one in ours):
        return ours, opened, listed, notes
    instead = f"`rbtc proxy explain {path}` shows its calls, errors and recoveries"
    reasons = Counter(one.skipped for one in ours if one.skipped is not None)
    if any(one.bench is not None for one in opened) and reasons:
        said = ", ".join(f"{count} × {reason}" for reason, count in reasons.most_common())
        raise UserError(f"{path}: no request got a row of the plan's dataset ({said}); {instead}")
    raise UserError(
        f"{path} cannot be scored: its plan names no dataset (`bench:`), so nothing says which calls are "
        f"right; {instead}"
    )


def _unseen(attempts: Sequence[Attempt], data: Dataset, listed: Mapping[str, Collection[str]]) -> list[str]:
    """Names the servers, by their tools, whose calls no door of the MCP saw in sessions of which others were
    seen: an agent that called them is judged as if it had not."""
    clean = {row.clean_id: row.tools for row in data.rows if row.type_code == taxonomy.CLEAN}
    found: dict[str, set[str]] = defaultdict(set)
    for one in attempts:
        if one.session in listed:
            tools = clean.get(one.row.clean_id, ())
            names = WireNames(tools)
            for tool in tools:
                known = {tool.name, tool.name.rpartition(":")[2], names.wire(tool.name)}
                if not known & set(listed[one.session]):
                    found[tool.name].add(one.session)
    if not found:
        return []
    sessions = sorted(set().union(*found.values()))
    return [
        f"no door stood before the server of {', '.join(sorted(found))} in {len(sessions)} of the sessions "
        f"({sessions[0]} is one): calls of these tools were not seen"
    ]


def _dataset(path: Path, opened: Sequence[Opened], name: str | None) -> Dataset:
    """The plan's dataset, from where it lies now (`name`), or by its name beside the journal or here. Raises
    UserError for another one."""
    benches = [one.bench for one in opened if one.bench is not None]
    if name is None and (not benches or "\0" in benches[-1]):
        raise UserError(f"{path} does not say what its dataset is: name it with --dataset")
    if name is None:
        beside = path.resolve().parent / benches[-1]
        name = str(beside) if beside.is_dir() else benches[-1]
    try:
        data = inputs.load_samples(name)
    except UserError as error:
        raise UserError(f"{error}; {path} was made with it, name its place with --dataset") from None
    here = data.fingerprint()
    there = {one.fingerprint for one in opened if one.fingerprint is not None}
    if there - {here}:
        helps = "name the right one with --dataset"
        if len(there) > 1:
            helps = "its sessions are of several datasets, so it cannot be one run"
        raise UserError(
            f"{data.name} is another dataset than {path} was made with: fingerprint {here[:12]} here, "
            f"{', '.join(sorted(one[:12] for one in there))} there; {helps}"
        )
    return data


def _selection(data: Dataset, begun: Sequence[Sample]) -> Selection:
    """As few words as select these rows."""
    wanted = {row.id for row in begun}
    types = tuple(dict.fromkeys(row.type_code for row in begun))
    for one in (Selection(), Selection(types=types)):
        if {row.id for row in data.select(one)} == wanted:
            return one
    return Selection(ids=tuple(row.id for row in begun))


def _folder(place: Path, data: Dataset, settings: Settings) -> RunFolder:
    """The run's folder: a new one, or that of the same journal, whose files are written again."""
    record.check_place(place)
    if not (place / record.RECORD).exists():
        return record.start(place, data, settings, 0)
    there = record.open_run(place)
    if found := growth.differences(there.record.settings, settings, "selection", "repeat"):
        raise UserError(growth.refusal(place, there.record.settings, settings, found))
    there.claim(there.predictions_path, there.scores_path)
    return RunFolder(
        place,
        RunRecord(
            dataset=data.name,
            dataset_version=data.version,
            dataset_revision=data.revision,
            settings=settings,
            expected=0,
        ),
    )


def _left_out(
    data: Dataset,
    exchanges: Sequence[Exchange],
    opened: Sequence[Opened],
    by_row: dict[str, list[Attempt]],
    repeats: int,
) -> dict[str, int]:
    """What the run does not hold, by reason: rows, attempts and sessions."""
    types = {code for one in opened for code in one.types}
    types = types or {by_row[row_id][0].row.type_code for row_id in by_row}
    found = {"row that no session asked": sum(
        row.type_code in types and row.id not in by_row for row in data.rows
    )}  # fmt: skip
    beyond = sum(max(0, len(tries) - repeats) for tries in by_row.values())
    found[f"attempt beyond the {repeats} of each row"] = beyond
    with_row = {one.session for one in exchanges if one.row is not None}
    skipped = {one.session: one.skipped for one in exchanges if one.session not in with_row and one.skipped}
    for reason, count in Counter(skipped.values()).most_common():
        found[f"session without its row: {reason}"] = count
    return {reason: count for reason, count in found.items() if count}
