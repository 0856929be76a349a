"""Predictions, results and requests for other places, and from them: `export`, `export hub`, `import`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors import UserError
from ..option import Option, Tell, check, silent, struct_of
from . import options

if TYPE_CHECKING:
    from ..eval.exchange import Exchanged
    from ..eval.leaderboard.eval_results import Exported


def export(
    run: Annotated["str | Path", options.RUN],
    *,
    out: Annotated["str | Path", options.OUT],
    layout: Annotated[
        Literal["ours", "paper"], Option(help="ours: every column; paper: the layout of the paper's release.")
    ] = "ours",
    dataset: Annotated[str | None, options.DATASET] = None,
) -> "Exchanged":
    """Write a run's predictions as JSON lines.

    Example: rbtc export runs/qwen3-8b-fc --layout paper --out qwen3-8b.jsonl

    Raises UserError.
    """
    from ..eval import exchange, predictions, record, verdicts
    from ..io.files import check_file

    check_file(Path(out))
    folder = record.open_run(Path(run))
    data = verdicts.dataset_of(folder, dataset)
    found = predictions.read_predictions(folder.answers_path)
    rows = data.by_id
    ours = layout == "ours"
    predictions.write_lines(
        Path(out), (one if ours else exchange.in_paper_layout(one, rows[one.id]) for one in found)
    )
    return exchange.Exchanged(count=len(found), path=str(out))


def export_requests(
    dataset: Annotated["str | Path", options.ASKED] = "robustbench-tc",
    *,
    out: Annotated["str | Path", options.OUT],
    format: Annotated[
        Literal["openai", "openai-batch"],
        Option(help="openai-batch: lines of the Batch API, which vllm run-batch reads too; openai: bodies."),
    ] = "openai-batch",
    second_pass: Annotated[
        "str | Path | None",
        Option(help="Write the remaining requests of this run instead of starting one.", typed=Path | None),
    ] = None,
    begin: Annotated[
        "str | Path | None",
        Option(help="The run folder to create; default runs/MODEL-MODE.", typed=Path | None),
    ] = None,
    model: Annotated[str | None, options.MODEL] = None,
    mode: Annotated[str | None, options.MODE] = None,
    defend: Annotated["str | Sequence[str]", options.DEFEND] = (),
    revision: Annotated[str | None, options.REVISION] = None,
    types: Annotated["str | Sequence[str]", options.TYPES] = (),
    sources: Annotated["str | Sequence[str]", options.SOURCE] = (),
    ids: Annotated["str | Sequence[str]", options.IDS] = (),
    limit: Annotated[int | None, options.LIMIT] = None,
    samples: Annotated[int | None, options.SAMPLES] = None,
    repeat: Annotated[int, options.REPEAT] = 1,
    seed: Annotated[int | None, options.SEED] = None,
    temperature: Annotated[float | None, options.TEMPERATURE] = None,
    max_tokens: Annotated[int | None, options.MAX_TOKENS] = None,
    top_p: Annotated[float | None, options.TOP_P] = None,
    top_k: Annotated[int | None, options.TOP_K] = None,
    stop: Annotated["str | Sequence[str]", options.STOP] = (),
    reasoning_effort: Annotated[str | None, options.REASONING_EFFORT] = None,
    logprobs: Annotated[bool, options.LOGPROBS] = False,
    system: Annotated[str | None, options.SYSTEM] = None,
    extra_body: Annotated["Mapping[str, object]", options.EXTRA_BODY] = MappingProxyType({}),
    chat_template_args: Annotated["Mapping[str, object]", options.CHAT_TEMPLATE_ARG] = MappingProxyType({}),
) -> "Exchanged":
    """Write a run's requests as JSON lines, to send elsewhere; `rbtc import` reads the answers.

    A row whose call is answered with an injected error needs another request: import the first answers, then
    write the remaining requests with --second-pass, until none is left.

    Example: rbtc export requests robustbench-tc --model qwen3-8b --mode fc --out requests.jsonl
    Example: rbtc export requests --second-pass runs/qwen3-8b-fc --out second.jsonl

    Raises UserError.
    """
    given = {**locals(), "headers": {}, "system_as_user": False, "max_cost": None, "price": None}
    from ..eval import evaluate, exchange, inputs, record, verdicts, who
    from ..eval.request_settings import RequestOptions
    from ..io.files import check_file

    check(export_requests, given)
    check_file(Path(out))
    if second_pass is not None:
        folder = record.open_run(Path(second_pass))
        data = verdicts.dataset_of(folder)
    else:
        data = inputs.load_samples(str(dataset), revision=revision)
        # Nobody is asked here: at an address of one's own no key is looked for.
        named = who.Named(model=model, mode=mode, defend=defend, base_url="http://localhost/v1")
        folder = evaluate.Evaluation.begin(
            data,
            named.checked(struct_of(RequestOptions, given)),
            inputs.selection_of(types, sources, ids, limit, samples),
            repeat=repeat,
            out=begin,
        ).folder
    return exchange.Exchanged(
        count=exchange.write_requests(Path(out), folder, data, batch=format == "openai-batch"),
        path=str(out),
        notes=(*folder.notes, f"then: rbtc import ANSWERS.jsonl {folder.path}"),
        of="requests",
    )


def export_hub(
    run: Annotated["str | Path", options.RUN],
    *,
    dataset: Annotated[str, options.DATASET],
    out: Annotated["str | Path", options.OUT],
    partial: Annotated[
        bool, Option(help="Accept a run that lacks answers or rows; the notes then say so.")
    ] = False,
    source_url: Annotated[str | None, Option(help="URL of a page about the results.")] = None,
    source_name: Annotated[str | None, Option(help="Title of that page, such as `Report`.")] = None,
    source_user: Annotated[str | None, Option(help="Owner of that page: an account on the Hub.")] = None,
    date: Annotated[
        str | None, Option(help="Date of the run, such as 2026-11-27; default: the day it was last started.")
    ] = None,
    push: Annotated[
        str | None, Option(help="The model on the Hub, ORG/NAME, that gets the file as a pull request.")
    ] = None,
    progress: Tell = silent,
) -> "Exported":
    """Write a run's accuracies for a model's page on the Hub, .eval_results/robustbench-tc.yaml.

    The file has one result in percent for clean, perturbed and each component, the tasks of the dataset's
    eval.yaml. A pull request names the revision by its commit.

    Example: rbtc export hub runs/qwen3-8b-fc --dataset acme/robustbench-tc@v1.0.0 --out results
    Example: rbtc export hub runs/qwen3-8b-fc --dataset acme/robustbench-tc@v1.0.0 --out results \
    --push Qwen/Qwen3-8B --source-url https://acme.org/report.html

    Raises UserError for a live run and, unless `partial`, for one that lacks answers or rows.
    """
    from ..eval.leaderboard.eval_results import Source, export as exported

    return exported(
        Path(run),
        Path(out),
        dataset=dataset,
        source=Source(source_url, source_name, source_user),
        date=date,
        partial=partial,
        push=push,
        said=progress,
    )


def import_predictions(
    predictions: Annotated[
        "str | Path",
        Option(
            help="A .jsonl file (ours, the paper's, or answers to exported requests), or a folder.",
            typed=Path,
        ),
    ],
    dataset: Annotated[
        "str | Path",
        Option(help="The dataset; for answers to exported requests, the run that was started.", typed=str),
    ],
    *,
    model: Annotated[str | None, options.MODEL] = None,
    mode: Annotated[str | None, options.MODE] = None,
    revision: Annotated[str | None, options.REVISION] = None,
    out: Annotated["str | Path | None", options.OUT] = None,
) -> "Exchanged":
    """Make a run folder from existing predictions and score it; by default runs/MODEL-MODE-imported.

    Answers to the requests of `rbtc export requests` are added to the run that it started.

    Example: rbtc import predictions/ api_eval --model o4-mini --mode fc
    Example: rbtc import answers.jsonl runs/qwen3-8b-fc

    Raises UserError.
    """
    from ..eval import exchange, inputs, models, record, verdicts

    if (Path(dataset) / record.RECORD).is_file():
        folder = record.open_run(Path(dataset))
        data = verdicts.dataset_of(folder)
        notes = exchange.take_answers(Path(predictions), folder, data)
        verdicts.score_file(folder, data)
        return exchange.Exchanged(count=folder.record.answered, path=str(folder.path), notes=tuple(notes))
    if model is None:
        raise UserError("the predictions name no model: give --model")
    if out is not None:
        record.check_place(Path(out))
    data = inputs.load_samples(str(dataset), revision=revision)
    wanted = record.mode_of(mode or models.mode_of(model))
    place = record.default_place(model, wanted, "-imported") if out is None else Path(out)
    folder, found = exchange.import_run(Path(predictions), data, model=model, mode=wanted, out=place)
    notes = [*folder.notes, *(f"left out: {count} × {why}" for why, count in folder.record.left_out.items())]
    verdicts.score_file(folder, data)
    if absent := len(data.rows) - len({one.id for one in found}):
        notes.append(f"{absent} rows of the dataset have none")
    return exchange.Exchanged(count=len(found), path=str(folder.path), notes=tuple(notes))
