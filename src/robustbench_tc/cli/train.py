"""`rbtc build toolrl-dr` and `rbtc train`: the training data, and whether all is ready to train on it."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import taxonomy
from ..errors import UserError, need_extra
from . import _console
from ._generating import AsJson, Concurrency, MaxCost, MaxRequests, Price, Store
from ._replacing import DiscardChanges, Force
from ._workers import Address, Engine, NumProc, workers

if TYPE_CHECKING:
    from ..builders.toolrl_report import TrainingReport

Out = Annotated[Path, typer.Option(help="The folder to write. Named toolrl-dr it loads by that name.")]
Rlla = Annotated[
    Path | None,
    typer.Option(help="Folder with ToolRL's rlla files (default: the sources folder's own)."),
]
Sources = Annotated[
    Path | None,
    typer.Option(help="Benchmark sources for the leak check (default: RBTC_SOURCES, else the fetched)."),
]
Configs = Annotated[list[str] | None, typer.Option(help="full, mixed, retry, paft; default all. Repeatable.")]
Components = Annotated[
    list[str] | None, typer.Option(help="Draw only from these components, to hold the others out.")
]
Generator = Annotated[
    list[str] | None,
    typer.Option(
        help="Who writes texts: openai:MODEL[@BASE_URL[,BASE_URL…]], recorded:PATH or none; TYPE=… for one."
    ),
]
Tokenizer = Annotated[
    Path | None, typer.Option(help="The model's tokenizer folder: prompts over the limit are dropped.")
]
Names = Annotated[
    list[str] | None,
    typer.Option(help="Types, packs or levels to draw from, also comma-separated; default the core's 16."),
]

Counterbalance = Annotated[
    bool, typer.Option("--counterbalance", help="Swap the offers in about half of the priced rows.")
]


def build_toolrl_dr(
    out: Out = Path("toolrl-dr"),
    rlla: Rlla = None,
    sources: Sources = None,
    config: Configs = None,
    ratio: Annotated[str, typer.Option(help="Perturbed share of mixed.")] = "0.5",
    alpha: Annotated[str, typer.Option(help="Perturbed share of paft; 0 is plain fine-tuning.")] = "0.3",
    repeat: Annotated[int, typer.Option(help="Differently perturbed copies of each row.")] = 1,
    types: Names = None,
    components: Components = None,
    counterbalance: Counterbalance = False,
    generator: Generator = None,
    seed: Annotated[int, typer.Option(min=0, help="Moves draws, positions and mixtures.")] = 0,
    max_requests: MaxRequests = None,
    max_cost: MaxCost = None,
    price: Price = None,
    concurrency: Concurrency = 16,
    store: Store = Path(".rbtc/generations.jsonl"),
    retry_probability: Annotated[float, typer.Option(help="Share of calling rows that meet an error.")] = 1.0,
    retry_position: Annotated[int, typer.Option(help="Which tool turn meets it, from 1.")] = 1,
    tokenizer: Tokenizer = None,
    max_prompt_length: Annotated[int, typer.Option(help="The limit in tokens.")] = 2048,
    num_proc: NumProc = 1,
    engine: Engine = "local",
    address: Address = None,
    force: Force = False,
    discard_changes: DiscardChanges = False,
    as_json: AsJson = False,
) -> None:
    """Build the domain-randomized training data: full, mixed, retry and paft as Parquet.

    Example: rbtc build toolrl-dr --rlla ../shared/sources --out toolrl-dr
    """
    from .. import api
    from ..builders.generate import Settings
    from ..builders.sources.fetch import resolve_root
    from ..builders.toolrl_configs import CONFIGS
    from ..builders.toolrl_dr import TrainingSpec
    from ..io.store import refuse_foreign

    refuse_foreign(store)
    who = workers(num_proc, engine, address)
    spec = TrainingSpec(
        rlla=rlla or resolve_root(sources) / "toolrl" / "dataset",
        configs=tuple(_split(config)) or CONFIGS,
        types=(*taxonomy.split(types or ()), *_split(components)),
        seed=seed,
        ratio=_share("--ratio", ratio),
        alpha=_share("--alpha", alpha),
        copies=repeat,
        counterbalance=counterbalance,
        retry_probability=retry_probability,
        retry_position=retry_position,
        workers=who,
    )
    with _console.status("building", _console.written_whole(out, store)) as progress:
        report = api.build_training(
            spec,
            out,
            generator=generator or ("none",),
            settings=Settings(
                store=store,
                concurrency=concurrency,
                max_requests=max_requests,
                max_cost=max_cost,
                price=price,
                workers=who,
            ),
            sources=sources,
            tokens=None if tokenizer is None else prompt_tokens(tokenizer),
            max_tokens=max_prompt_length,
            force=force,
            discard_changes=discard_changes,
            progress=progress,
        )
    _shown(report, out, as_json)


def _shown(report: "TrainingReport", out: Path, as_json: bool) -> None:
    """Prints the report of the build in `out`."""
    from rich.markdown import Markdown

    if as_json:
        _console.json(report.json())
        return
    _console.out.print(Markdown(report.markdown()))
    _console.out.print(f'load_dataset("{out.name}", "full") in {out.absolute().parent}', markup=False)
    if report.unused:
        _console.warn(f"no row was made of {', '.join(report.unused)} (build_report.md says why)")


def _split(values: list[str] | None) -> list[str]:
    return [name for value in values or () for name in value.split(",") if name]


def _share(option: str, text: str) -> Fraction:
    """An exact share: 0.3 is three tenths, not the nearest binary fraction."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UserError(f"{option} {text!r} is not a number: give a share from 0 to 1") from None


