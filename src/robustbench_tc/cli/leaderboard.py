"""`rbtc leaderboard`: serve the board, check a submission, verify one, rebuild, export a Space."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, unknown
from . import _console

if TYPE_CHECKING:
    from ..eval.leaderboard.checks import Asked
    from ..eval.leaderboard.limits import Limits
    from ..eval.leaderboard.records import Checked
    from ..eval.leaderboard.store import Store

app = typer.Typer(
    help="The leaderboard: serve it, check and verify submissions, rebuild it, export it as a Space.",
    no_args_is_help=True,
)

DEFAULT_STORE = "leaderboard-results"

StoreOption = Annotated[str, typer.Option("--store", help="Results folder on this machine.")]
RepoOption = Annotated[
    str | None, typer.Option("--results-repo", help="Dataset org/name on the Hub that results go to as well.")
]
DatasetOption = Annotated[str, typer.Option("--dataset", help="Release folder, or Hub id org/name.")]
RevisionOption = Annotated[str | None, typer.Option("--revision", help="Of a Hub dataset.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.command()
def serve(
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            help="Release folder or Hub id that submissions are for; default robustbench-tc if there.",
        ),
    ] = None,
    revision: RevisionOption = None,
    store: StoreOption = DEFAULT_STORE,
    results_repo: RepoOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 7860,
    login: Annotated[
        str | None, typer.Option(help="local, or hf: sign in with Hugging Face; default hf in a Space.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Uploads that are scored at once.")] = 2,
) -> None:
    """Serve the board and the submit page.

    Example: rbtc leaderboard serve --dataset robustbench-tc
    """
    from ..eval.leaderboard.app import run

    if login not in (None, "local", "hf"):
        raise unknown("login", login or "", ("local", "hf"))
    in_space = "SPACE_ID" in os.environ
    free_port(host, port)
    made = site(
        dataset or ("robustbench-tc" if Path("robustbench-tc").is_dir() else None),
        revision=revision,
        store=store,
        results_repo=results_repo,
        login=login or ("hf" if in_space else "local"),
        workers=workers,
    )
    _console.err.print(f"serving on http://{host}:{port} (stop with Ctrl-C)", markup=False)
    run(made, host, port, behind_proxy=in_space)


def free_port(host: str, port: int) -> None:
    """Looks before everything is loaded. Raises UserError where nothing can listen there."""
    import socket

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"cannot listen on {host}:{port} ({error.strerror}): take another --port"
            ) from None


def site(
    dataset: str | None,
    *,
    revision: str | None = None,
    store: str = DEFAULT_STORE,
    results_repo: str | None = None,
    login: str = "local",
    workers: int = 2,
    limits: "Limits | None" = None,
) -> Any:
    """The app with everything it needs: what `serve` and a Space's app.py run."""
    from ..eval.leaderboard.app import create
    from ..eval.leaderboard.desk import Desk
    from ..eval.leaderboard.limits import Limits
    from ..eval.leaderboard.rebuild import rebuild
    from ..eval.leaderboard.records import board_version
    from ..eval.leaderboard.scoring import entries_of_paper
    from ..eval.leaderboard.site import Boards
    from ..eval.leaderboard.worker import Pool

    results = open_store(store, results_repo)
    bounds = limits or Limits()
    desk, asked, served = None, "", None
    closed = "it was started without a dataset (--dataset)."
    loaded: list[Asked] = []
    if dataset is not None:
        folder = local_folder(dataset, revision)
        data = load_asked(folder)
        loaded.append(data)
        pool = Pool(worker_command(Path(folder), bounds), workers)
        pool.warm()
        desk = Desk(results, pool, bounds)
        served = (data.label, data.fingerprint())
        asked = f"version {data.label}, board {board_version(data.version, data.fingerprint())}"
    found = rebuild(results, loaded, marts, only_missing=True)
    for one, why in found.not_possible.items():
        _console.err.print(f"{one} is not on its board: {why}", markup=False)
    boards = Boards(results, entries_of_paper(marts), served)
    boards.all()
    return create(boards, desk, login="hf" if login == "hf" else "local", asked=asked, closed=closed)


