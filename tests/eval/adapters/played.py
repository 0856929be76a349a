"""The same random live episodes (`episodes`) through our own loop and other harnesses: what each says."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from robustbench_tc import llm, schema
from robustbench_tc.eval.adapters.rows import Rows
from robustbench_tc.eval.dialogue import Dialogue
from robustbench_tc.eval.inputs import load_live
from robustbench_tc.eval.live import inputs, score
from robustbench_tc.eval.record import Answer
from robustbench_tc.eval.wire import Ask
from robustbench_tc.worlds.host import Worlds
from tests.conftest import ROOT

from ...loopback import Fault, LoopbackServer
from ..live.playing import acted
from .episodes import Played, completion
from .harnesses import inspect, run, samples

Record = dict[str, Any]
VERIFIERS = ROOT / "eval/adapters/verifiers"

COLUMNS = ("success", "information", "ended", "steps", "met", "recovered", "silent_failure", "told")
"""What is compared beside the reward, which is `success`."""


class Said:
    """A speaker that replies as an episode has it."""

    def __init__(self, played: Played) -> None:
        self._played = played

    async def reply(self, dialogue: Dialogue, ask: Ask, base: Answer) -> Answer:
        one = self._played.reply(base.number - 1)
        calls = [
            {"id": f"call_{base.number}_{at}", "name": call.name, "arguments": schema.dumps(call.parameters)}
            for at, call in enumerate(one.calls)
        ]
        return msgspec.structs.replace(base, text=one.text, tool_calls=calls or None)


def by_us(dataset: Path, played: Sequence[Played], place: Path) -> list[Record]:
    """As `rbtc eval` plays and scores them."""
    data = load_live(str(dataset))
    rows = {row.id: row for row in data.rows}
    settings = Rows(str(dataset)).settings
    types = inputs.world_types(data.rows)

    async def run() -> list[Record]:
        found = []
        async with Worlds() as worlds:
            with llm.Store(place / "journal.jsonl") as journal:
                for repeat, one in enumerate(played):
                    row = rows[one.row]
                    speaker, world = Said(one), types[row.world]
                    found.append(await acted(row, speaker, settings, journal, world, worlds, repeat))
            return msgspec.to_builtins(await score.score_episodes(found, rows, worlds))  # type: ignore[no-any-return]

    return asyncio.run(run())


@contextmanager
def serving(rows: Sequence[schema.LiveRow], played: Sequence[Played]) -> Iterator[str]:
    """An address that plays the episodes one after the other: a request without a reply of ours in it begins
    the next one, which has to be of the row that is due."""
    by_id = {row.id: row for row in rows}
    due = iter(played)
    now: list[Played] = []

    def chat(body: dict[str, Any]) -> Any:
        messages = body["messages"]
        said = sum(one["role"] == "assistant" for one in messages)
        if not said:
            now[:] = [next(due)]
        row = by_id[now[0].row]
        opening = next(one["content"] for one in messages if one["role"] == "user")
        if opening != row.turns[0].messages[0].content:
            return Fault(400, f"another row is due: {row.id}")
        return completion(now[0].reply(said), said + 1)

    with LoopbackServer(chat) as server:
        yield server.url


def rounds(played: Sequence[Played]) -> Iterator[list[Played]]:
    """Episodes in pieces in which no row stands twice."""
    piece: list[Played] = []
    for one in played:
        if any(other.row == one.row for other in piece):
            yield piece
            piece = []
        piece.append(one)
    if piece:
        yield piece


def through(
    ask: Callable[[Path, str, str], Iterable[Record]], dataset: Path, played: Sequence[Played], place: Path
) -> list[Record]:
    """What a harness says of each episode. `ask`: of rows that are served, what was said in a folder."""
    rows, found = load_live(str(dataset)).rows, []
    for number, piece in enumerate(rounds(played)):
        folder = place / f"{ask.__name__}-{number}"
        folder.mkdir(parents=True)
        with serving(rows, piece) as url:
            said = {one["id"]: one for one in ask(folder, url, ",".join(one.row for one in piece))}
        found += [said[one.row] for one in piece]
    return found


def by_inspect(dataset: Path, played: Sequence[Played], place: Path) -> list[Record]:
    """Through the task of inspect_ai, one sample at a time."""

    def inspected(folder: Path, url: str, ids: str) -> list[Record]:
        done = inspect(
            *("eval", "robustbench_tc/benchmark", "--model", "openai-api/rbtc/random"),
            *("-T", f"dataset={dataset}", "-T", f"ids={ids}"),
            *("--max-samples", "1", "--max-connections", "1", "--max-retries", "0"),
            *("--no-log-realtime", "--no-log-model-api"),
            place=folder,
            RBTC_BASE_URL=url,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [one["scores"]["verdict"]["metadata"]["verdict"] for one in samples(folder)[2]]

    return through(inspected, dataset, played, place)


def verifiers(name: str, *words: object, place: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program of verifiers' environment in `place`."""
    return run("verifiers", name, *words, place=place, drop="RBTC", OPENAI_API_KEY="none", HOME=str(place))


EVAL = ("--env.agent.runtime.type", "subprocess", "--no-push", "--no-rich", "--client.type", "eval")
"""What keeps `vf-eval` on this machine."""


def by_verifiers(dataset: Path, played: Sequence[Played], place: Path) -> list[Record]:
    """Through the taskset of verifiers, one rollout at a time."""

    def verified(folder: Path, url: str, ids: str) -> list[Record]:
        done = verifiers(
            *("vf-eval", "rbtc-rows", *EVAL, "--client.base-url", url, "-m", "random", "-c", 1),
            *("--client.api-key-var", "OPENAI_API_KEY", "-o", "out"),
            *("--env.taskset.dataset", dataset, "--env.taskset.ids", ids),
            place=folder,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [record for _, _, record in traces(folder)]

    return through(verified, dataset, played, place)


def traces(folder: Path) -> list[tuple[str, float, Record]]:
    """Of a run of `vf-eval`: row id, reward, and what our scorer said."""
    [path] = folder.glob("out/*/traces.jsonl")
    found = []
    for line in path.read_text().splitlines():
        episode: schema.Json = json.loads(line)
        [trace] = episode["traces"]
        [reward] = [one["score"] for one in trace["rewards"].values()]
        found.append((episode["task"]["data"]["id"], reward, trace["info"]["robustbench_tc"]["record"]))
    return found


def same_course(record: Record) -> bool:
    """Whether training's loop plays an episode the same: there nobody is told to decide, a report of the
    failure ends nothing, a turn has no most steps, and nothing that was undone counts as right."""
    ours_alone = (record["asked"], record["undone"], record["gave_up"])
    return record["ended"] == "done" and not any(ours_alone)