def prompt_tokens(folder: Path) -> Callable[[list[dict[str, str]]], int]:
    """Counts a prompt's tokens as the rollout will: chat template, generation prompt included."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise need_extra("transformers", "train") from None
    if not folder.is_dir():
        raise UserError(f"no tokenizer folder {folder}: --tokenizer takes the model's folder")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} holds no tokenizer: {str(error).splitlines()[0]}") from None

    def count(turns: list[dict[str, str]]) -> int:
        ids = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
        return len(ids)

    return count


def check(
    model: Annotated[Path, typer.Option(help="The model's folder: config and tokenizer are read.")],
    dataset: Annotated[
        str, typer.Argument(help="The training data: a folder, or ORG/NAME@REVISION on the Hub.")
    ] = "toolrl-dr",
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Hydra overrides, as train.sh would be given them.")
    ] = None,
    recipe: Annotated[str, typer.Option(help="toolrl_dr, retry, mixture, retry_live or paft.")] = "toolrl_dr",
    config: Annotated[str | None, typer.Option(help="Config of the data; default: the recipe's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Try everything that can go wrong before a GPU is rented: config, data, lengths, tokenizer, reward.

    Needs the training environment (`make env-train`), no GPU. Exit code 1 if a check fails.

    Example: rbtc train check toolrl-dr --model ./Qwen2.5-3B-Instruct trainer.n_gpus_per_node=4
    """
    from rich.table import Table

    from ..train_recipes.check import readiness

    with _console.status("checking"), _console.working("checking"):
        findings = readiness(recipe, dataset, model, config, overrides or ())
    failed = [finding for finding in findings if finding.verdict == "failed"]
    if as_json:
        _console.json(findings)
    else:
        table = Table(title=f"{recipe}: {'not ready' if failed else 'ready'}", title_justify="left")
        for column in ("check", "verdict", "finding"):
            table.add_column(column, overflow="fold")
        for finding in findings:
            table.add_row(finding.what, finding.verdict, finding.detail)
        _console.out.print(table, markup=False)
    if failed:
        raise typer.Exit(1)


app = typer.Typer(no_args_is_help=True, help="Training: what can go wrong before the GPU is rented.")
app.command("check")(check)


@app.callback()
def _group() -> None:
    """What makes a group of an app that has one command only."""
