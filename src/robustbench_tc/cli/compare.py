"""`rbtc compare`, `rbtc failures` and the run's side of `rbtc show`: who is better, and what went wrong."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from .. import sources, taxonomy
from ..errors import UserError
from ..io.numbers import interval, number, p_value, percent, signed
from . import _console
from ._console import styled
from ._words import LogKeys, Subset

if TYPE_CHECKING:
    from rich.text import Text

    from ..eval.compare import Comparison, PaperLine
    from ..eval.defend.base import Defence
    from ..eval.failures import Judged
    from ..eval.inputs import Dataset
    from ..eval.stats.paired import Pair
    from ..schema import Prediction

Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="Scored run folder, or log of inspect_ai: the baseline.")
    ],
    b: Annotated[
        Path | None, typer.Argument(metavar="[B]", help="Scored run folder or log to set against it.")
    ] = None,
    vs: Annotated[
        str | None, typer.Option("--vs", help="paper:MODEL: A beside one of the paper's models, unpaired.")
    ] = None,
    subset: Subset = "all",
    log_key: LogKeys = None,
    as_json: Json = False,
) -> None:
    """Say whether B is better than A, where, and how sure: paired over the rows that both answered.

    Example: rbtc compare runs/base runs/tuned
    Example: rbtc compare logs/base.eval logs/tuned.eval
    """
    from .. import api
    from ..eval.adapters.logs import opened
    from ..eval.compare import UNPAIRED

    if b is None and vs is None:
        raise UserError("nothing to compare with: name a second run, or --vs paper:MODEL")
    with _console.status("comparing", "compare writes nothing; run the same command again") as progress:
        paired = beside = None
        name = ""
        if b is not None:
            paired = api.compare(a, b, subset=subset, log_keys=log_key or (), progress=progress)
        if vs is not None:
            with opened([str(a)], log_key or ()) as given:
                run = given[0].read()
            name, beside = run.model, api.compare_with_paper(run, _paper_model(vs), subset=subset)
    if as_json:
        found = {"paired": paired, "paper": beside, "paper_note": UNPAIRED if beside else None}
        _console.json(found)
        return
    if paired is not None:
        _print_comparison(paired)
    if beside is not None:
        _print_beside(name, vs or "", beside, UNPAIRED)


def _paper_model(vs: str) -> str:
    head, colon, model = vs.partition(":")
    if head != "paper" or not colon or not model:
        raise UserError(f"--vs {vs!r}: write it as paper:MODEL, for example paper:o4-mini")
    return model


def _print_comparison(found: "Comparison") -> None:
    echo = _console.out.print
    version = f", dataset {found.dataset_version}" if found.dataset_version else ""
    echo(styled(f"A = {found.a}, B = {found.b}{version}", style="bold"))
    echo(styled(found.verdict))
    echo()
    table = _table("accuracy", "A", "B", "B − A", "95 %", "pairs", "only A", "only B", "p", "p (Holm)")
    for name, pair in found.overall.items():
        table.add_row(name, *_pair_cells(pair), p_value(pair.p), p_value(found.overall_holm.get(name)))
    echo(table)
    if found.deltas:
        table = _table("Δ (a loss)", "A", "B", "A − B", "95 %", "p (Holm)", "closed by B", "95 %")
        for name, delta in found.deltas.items():
            closed = delta.closed
            table.add_row(
                name,
                number(delta.a),
                number(delta.b),
                signed(delta.difference.value),
                interval(delta.difference, sign=True),
                p_value(found.deltas_holm.get(name)),
                "cannot be said" if closed is None else percent(closed.value),
                "" if closed is None else interval(closed, sign=True),
            )
        echo(table)
    table = _table("type", "A", "B", "B − A", "95 %", "pairs", "only A", "only B", "p", "p (Holm)")
    for one in sorted(found.types, key=lambda one: (one.p_holm, one.pair.p)):
        table.add_row(one.type_code, *_pair_cells(one.pair), p_value(one.pair.p), p_value(one.p_holm))
    echo(table)
    echo(
        styled(
            "Intervals take whole clean_ids as units, both runs together. p is exact and paired; p (Holm) is "
            "corrected for all lines of its table. The verdict is one test, that of the perturbed rows.",
            style="dim",
        )
    )
    if found.power is not None:
        echo(styled(found.power.line))
    for note in found.notes:
        echo(styled(f"gap: {note}", style="yellow"))
    for line in found.unreviewed or ():
        echo(styled(f"not reviewed: {line}", style="yellow"))


def _table(*names: str) -> Table:
    table = Table()
    table.add_column(names[0], no_wrap=True)
    for name in names[1:]:
        table.add_column(name, justify="right")
    return table


def _pair_cells(pair: "Pair") -> Iterable[str]:
    found = pair.difference
    return (
        number(pair.a),
        number(pair.b),
        signed(found.value),
        interval(found, sign=True),
        str(pair.n),
        str(pair.only_a),
        str(pair.only_b),
    )


def _print_beside(model: str, vs: str, lines: "Iterable[PaperLine]", note: str) -> None:
    echo = _console.out.print
    echo(styled(f"{model} beside {vs}", style="bold"))
    echo(styled(note, style="yellow"))
    table = _table("", "ours", "n", "paper", "n", "difference", "95 %", "p (Fisher)")
    for line in lines:
        table.add_row(
            line.name,
            number(line.accuracy),
            str(line.n),
            number(line.paper_accuracy),
            str(line.paper_n),
            signed(line.ours.value),
            interval(line.ours, sign=True),
            p_value(line.p),
        )
    echo(table)


# --- single predictions -------------------------------------------------------------------------------


def failures(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Scored run folder.")],
    type_code: Annotated[str | None, typer.Option("--type", help="Only this type, or clean.")] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="empty, omitted, missing_call, wrong_name, ghost, wrong_parameters, name_bias, "
            "wrong_language or other."
        ),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    flag: Annotated[
        str | None,
        typer.Option(help="Replies whose verdict carries it, right ones too: quoted_call …"),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows to print.")] = 50,
    as_json: Json = False,
) -> None:
    """List a run's wrong answers: id, error mode, why, and the reply's beginning.

    Example: rbtc failures runs/qwen3-8b-fc --type transient_timeout --mode omitted
    Example: rbtc failures runs/qwen3-8b-fc --flag quoted_call
    """
    from ..eval import failures as room

    found = room.failures(run, type_code=type_code, mode=mode, source=source, flag=flag)
    if as_json:
        _console.json(found[:limit])
        return
    own = any(row.prediction.source == sources.OWN for row in found[:limit])
    dataset = _dataset_of(run, None)[0] if own else None
    rows = {} if dataset is None else {one.id: one for one in dataset.rows}
    table = Table()
    for name in ("id", "error mode", "why", "reply"):
        table.add_column(name, overflow="fold", no_wrap=name == "error mode")
    for row in found[:limit]:
        verdict = row.verdict
        table.add_row(
            styled(row.prediction.id),
            (verdict.error_mode or "right") if verdict else "",
            styled(room.said(verdict, rows.get(row.prediction.id)) if verdict else ""),
            styled(_beginning(row.prediction)),
        )
    _console.out.print(table)
    shown = f", the first {limit} shown (--limit)" if len(found) > limit else ""
    _console.out.print(
        f"{len(found)} {'wrong answers' if flag is None else 'replies'}{shown}; "
        f"rbtc show ID --run {run} shows one whole",
        markup=False,
    )
    _say_why(run)


def _say_why(run: Path) -> None:
    """Why requests failed, over the whole run: the table above does not list failed requests."""
    from ..eval import reasons, record

    try:
        sessions = record.open_run(run).record.sessions
    except UserError:  # the verdicts alone are enough
        sessions = []
    found = reasons.of_predictions(run / "scores.parquet")
    for line in reasons.lines(found, sessions[-1] if sessions else None):
        _console.out.print(styled(line))


def _beginning(one: "Prediction", length: int = 90) -> str:
    from ..schema import dumps

    text = one.raw_output or (dumps(one.tool_calls) if one.tool_calls else "")
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


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
    dataset, problem = _dataset_of(run, release)
    other, chain = _asked_how(run)
    for row in found:
        _print_prediction(row, dataset, problem, other if row.prediction.mode == "prompt" else None, chain)


def _dataset_of(run: Path, release: Path | None) -> "tuple[Dataset | None, str]":
    from ..eval import record, verdicts

    try:
        folder = record.open_run(run)
    except UserError as error:
        return None, str(error)
    try:
        return verdicts.dataset_of(folder), ""
    except UserError as error:
        if release is None or not release.is_dir():
            return None, str(error)
    try:
        return verdicts.dataset_of(folder, str(release)), ""
    except UserError as error:
        return None, str(error)


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
        table.add_row(one.type_code, str(one.repeat), _word(row), row.why, styled(_beginning(one)))
    _console.out.print(table)
    _console.out.print("add --type CODE to see one whole", markup=False)


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
    _section(f"{one.id}, repeat {one.repeat}, {one.model}, {one.mode}")
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
        calls = "; ".join(f"{call.name} {dumps(call.parameters)}" for call in row.verdict.calls)
        _field(f"parsed ({row.verdict.variant or 'no variant fired'})", calls or "no call")
    if sample is not None:
        for answer in sample.golden_answers:
            _field("gold", "; ".join(f"{call.name} {dumps(call.parameters)}" for call in answer))
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


def _section(text: str) -> None:
    _console.out.print(styled(text, style="bold"))


def _field(name: str, text: str) -> None:
    _console.out.print(styled(f"{name}: ", style="cyan") + styled(_bounded(text)))


def _bounded(text: str, limit: int = 20_000) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
