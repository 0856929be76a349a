"""`rbtc leaderboard`: serve the board, submit, check a submission, verify or hide one, rebuild, export."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import UserError
from ..io import numbers
from . import _console
from ._checked import print_checked
from ._matching import match_endpoint
from ._moderating import VERBS
from ._replacing import DiscardChanges, Force
from ._submit import submit
from ._words import one_of
from ._workers import NumProc

if TYPE_CHECKING:
    from ..eval.leaderboard.records import Verification

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
LiveOption = Annotated[
    str | None, typer.Option("--live-dataset", help="Live dataset (rbtc build live): a folder or Hub id.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]

app.command()(submit)
for name, verb in VERBS.items():
    app.command(name)(verb)


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
    live_dataset: LiveOption = None,
    live_revision: Annotated[str | None, typer.Option(help="Of a live dataset on the Hub.")] = None,
    store: StoreOption = DEFAULT_STORE,
    results_repo: RepoOption = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for every interface.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 7860,
    login: Annotated[
        Literal["local", "hf"] | None,
        one_of(
            "login", "local", "hf", help="local, or hf: sign in with Hugging Face; default hf in a Space."
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Uploads that are scored at once.")] = 2,
    quota: Annotated[
        list[str] | None,
        typer.Option(
            "--quota",
            metavar="NAME=N",
            help="Submissions a day of an account or organisation, if other than 10; repeatable.",
        ),
    ] = None,
) -> None:
    """Serve the board and the submit page.

    Example: rbtc leaderboard serve --dataset robustbench-tc
    """
    from ..eval.leaderboard.limits import Limits
    from ..eval.leaderboard.serve import serve as run

    quotas = _quotas(quota or [])

    def started(url: str) -> None:
        _console.err.print(f"serving on {url} (stop with Ctrl-C)", markup=False)

    with _console.keeping(f"the server has stopped; submissions are kept in {store}"):
        run(
            dataset or ("robustbench-tc" if Path("robustbench-tc").is_dir() else None),
            revision=revision,
            live_dataset=live_dataset,
            live_revision=live_revision,
            store=store,
            results_repo=results_repo,
            host=host,
            port=port,
            login=login,
            workers=workers,
            limits=Limits(quotas=quotas),
            started=started,
            progress=partial(_console.err.print, markup=False),
        )
        raise KeyboardInterrupt  # the server has taken it as its sign to end, in order


def _quotas(given: list[str]) -> dict[str, int]:
    """`NAME=N` of each option. Raises UserError."""
    from ..eval.leaderboard import names

    found: dict[str, int] = {}
    for one in given:
        name, _, number = one.partition("=")
        if not number.isascii() or not number.isdigit() or len(number) > 6 or int(number) > 100_000:
            raise UserError(
                f"--quota {one!r} is not NAME=N with N from 0 to 100,000, such as --quota acme=50"
            )
        if names.check_user(name) in found:
            raise UserError(f"--quota names {name} twice")
        found[name] = int(number)
    return found


@app.command("submit-check")
def submit_check(
    predictions: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run folder, or a predictions file beside its run.json.")
    ],
    dataset: DatasetOption = "robustbench-tc",
    revision: RevisionOption = None,
    live_dataset: Annotated[
        str | None, typer.Option("--live-dataset", help="Of a live run; default: the one it was played on.")
    ] = None,
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

    from ..eval.leaderboard import live_client, live_worker, worker
    from ..eval.leaderboard.limits import Limits
    from ..eval.leaderboard.serve import load_asked
    from ..eval.leaderboard.submitting import Stated

    live = live_client.files_of(predictions, record)
    if live is not None:
        upload, run = live
    else:
        upload = predictions / "predictions.parquet" if predictions.is_dir() else predictions
        run = record or upload.with_name("run.json")
    if not upload.is_file():
        raise UserError(f"no predictions at {upload}: name a run folder, or a .parquet or .jsonl file")
    with tempfile.TemporaryDirectory() as temporary:
        shutil.copyfile(upload, Path(temporary) / worker.UPLOAD)
        if run.is_file():
            shutil.copyfile(run, Path(temporary) / worker.RECORD)
        job = worker.Job(
            folder=temporary,
            user="local",
            now=datetime.now(UTC).isoformat(timespec="seconds"),
            stated=Stated(name=model),
        )
        if live is not None:
            asked_live = live_client.dataset_of(run, live_dataset)
            checked = live_worker.examine_live(job, asked_live, Limits())
        else:
            try:
                asked = load_asked(dataset, revision)
            except UserError as error:
                raise UserError(f"{error}; --dataset names what the run was asked") from None
            checked = worker.examine(job, asked, Limits())
    if as_json:
        _console.json(checked)
    else:
        print_checked(checked)
    if checked.refused is not None:
        raise typer.Exit(1)


@app.command()
def verify(
    submission: Annotated[str, typer.Argument(metavar="ID", help="The submission's id; its page names it.")],
    run: Annotated[Path | None, typer.Option("--run", help="Run folder of the repeated run.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Ask 300 rows and 300 fresh ones again at this endpoint instead.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Its name there, if another.")] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder of the check; default verify-ID. The same command goes on.")
    ] = None,
    dataset: DatasetOption = "robustbench-tc",
    revision: RevisionOption = None,
    live_dataset: LiveOption = None,
    store: StoreOption = DEFAULT_STORE,
    results_repo: RepoOption = None,
    by: Annotated[str, typer.Option("--by", help="Who repeated it.")] = "maintainer",
) -> None:
    """Mark a submission: you have repeated its run, or its endpoint gives the same answers.

    Of a live run name the dataset with --live-dataset; no endpoint can be matched to one.

    Example: rbtc leaderboard verify 20261120-96a2067ff4c1 --run runs/repeated
    Example: rbtc leaderboard verify 20261120-96a2067ff4c1 --base-url https://llm.example.org/v1
    """
    from ..eval.leaderboard import names
    from ..eval.leaderboard.live_verify import refuse_live
    from ..eval.leaderboard.rebuild import verify as verify_submission
    from ..eval.leaderboard.serve import load_asked, open_store

    if (run is None) == (base_url is None):
        raise UserError("name the repeated run with --run, or an endpoint with --base-url")
    results = open_store(store, results_repo)
    if run is not None and live_dataset is not None:
        from ..eval.leaderboard.live_data import load_live
        from ..eval.leaderboard.live_verify import verify_live

        live = load_live(live_dataset)
        _print_verified(verify_live(results, submission, run, live, by=names.check_user(by)), live=True)
        return
    if live_dataset is not None:
        raise UserError(
            "no endpoint can be matched to a live run: play it again, with --run and --live-dataset"
        )
    refuse_live(results.submission(submission))
    data = load_asked(dataset, revision)
    if run is None:
        match_endpoint(results, submission, data, base_url or "", model, work, names.check_user(by))
        return
    _print_verified(verify_submission(results, submission, run, data, by=names.check_user(by)))


def _print_verified(made: "Verification", live: bool = False) -> None:
    rows, figure = ("faulted episodes", "success") if live else ("rows", "perturbed accuracy")
    _console.out.print(
        f"verified {made.submission}: same verdict in {made.agree} of {made.rows} {rows}, {figure} "
        f"{numbers.number(made.repeated)} against {numbers.number(made.submitted)} "
        f"(p = {numbers.p_value(made.p)})",
        markup=False,
    )


@app.command()
def rebuild(
    dataset: Annotated[
        list[str], typer.Option("--dataset", help="Release folder or Hub id; repeatable, one per version.")
    ],
    live_dataset: Annotated[
        list[str] | None, typer.Option("--live-dataset", help="The same for live runs; repeatable.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    results_repo: RepoOption = None,
    num_proc: NumProc = 1,
    as_json: AsJson = False,
) -> None:
    """Score every stored submission again from its raw predictions and make the boards from that.

    Prints what differs from what was served; the exit code is 1 if anything does.

    Example: rbtc leaderboard rebuild --dataset robustbench-tc
    """
    from ..eval.leaderboard.live_data import load_live
    from ..eval.leaderboard.rebuild import rebuild as rebuild_all
    from ..eval.leaderboard.serve import load_asked, open_store

    results = open_store(store, results_repo)
    kept = "submissions scored so far are kept; run the same command again"
    with _console.status("scoring", kept) as tell:
        found = rebuild_all(
            results,
            [load_asked(one) for one in dataset],
            live=[load_live(one) for one in live_dataset or ()],
            num_proc=num_proc,
            progress=tell,
        )
    if as_json:
        _console.json(found)
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
    live_dataset: Annotated[
        str | None,
        typer.Option("--live-dataset", help="Hub id of the live dataset; without it no live run is taken."),
    ] = None,
    live_revision: Annotated[str | None, typer.Option(help="Of the live dataset.")] = None,
    title: Annotated[str, typer.Option(help="The Space's title.")] = "RobustBench-TC Leaderboard",
    force: Force = False,
    discard_changes: DiscardChanges = False,
) -> None:
    """Write a folder that is a Hugging Face Space once it is pushed: app, requirements, card, package.

    Example: rbtc leaderboard export space --dataset acme/robustbench-tc --results-repo acme/results
    """
    from ..eval.leaderboard.space import export_space

    made = export_space(
        folder,
        dataset=dataset,
        revision=revision,
        live_dataset=live_dataset,
        live_revision=live_revision,
        results_repo=results_repo,
        title=title,
        force=force,
        discard_changes=discard_changes,
    )
    _console.out.print(
        f"{made} files in {folder}: push them to a Space, and give it the secret HF_TOKEN with write access "
        f"to {results_repo}",
        markup=False,
    )