@app.command("submit-check")
def submit_check(
    predictions: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run folder, or a predictions file beside its run.json.")
    ],
    dataset: DatasetOption = "robustbench-tc",
    revision: RevisionOption = None,
    record: Annotated[Path | None, typer.Option("--record", help="run.json, if it lies elsewhere.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Name on the board, if another.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check and score a run as the leaderboard would, without submitting it.

    Example: rbtc leaderboard submit-check runs/qwen3-8b-fc
    """
    import shutil
    import tempfile
    from datetime import UTC, datetime

    from ..eval.leaderboard import worker
    from ..eval.leaderboard.limits import Limits

    upload = predictions / "predictions.parquet" if predictions.is_dir() else predictions
    if not upload.is_file():
        raise UserError(f"no predictions at {upload}: name a run folder, or a .parquet or .jsonl file")
    run = record or upload.with_name("run.json")
    with tempfile.TemporaryDirectory() as temporary:
        shutil.copyfile(upload, Path(temporary) / worker.UPLOAD)
        if run.is_file():
            shutil.copyfile(run, Path(temporary) / worker.RECORD)
        job = worker.Job(
            folder=temporary,
            user="local",
            now=datetime.now(UTC).isoformat(timespec="seconds"),
            name=model,
        )
        checked = worker.examine(job, load_asked(dataset, revision), Limits(), marts)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(checked), indent=1).decode())
    else:
        _print(checked)
    if checked.refused is not None:
        raise typer.Exit(1)


def _print(checked: "Checked") -> None:
    from rich.table import Table

    from .. import taxonomy
    from ..eval.leaderboard.refusal import STEPS

    echo = _console.out.print
    for step in checked.steps:
        word = {True: "passed", False: "FAILED", None: "not reached"}[step.passed]
        echo(f"{word:12}{STEPS[step.code]}{': ' + step.text if step.text else ''}", markup=False)
        for line in step.details:
            echo(f"            {line}", markup=False)
    if checked.entry is None:
        return
    table = Table()
    for name in ("rows", "n", "right", "accuracy", "95 %"):
        table.add_column(name, justify="left" if name == "rows" else "right", no_wrap=True)
    for name in (taxonomy.CLEAN, "perturbed", *taxonomy.COMPONENTS):
        metric = checked.entry.metrics[name if name in checked.entry.metrics else f"accuracy_{name}"]
        correct, n = checked.entry.counts[name]
        table.add_row(
            name, str(n), str(correct), f"{metric.value:.3f}", f"{metric.low:.3f} {metric.high:.3f}"
        )
    echo(table)
    claims = checked.claims
    if claims is not None:
        echo(
            f"the file's own verdicts (not used) agree in {claims.agree} of {claims.rows} rows", markup=False
        )


@app.command()
def verify(
    submission: Annotated[str, typer.Argument(metavar="ID", help="The submission's id; its page names it.")],
    run: Annotated[Path, typer.Option("--run", help="Run folder of the repeated run.")],
    dataset: DatasetOption = "robustbench-tc",
    revision: RevisionOption = None,
    store: StoreOption = DEFAULT_STORE,
    results_repo: RepoOption = None,
    by: Annotated[str, typer.Option("--by", help="Who repeated it.")] = "maintainer",
) -> None:
    """Mark a submission as verified: you have repeated its run, and it came out the same.

    Example: rbtc leaderboard verify 20261120-96a2067ff4c1 --run runs/repeated
    """
    from ..eval.leaderboard import names
    from ..eval.leaderboard.rebuild import verify as verify_submission

    data = load_asked(dataset, revision)
    made = verify_submission(
        open_store(store, results_repo), submission, run, data, marts, by=names.check_user(by)
    )
    _console.out.print(
        f"verified {submission}: same verdict in {made.agree} of {made.rows} rows, perturbed accuracy "
        f"{made.repeated:.3f} against {made.submitted:.3f} (p = {made.p:.2g})",
        markup=False,
    )


@app.command()
def rebuild(
    dataset: Annotated[
        list[str], typer.Option("--dataset", help="Release folder or Hub id; repeatable, one per version.")
    ],
    store: StoreOption = DEFAULT_STORE,
    results_repo: RepoOption = None,
    as_json: AsJson = False,
) -> None:
    """Score every stored submission anew from its raw predictions and make the boards from that.

    Prints what differs from what was served; the exit code is 1 if anything does.

    Example: rbtc leaderboard rebuild --dataset robustbench-tc
    """
    from ..eval.leaderboard.rebuild import rebuild as rebuild_all

    results = open_store(store, results_repo)
    with _console.status("scoring") as tell:
        found = rebuild_all(results, [load_asked(one) for one in dataset], marts, progress=tell)
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        echo = _console.out.print
        echo(f"{len(found.same)} submissions are the same, {len(found.new)} had no entry yet", markup=False)
        for one in found.changed:
            echo(f"changed: {one} (its entry was another; it is put right)", markup=False)
        for one, why in found.not_possible.items():
            echo(f"not rebuilt: {one}: {why}", markup=False)
        for version in found.boards_changed:
            echo(f"board changed: {version}", markup=False)
    if found.changed or found.not_possible:
        raise typer.Exit(1)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New folder for the Space's files.")],
    dataset: Annotated[str, typer.Option("--dataset", help="Hub id that submissions are taken for.")],
    results_repo: Annotated[str, typer.Option("--results-repo", help="Hub dataset for the results.")],
    revision: RevisionOption = None,
    title: Annotated[str, typer.Option(help="The Space's title.")] = "RobustBench-TC Leaderboard",
    force: Annotated[bool, typer.Option("--force", help="Replace the folder.")] = False,
) -> None:
    """Write a folder that is a Hugging Face Space once it is pushed: app, requirements, card, package.

    Example: rbtc leaderboard export space --dataset acme/robustbench-tc --results-repo acme/results
    """
    from ..eval.leaderboard.space import export_space

    made = export_space(
        folder, dataset=dataset, revision=revision, results_repo=results_repo, title=title, force=force
    )
    _console.out.print(
        f"{made} files in {folder}: push them to a Space, and give it the secret HF_TOKEN with write access "
        f"to {results_repo}",
        markup=False,
    )


# --- what the room is handed --------------------------------------------------------------------------


def marts(names: Sequence[str], run: str | None) -> dict[str, list[dict[str, Any]]]:
    """The rows of each mart over a scored run folder, or over the paper's counts; one connection."""
    import duckdb

    from ..eval import paper
    from ..sql.query import FOLDER, Inputs, connect

    inputs = Inputs(paper=paper.CELLS) if run is None else Inputs(runs=(run,))
    with connect(inputs) as connection:
        try:
            return {
                name: connection.sql(FOLDER.joinpath(f"{name}.sql").read_text("utf-8"))
                .to_arrow_table()
                .to_pylist()
                for name in names
            }
        except duckdb.Error as error:
            raise UserError(f"{run or 'paper'}: {str(error).strip().splitlines()[0]}") from None


def open_store(folder: str, results_repo: str | None) -> "Store":
    """The results folder, brought up to date with the Hub where there is a repository."""
    from ..eval.leaderboard.hub import HubStore
    from ..eval.leaderboard.store import Store

    path = Path(folder).expanduser()
    if path.exists() and not path.is_dir():
        raise UserError(f"{path} is no folder: name one for the results with --store")
    if results_repo is None:
        return Store(path)
    store = HubStore(path, results_repo)
    store.sync()
    return store


def load_asked(dataset: str, revision: str | None = None) -> "Asked":
    """A dataset for a board. Raises UserError."""
    from ..eval import inputs
    from ..eval.leaderboard.checks import Asked

    return Asked.of(inputs.load(dataset, revision=revision))


def local_folder(dataset: str, revision: str | None) -> str:
    """The dataset's folder on this machine; one of the Hub is fetched. Raises UserError."""
    from ..manifest import resolve_dataset

    return str(resolve_dataset(dataset, revision, patterns=["*/test-*.parquet", "README.md", "*.json"]))


def worker_command(dataset: Path, limits: "Limits") -> list[str]:
    """Starts the process that reads and scores uploads: `eval.leaderboard.worker`."""
    import msgspec

    start = "from robustbench_tc.cli.leaderboard import work; work()"
    return [sys.executable, "-P", "-c", start, str(dataset), msgspec.json.encode(limits).decode()]


def work() -> None:
    """What `worker_command` runs."""
    import duckdb  # noqa: F401  (once, before anything is forked)
    import msgspec

    from ..eval.leaderboard.limits import Limits
    from ..eval.leaderboard.worker import serve as answer_jobs

    dataset, limits = sys.argv[1:3]
    answer_jobs(load_asked(dataset), msgspec.json.decode(limits, type=Limits), marts)
