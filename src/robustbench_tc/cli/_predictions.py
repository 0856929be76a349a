"""A row with a run's answer to it, as `failures` and `show` print it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from .. import taxonomy
from ..errors import UserError
from . import _console
from ._console import styled

if TYPE_CHECKING:
    from rich.text import Text

    from ..eval.defend.base import Defence
    from ..eval.failures import Judged
    from ..eval.inputs import Dataset
    from ..schema import Call, Prediction

SHOWN = 20_000
"""Characters of a text."""


def show_prediction(
    wanted: str, *, run: Path, release: Path | None = None, type_code: str | None = None
) -> None:
    """What a run made of a sample: prompt, both replies, parsed call, gold, verdict and why.

    A clean_id without a type lists the sample's verdicts. The prompt and the gold come from the dataset the
    run names, or from `release` where that exists.
    """
    from ..eval.failures import find

    found = find(run, wanted, type_code)
    if len({row.prediction.type_code for row in found}) > 1:
        _print_sample(found)
        return
    dataset, problem = dataset_of(run, release)
    other, chain = _asked_how(run)
    for row in found:
        _print_prediction(row, dataset, problem, other if row.prediction.mode == "prompt" else None, chain)


def dataset_of(run: Path, release: Path | None) -> "tuple[Dataset | None, str]":
    """The dataset of a run, from where it lay then or from `release` where that exists; else why there is
    none."""
    from ..eval import record, verdicts

    problem = ""
    places: list[str | None] = [None]
    if release is not None and release.is_dir():
        places.append(str(release))
    for place in places:
        try:
            return verdicts.dataset_of(record.open_run(run), place), ""
        except UserError as error:
            problem = str(error)
    return None, problem


def _asked_how(run: Path) -> "tuple[str | None, Sequence[Defence]]":
    """The version of the words in which prompt mode asked, where this package does not hold them; and what
    stood between the rows and the model."""
    from ..eval import defend, prompts, record

    try:
        settings = record.open_run(run).record.settings
        chain = defend.parse(settings.defend)
    except UserError:
        return None, ()
    return None if settings.prompt_version == prompts.prompt_version() else settings.prompt_version, chain


def _print_sample(found: "list[Judged]") -> None:
    first = found[0].prediction
    _console.out.print(styled(f"{first.clean_id}, {first.model}", style="bold"))
    table = Table()
    for name in ("type", "repeat", "verdict", "why", "reply"):
        table.add_column(name, overflow="fold")
    there = taxonomy.among(row.prediction.type_code for row in found)
    order = {code: i for i, code in enumerate((taxonomy.CLEAN, *(kind.code for kind in there)))}
    last = len(order)
    for row in sorted(
        found, key=lambda row: (order.get(row.prediction.type_code, last), row.prediction.repeat)
    ):
        one = row.prediction
        name, reply = taxonomy.named(one.type_code), beginning(reply_of(one))
        table.add_row(name, str(one.repeat), _word(row), row.why, styled(reply))
    _console.out.print(table)
    _console.out.print("add --type TYPE to see one in full", markup=False)


def _word(row: "Judged") -> "Text":
    if row.verdict is None:
        return styled("none", style="yellow")
    return styled("right", style="green") if row.verdict.correct else styled("wrong", style="red")


def _print_prediction(
    row: "Judged",
    dataset: "Dataset | None",
    problem: str,
    other_words: str | None,
    chain: "Sequence[Defence]",
) -> None:
    """`other_words`: the version of prompts that are not those of this package; `chain`: the defences."""
    from ..eval.wanted import unmet
    from ..schema import dumps

    one = row.prediction
    about = f"{one.id}, repeat {one.repeat}, {one.model}, {one.mode}"
    _console.out.print(styled(about, style="bold"))
    sample = next((s for s in dataset.rows if s.id == one.id), None) if dataset is not None else None
    if sample is None:
        _field("prompt", f"not shown: {problem or 'the dataset has no such row'}")
    elif other_words is not None:
        _field("prompt", f"not shown: asked in other words than this package's ({other_words})")
        for said in sample.messages:
            _field(f"the row's own ({said.role})", said.content)
    else:
        from ..eval import wire
        from ..eval.defend.chain import shown

        asked = wire.first(shown(chain, sample), one.mode)
        for message in asked.messages:
            _field(f"asked ({message['role']})", str(message["content"]))
        for tool in asked.tools or ():
            _field("tool", dumps(tool))
    if one.injected:
        _reply("first reply", one.first_output, one.first_tool_calls)
        if sample is not None:
            _field("answered with", sample.injected_error or "")
    last = "second reply" if (one.attempts or 1) == 1 else f"reply after {one.attempts} such answers"
    _reply(last if one.injected else "reply", one.raw_output, one.tool_calls)
    if one.finish_reason == "length":
        _field("note", "the reply was cut at the token limit")
    if row.verdict is not None:
        _field(f"parsed ({row.verdict.variant or 'no variant fired'})", calls_of(row.verdict.calls))
    if sample is not None:
        for answer in sample.golden_answers:
            _field("gold", calls_of(answer))
    score = "" if row.verdict is None else f", score {row.verdict.score:g}"
    _console.out.print(styled("verdict: ", style="cyan") + _word(row) + styled(f"{score}: {row.why}"))
    lacks = None if row.verdict is None or sample is None else unmet(row.verdict, sample)
    if lacks is not None:
        _field("argument", lacks)
    if row.verdict is not None and row.verdict.flags:
        _field("flags", ", ".join(row.verdict.flags))


def _reply(name: str, text: str | None, calls: object) -> None:
    from ..schema import dumps

    _field(name, text if text else "(no text)")
    if calls:
        _field(f"{name}, native calls", dumps(calls))


def _field(name: str, text: str) -> None:
    if len(text) > SHOWN:
        text = f"{text[:SHOWN]}… ({len(text)} characters)"
    _console.out.print(styled(f"{name}: ", style="cyan") + styled(text))


def beginning(text: str, length: int = 90) -> str:
    """The first characters of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def reply_of(one: "Prediction") -> str:
    """What the model said: its text, else its native calls; of an agent that failed the error."""
    from ..schema import dumps

    return one.raw_output or (dumps(one.tool_calls) if one.tool_calls else one.error or "")


def calls_of(answer: "Sequence[Call]") -> str:
    """Calls as people read them."""
    from ..schema import dumps

    return "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer) or "no call"
