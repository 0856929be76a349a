"""Run folders of the reference agents over a release, made in this process without a server."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from robustbench_tc import schema
from robustbench_tc.eval import predictions, prompts, record, wire
from robustbench_tc.eval.agent_server import Index, reply
from robustbench_tc.eval.inputs import Dataset, Selection
from robustbench_tc.eval.parse import parse
from robustbench_tc.llm import completion
from robustbench_tc.schema import Prediction, Sample


def settings(dataset: Dataset, model: str, mode: record.Mode = "prompt", repeat: int = 1) -> record.Settings:
    return record.Settings(
        fingerprint=dataset.fingerprint(),
        model=model,
        mode=mode,
        backend="openai",
        decoding={"temperature": 0.0, "max_tokens": 1024},
        prompt_version=prompts.prompt_version(),
        selection=Selection(),
        repeat=repeat,
    )


def answers(
    agent: str, dataset: Dataset, asked: record.Settings, rows: Sequence[Sample] | None = None
) -> list[Prediction]:
    """What the agent answers to every row: the two passes of a run, without HTTP."""
    index, hashes = Index(dataset.rows), dataset.hashes()

    def ask(row: Sample, request: wire.Ask, number: int) -> record.Answer:
        found = index.find(request.messages, request.tools)
        assert found is not None
        done = completion(schema.loads(schema.dumps(reply(agent, found, asked.model))))
        calls = wire.names_back(row.tools, done.tool_calls)
        parsed = parse(done.text, source=row.source, tools=row.tools, tool_calls=calls)
        return record.Answer(
            id=row.id,
            repeat=0,
            number=1 if number == 1 else 2,
            status="ok",
            text=done.text,
            tool_calls=calls,
            has_call=bool(parsed.calls),
        )

    out = []
    for row in dataset.rows if rows is None else rows:
        first = ask(row, wire.first(row, asked.mode), 1)
        second = None
        if row.injected_error is not None and first.has_call:
            second = ask(row, wire.second(row, asked.mode, first.text, first.tool_calls), 2)
        one = predictions.combine(row, hashes[row.id], asked, first, second)
        out += [msgspec.structs.replace(one, repeat=repeat) for repeat in range(asked.repeat)]
    return out


def run_folder(
    folder: Path,
    agent: str,
    dataset: Dataset,
    *,
    model: str | None = None,
    mode: record.Mode = "prompt",
    repeat: int = 1,
    found: Sequence[Prediction] | None = None,
) -> Path:
    """A finished run as `rbtc eval --no-score` leaves it."""
    asked = settings(dataset, model or f"agent-{agent}", mode, repeat)
    given = answers(agent, dataset, asked) if found is None else list(found)
    folder.mkdir(parents=True, exist_ok=True)
    made = record.RunFolder(
        folder,
        record.RunRecord(
            dataset=dataset.name,
            dataset_version=dataset.version,
            dataset_revision=None,
            settings=asked,
            expected=len(dataset.rows) * repeat,
            totals=predictions.totals(given),
        ),
    )
    made.save()
    predictions.write(made.predictions_path, given)
    return folder


def behind(run: Path, folder: Path, *chain: str) -> Path:
    """The run as if it had been made with `--defend`, asked in two sessions."""
    shutil.copytree(run, folder)
    said = json.loads((folder / "run.json").read_text())
    said["settings"]["defend"] = list(chain)
    session = {"started": "2026", "endpoint": "http://secret", "package_version": "1", "concurrency": 1}
    said["sessions"] = [session | {"requests": n, "retries": 1} for n in (1000, 71)]
    (folder / "run.json").write_text(json.dumps(said))
    return folder
