"""Replies that an earlier reader reads otherwise, counted by what changed.

    make reread OLD=COMMIT [RELEASE=out/robustbench-tc] [RUNS="runs/a runs/b"]

Read are what every reference agent answers to the release's rows, the replies of `../shared` where it lies
beside the checkout, under every source, and those of the runs named. The earlier reader runs in a checkout of
its commit, in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
SHARED = HERE.parent / "shared"
CORPORA = ("vectors/replies.jsonl", "inputs/replies3.jsonl")
NOTHING = {"tool_calls": None, "finish_reason": None}


def read_lines(lines: Iterable[str]) -> Iterator[str]:
    """For each reply, a line of JSON, what the reader of this process finds: calls, form, flags."""
    from robustbench_tc.eval.parse import parse
    from robustbench_tc.schema import Tool

    for line in lines:
        reply = json.loads(line)
        tools = [
            Tool(name=tool["name"], description=tool.get("description"), parameters=tool["parameters"])
            for tool in reply.pop("tools")
        ]
        found = parse(reply.pop("text"), tools=tools, **reply)
        calls = [[call.name, call.parameters] for call in found.calls]
        yield json.dumps([calls, found.variant or "none", sorted(found.flags)])


def replies(release: Path, runs: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every reply, after the name of the place that it comes from."""
    import msgspec

    from robustbench_tc.eval import inputs, predictions, verdicts
    from robustbench_tc.eval.agents import AGENTS, AgentContext, reply
    from robustbench_tc.eval.prompts.calls import python_calls
    from robustbench_tc.eval.record import open_run
    from robustbench_tc.sources import names

    data = inputs.load_samples(str(release))
    anchors = inputs.anchors(data.rows)
    for name in AGENTS:
        for row in data.rows:
            said = reply(name, AgentContext(row, anchors[row.id], False))
            text = said if isinstance(said, str) else python_calls(said)
            tools = msgspec.to_builtins(row.tools)
            yield "reference agents", {"source": row.source, "tools": tools, "text": text, **NOTHING}
    for path in runs:
        folder = open_run(path)
        rows = {row.id: row for row in verdicts.dataset_of(folder).rows}
        for one in predictions.read(folder.answers_path):
            tools = msgspec.to_builtins(rows[one.id].tools)
            beside = {"tool_calls": one.tool_calls, "finish_reason": one.finish_reason}
            yield str(path), {"source": one.source, "tools": tools, "text": one.raw_output, **beside}
    for corpus in CORPORA:
        path = SHARED / corpus
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []
        for one in lines[1:]:
            for source in names():
                tools = lines[0]["tools"]
                yield corpus, {"source": source, "tools": tools, "text": one["text"], **NOTHING}


def change(before: Any, after: Any) -> str | None:
    """What is read otherwise, as one line; None where the calls are the same."""
    (old, old_form, old_flags), (new, new_form, new_flags) = before, after
    if old == new:
        return None
    what = "a call less" if len(new) < len(old) else "a call more" if len(new) > len(old) else "another call"
    gained = [f"+{flag}" for flag in new_flags if flag not in old_flags]
    lost = [f"-{flag}" for flag in old_flags if flag not in new_flags]
    return " ".join([f"{what}: {old_form} → {new_form}", *gained, *lost])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", help="the commit of the earlier reader")
    parser.add_argument("release", type=Path, help="a release folder")
    parser.add_argument("runs", type=Path, nargs="*", help="run folders")
    options = parser.parse_args()
    found = list(replies(options.release, options.runs))
    with tempfile.TemporaryDirectory() as scratch:
        asked, old = Path(scratch, "replies"), Path(scratch, "old")
        asked.write_text("".join(json.dumps(reply) + "\n" for _, reply in found), "utf-8")
        subprocess.run(
            ["git", "-C", HERE, "worktree", "add", "--detach", "-q", old, options.commit], check=True
        )
        try:
            readings = [_readings(tree, asked) for tree in (old, HERE)]
        finally:
            subprocess.run(["git", "-C", HERE, "worktree", "remove", "--force", old], check=True)
    read = Counter(origin for origin, _ in found)
    changes: dict[str, Counter[str]] = {origin: Counter() for origin in read}
    for (origin, _), before, after in zip(found, *readings, strict=True):
        if (line := change(before, after)) is not None:
            changes[origin][line] += 1
    for origin, counts in changes.items():
        sys.stdout.write(f"{origin}: {counts.total():,} of {read[origin]:,} replies are read otherwise\n")
        for line, count in counts.most_common():
            sys.stdout.write(f"{count:7,}  {line}\n")


def _readings(tree: Path, asked: Path) -> list[Any]:
    """What the reader of a checkout finds in every reply."""
    where = {**os.environ, "PYTHONPATH": str(tree / "src")}
    with asked.open("rb") as lines:
        command = [sys.executable, __file__, "--read"]
        done = subprocess.run(command, stdin=lines, capture_output=True, check=True, env=where)
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    if sys.argv[1:] == ["--read"]:
        sys.stdout.writelines(f"{line}\n" for line in read_lines(sys.stdin))
    else:
        main()
