"""The board: a results repository, its checker, its pages, and the form of a Space."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..option import Option, Tell, listed, silent
from . import options

if TYPE_CHECKING:
    from ..eval.leaderboard.check import Report
    from ..eval.leaderboard.entry import Vouched
    from ..eval.leaderboard.site import Built
    from ..eval.leaderboard.submit import Submitted


def init(
    place: Annotated[str | Path, options.RESULTS],
    dataset: Annotated[str, options.ASKED],
    *,
    live: Annotated[
        str | None, Option(help="Dataset of live runs; without it the board accepts no live run.")
    ] = None,
    own: Annotated[
        tuple[str, ...],
        Option(help="Datasets of own tools whose runs are accepted. Repeatable.", read=listed),
    ] = (),
) -> str:
    """Create a results repository: status.yaml, and a card that explains submissions, tokens and the webhook.

    Example: rbtc leaderboard init acme/results acme/robustbench-tc@v1.0.0

    Raises UserError if one exists already.
    """
    from ..eval.leaderboard.submit import init as begin

    files = begin(str(place), dataset, live=live, own=own)
    return f"{place} has {', '.join(files)}; its README.md says what is left to do"


def submit(
    run: Annotated["str | Path", options.RUN],
    to: Annotated[str | Path, Option(help="The results repository to submit to.", dashed=True)],
    *,
    org: Annotated[str | None, options.ORG] = None,
    model: Annotated[str | None, options.MODEL] = None,
    mode: Annotated[Literal["fc", "prompt"], options.MODE] = "prompt",
    weights: Annotated[
        Literal["open", "closed"] | None, Option(help="Whether anybody can download the weights.")
    ] = None,
    params: Annotated[float | None, Option(help="Parameters in billions.", at_least=0)] = None,
    licence: Annotated[str | None, Option(help="SPDX id, such as apache-2.0.")] = None,
    card: Annotated[str | None, Option(help="URL of the model's card.")] = None,
    price: Annotated[tuple[float, float] | None, options.PRICE] = None,
    scaffold: Annotated[str | None, Option(help="The agent around the model.")] = None,
    defences: Annotated[str | None, Option(help="Defences in the scaffold.")] = None,
    contact: Annotated[str | None, Option(help="Contact for questions; public.")] = None,
    note: Annotated[str | None, Option(help="A line for the model's page.")] = None,
    account: Annotated[str | None, options.ACCOUNT] = None,
    dataset: Annotated[str | None, options.DATASET] = None,
    dry_run: Annotated[bool, options.DRY_RUN] = False,
    say: Tell = silent,
) -> "Submitted":
    """Submit a run, static or live: check it here as the board does, then open one pull request.

    The same command finds a pull request that is open already. If --to is a folder, the run is copied into
    it. RUN may also be a .jsonl file of predictions, ours or the paper's, which needs --model and --mode.

    Example: rbtc leaderboard submit runs/qwen3-8b-fc --to acme/results --licence apache-2.0 --weights open

    Raises UserError for a run that is not accepted.
    """
    from ..eval.leaderboard.entry import Submission
    from ..eval.leaderboard.submit import submit as send
    from ..eval.record import open_run

    price_in, price_out = price or (None, None)
    stated = Submission(
        model=model or open_run(Path(run)).record.settings.model,
        weights=weights,
        params_b=params,
        licence=licence,
        card=card,
        price_in=price_in,
        price_out=price_out,
        agent=scaffold,
        defences=defences,
        contact=contact,
        note=note,
    )
    return send(
        Path(run), str(to), stated, org=org, by=account, mode=mode, dataset=dataset, dry_run=dry_run, said=say
    )


def check(
    place: Annotated[str | Path, options.RESULTS],
    *,
    pr: Annotated[int | None, Option(help="Only this pull request.", at_least=1)] = None,
    rescore: Annotated[
        bool, Option(help="Write every entry again, including those of this version of the checker.")
    ] = False,
    watch: Annotated[
        float | None, Option(help="Keep running, and check again after this many seconds.", at_least=1)
    ] = None,
    dataset: Annotated[str | None, options.DATASET] = None,
    num_proc: Annotated[int, options.NUM_PROC] = 1,
    say: Tell = silent,
) -> "Report":
    """Score runs without an entry of this version: comment on open pull requests, write merged runs' entries.

    Exits 1 if a maintainer has to look at something.

    Example: rbtc leaderboard check acme/results --watch 300

    Raises UserError if the repository cannot be read or written.
    """
    from ..eval.leaderboard.check import Checker, watching

    checker = Checker(str(place), dataset=dataset, jobs=num_proc, said=say)
    if watch is not None:
        watching(checker, watch, pr, rescore)
    return checker.check(pr, rescore)


def build(
    place: Annotated[str | Path, options.RESULTS],
    *,
    out: Annotated[Path, options.OUT] = Path("site"),
    form: Annotated[
        str | None, Option(help="Address of a submission form, for a link on the front page.")
    ] = None,
) -> "Built":
    """Write the board as static pages for any host, readable without JavaScript.

    Example: rbtc leaderboard build acme/results --out site

    Raises UserError for a folder that is not a site that rbtc wrote.
    """
    from ..eval.leaderboard import site
    from ..eval.leaderboard.repository import Hub, open_place, read_entries

    there = open_place(str(place))
    status, entries, dropped = read_entries(there)
    repository = there.repo if isinstance(there, Hub) else None
    return site.build(entries, status, out, repository=repository, dropped=dropped, form=form)


def space(
    folder: Annotated[Path, Option(help="New folder for the Space's files.")],
    *,
    results: Annotated[str, Option(help="The results repository on the Hub, ORG/NAME.")],
    title: Annotated[str, Option(help="The Space's title.")] = "RobustBench-TC Leaderboard",
    force: Annotated[bool, options.FORCE] = False,
    discard_changes: Annotated[bool, options.DISCARD_CHANGES] = False,
) -> str:
    """Write the files of a Hugging Face Space: the pages, a submission form and the Hub's webhook.

    Example: rbtc leaderboard space board --results acme/results

    Raises UserError for an existing folder.
    """
    from ..eval.leaderboard.space import space as folder_of_space

    files = folder_of_space(
        folder, results=results, title=title, force=force, discard_changes=discard_changes
    )
    return (
        f"{files} files in {folder}: push them to a Space, and give it the secrets HF_TOKEN, which may write "
        f"to {results}, and WEBHOOK_SECRET, the one of the webhook"
    )


def serve(
    place: Annotated[str | Path, options.RESULTS],
    *,
    host: Annotated[str, Option(help="Address to listen on; 0.0.0.0 for every interface.")] = "127.0.0.1",
    port: Annotated[int, options.PORT] = 7860,
) -> None:
    """Serve the Space's pages and form on this machine; submissions go straight into the folder.

    Example: rbtc leaderboard serve results

    Raises UserError if gradio is missing (extra `leaderboard`) or the folder is not a results repository.
    """
    from ..eval.leaderboard.space import serve as run

    run(place, host=host, port=port)


def verify(
    place: Annotated[str | Path, options.RESULTS],
    run_id: Annotated[str, Option(help="The run to vouch for: org/model/id.")],
    *,
    repeated: Annotated[Path | None, Option(help="Folder of the repeated run.")] = None,
    base_url: Annotated[tuple[str, ...], options.BASE_URL] = (),
    model: Annotated[str | None, options.MODEL] = None,
    out: Annotated[Path | None, options.OUT] = None,
    dataset: Annotated[str | None, options.DATASET] = None,
    account: Annotated[str, options.ACCOUNT] = "maintainer",
    say: Tell = silent,
) -> "Vouched":
    """Vouch for a run in status.yaml, because you repeated it or its endpoint gives the same answers.

    With --base-url the endpoint is asked 300 of its rows in new words. The answers are stored in --out, by
    default verify-RUNID; run the same command again to resume.

    Example: rbtc leaderboard verify acme/results acme/alpha/20261120-96a2067ff4c1 --repeated runs/repeated
    Example: rbtc leaderboard verify acme/results acme/alpha/20261120-96a2067ff4c1 --base-url http://a.b/v1

    Raises UserError if the repeated run does not match.
    """
    from ..eval.leaderboard.verify import verify as vouch

    return vouch(
        str(place),
        run_id,
        repeated=repeated,
        base_url=base_url,
        model=model,
        work=out,
        by=account,
        dataset=dataset,
        said=say,
    )
