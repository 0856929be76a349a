"""`rbtc build toolrl-dr` and `rbtc train`: the training data, and whether all is ready to train on it."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError, need_extra
from . import _console
from ._workers import Address, Engine, NumProc, workers

if TYPE_CHECKING:
    from ..schema import Message

Names = Annotated[
    list[str] | None, typer.Option(help="Type codes to draw from, also comma-separated; default all 16.")
]


def build_toolrl_dr(
    out: Annotated[
        Path, typer.Option(help="The folder to write. Named toolrl-dr it loads by that name.")
    ] = Path("toolrl-dr"),
    rlla: Annotated[
        Path | None,
        typer.Option(help="Folder with ToolRL's rlla files (default: the sources folder's own)."),
    ] = None,
    sources: Annotated[
        Path | None,
        typer.Option(help="Benchmark sources for the leak check (default: RBTC_SOURCES, else the fetched)."),
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(help="full, mixed, retry, paft; default all. Repeatable.")
    ] = None,
    ratio: Annotated[str, typer.Option(help="Perturbed share of mixed.")] = "0.5",
    alpha: Annotated[str, typer.Option(help="Perturbed share of paft; 0 is plain fine-tuning.")] = "0.3",
    repeat: Annotated[int, typer.Option(help="Differently perturbed copies of each row.")] = 1,
    types: Names = None,
    components: Annotated[
        list[str] | None, typer.Option(help="Draw only from these components, to hold the others out.")
    ] = None,
    generator: Annotated[
        list[str] | None,
        typer.Option(
            help="Who writes texts: openai:MODEL[@BASE_URL[,BASE_URL…]], recorded:PATH or none; TYPE=… for "
            "one."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Moves draws, positions and mixtures.")] = 0,
    max_requests: Annotated[
        int | None, typer.Option(min=0, help="Requests that the whole build may send to endpoints.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="In the currency of --price; the build stops before it.")
    ] = None,
    price: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Price per million prompt and completion tokens, for --max-cost."),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight, per address.")] = 16,
    store: Annotated[
        Path, typer.Option(help="Where answers of endpoints are kept: asked once, replayed ever after.")
    ] = Path(".rbtc/generations.jsonl"),
    retry_probability: Annotated[float, typer.Option(help="Share of calling rows that meet an error.")] = 1.0,
    retry_position: Annotated[int, typer.Option(help="Which tool turn meets it, from 1.")] = 1,
    tokenizer: Annotated[
        Path | None, typer.Option(help="The model's tokenizer folder: prompts over the limit are dropped.")
    ] = None,
    max_prompt_length: Annotated[int, typer.Option(help="The limit in tokens.")] = 2048,
    num_proc: NumProc = 1,
    engine: Engine = "local",
    address: Address = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the build report as JSON.")] = False,
) -> None:
    """Build the domain-randomized training data: full, mixed, retry and paft as Parquet.

    Example: rbtc build toolrl-dr --rlla ../shared/sources --out toolrl-dr
    """
    from rich.markdown import Markdown

    from ..builders.generate import Settings, parse_generators
    from ..builders.sources.fetch import resolve_root
    from ..builders.toolrl_configs import CONFIGS
    from ..builders.toolrl_dr import TrainingSpec, build
    from ..builders.toolrl_versions import Checks
    from ..dataset_cards.training import training_card
    from ..train_recipes.toolrl_dr.reward import earns_maximum

    who = workers(num_proc, engine, address)
    spec = TrainingSpec(
        rlla=rlla or resolve_root(sources) / "toolrl" / "dataset",
        configs=tuple(_split(config)) or CONFIGS,
        types=(*_split(types), *_split(components)),
        seed=seed,
        ratio=_share("--ratio", ratio),
        alpha=_share("--alpha", alpha),
        copies=repeat,
        retry_probability=retry_probability,
        retry_position=retry_position,
        workers=who,
    )
    settings = Settings(
        store=store,
        concurrency=concurrency,
        max_requests=max_requests,
        max_cost=max_cost,
        price=price,
        workers=who,
    )
    generators = parse_generators(generator or ["none"], settings=settings)
    with _console.status("building") as progress:
        leaks, note = _leaks(sources, progress)
        report = build(
            spec,
            out,
            checks=Checks(
                earns_maximum=earns_maximum,
                leaks=leaks,
                tokens=None if tokenizer is None else prompt_tokens(tokenizer),
                max_tokens=max_prompt_length,
            ),
            card=training_card,
            generators={kind: g for kind, g in generators.items() if g.label != "none"},
            leak_note=note,
            force=force,
            progress=progress,
        )
    if as_json:
        typer.echo(report.json().decode(), nl=False)
        return
    _console.out.print(Markdown(report.markdown()))
    _console.out.print(f'load_dataset("{out.name}", "full") in {out.absolute().parent}', markup=False)


def _split(values: list[str] | None) -> list[str]:
    return [name for value in values or () for name in value.split(",") if name]


def _share(option: str, text: str) -> Fraction:
    """An exact share: 0.3 is three tenths, not the nearest binary fraction."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UserError(f"{option} {text!r} is no number: give a share from 0 to 1") from None


def _leaks(
    sources: Path | None, progress: Callable[[str], None]
) -> tuple[Callable[[str, "Sequence[Message]"], bool] | None, str]:
    """Whether a row asks what the benchmark asks (the 199 and the full pools), and a note on the check.

    The gate of a release asks the same question in the same way.
    """
    from ..audits.contamination import Index, query
    from ..builders.sources import read
    from ..builders.sources.fetch import default_root

    root = sources or default_root()
    if not (root / "bfcl").is_dir():
        if sources is not None:
            raise UserError(f"no benchmark sources in {sources}: name their folder, or leave --sources out")
        return None, "not done: no benchmark sources at hand (run `rbtc sources fetch`, or pass --sources)."
    progress("reading the benchmark's queries")
    samples = (*read(root, "paper").samples, *read(root, "full").samples)
    index = Index(query(sample.id, sample.messages) for sample in samples)

    def leaks(clean_id: str, messages: "Sequence[Message]") -> bool:
        overlap = index.look_up(query(clean_id, messages))
        return overlap is not None and overlap.contaminated

    return leaks, f"user turns compared with {index.size} benchmark rows (the 199 and the full pools)."


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
    recipe: Annotated[str, typer.Option(help="toolrl_dr, retry or paft.")] = "toolrl_dr",
    config: Annotated[str | None, typer.Option(help="Config of the data; default: the recipe's own.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Try everything that can go wrong before a GPU is rented: config, data, lengths, tokenizer, reward.

    Needs the training environment (`make env-train`), no GPU. Exit code 1 if a check fails.

    Example: rbtc train check toolrl-dr --model ./Qwen2.5-3B-Instruct trainer.n_gpus_per_node=4
    """
    import msgspec
    from rich.table import Table

    from ..train_recipes.check import readiness

    with _console.status("checking"):
        findings = readiness(recipe, dataset, model, config, overrides or ())
    failed = [finding for finding in findings if finding.verdict == "failed"]
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(findings), indent=1).decode())
    else:
        table = Table(title=f"{recipe}: {'not ready' if failed else 'ready'}", title_justify="left")
        for column in ("check", "verdict", "finding"):
            table.add_column(column, overflow="fold")
        for finding in findings:
            table.add_row(finding.what, finding.verdict, finding.detail)
        _console.out.print(table, markup=False)
    if failed:
        raise typer.Exit(1)
