"""Runs that nobody was asked for: answers written down by rule, right ones, wrong ones and none."""

import itertools
from collections.abc import Iterator
from pathlib import Path

from robustbench_tc.eval import inputs, predictions, record, score
from robustbench_tc.eval.prompts.calls import render_calls
from robustbench_tc.eval.score.golden import concrete
from robustbench_tc.schema import Call, Prediction

from . import small


def answers(data: inputs.Dataset, repeats: int = 1) -> Iterator[Prediction]:
    """One prediction per row and repeat, repeats of a row together, as `rbtc eval` leaves them.

    In turns: right, right, another value, another tool, no call, right behind a long thought; now and then
    nothing at all, or no answer (`request_error`).
    """
    hashes, anchors = data.hashes, data.anchors()
    turns = itertools.count()
    for row in data.rows:
        tools = score.scoring_tools(row, anchors[row.id])
        gold = concrete(row.golden_answers[0], tools, source=row.source)
        for repeat in range(repeats):
            turn = next(turns)
            calls = list(gold)
            if turn % 6 == 2:
                calls[0] = Call(calls[0].name, dict.fromkeys(calls[0].parameters, "something else"))
            elif turn % 6 == 3:
                calls[0] = Call(row.tools[-1].name, calls[0].parameters)
            text = render_calls(tuple(calls), row.output_format)
            if turn % 6 == 4:
                text = "I am sorry, but I cannot help with this request."
            elif turn % 6 == 5:
                text = f"<think>{'First I look at the tools. ' * 40}</think>\n{text}"
            yield small.prediction(
                row,
                model="by-rule",
                repeat=repeat,
                sample_hash=hashes[row.id],
                status="request_error" if turn % 97 == 96 else "ok",
                raw_output=None if turn % 97 == 96 else "" if turn % 89 == 88 else text,
            )


def run(path: Path, release: Path, repeats: int = 1) -> record.RunFolder:
    """A run folder over the release with `answers` as its predictions, not scored yet."""
    data = inputs.load_samples(str(release))
    settings = small.settings(
        fingerprint=data.fingerprint(), model="by-rule", backend="import", repeat=repeats
    )
    folder = record.start(path, data, settings, len(data.rows) * repeats)
    predictions.write(folder.answers_path, answers(data, repeats))
    return folder
