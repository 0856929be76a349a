"""From a build to a version on the Hub, and what becomes of a wrong one: `release`, `publish`, `amend`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors import UserError
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..builders.errata_files import Answers
    from ..release.amend import Amended
    from ..release.freeze import Released
    from ..release.publish import Published
    from ..release.yank import Yanked

_WITHDRAW = "Withdrawing"


def release(
    build: Annotated[str | Path, Option(help="What `rbtc build` wrote.", typed=Path)],
    out: Annotated[str | Path, options.OUT],
    *,
    version: Annotated[str, Option(help="Semantic, such as 1.0.0.")],
    created_at: str | None = None,
    previous: Annotated[
        str | None,
        Option(help="The previous version, a folder or org/name@v1.0.0; --version is checked against it."),
    ] = None,
    sign: Annotated[
        Path | None, Option(help="An ed25519 private key, OpenSSH or PEM, that signs the manifest.")
    ] = None,
    repo: Annotated[
        str | None, Option(help="Repository to publish to, org/name; its address is in the citation.")
    ] = None,
    doi: Annotated[str | None, Option(help="The DOI reserved for this version.")] = None,
    sources: Annotated[Path | None, options.SOURCES] = None,
    benchmark: Annotated[Path | None, options.BENCHMARK] = None,
    worlds: Annotated[Sequence[str], options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    trial: Annotated[bool, Option(help="Release even the starter samples, to try the commands.")] = False,
    own_data: Annotated[bool, options.OWN_DATA] = False,
    say: Tell = silent,
    progress: Tell = silent,
) -> "Released":
    """Audit a build and freeze it: cards with its own numbers, croissant.json, a manifest of every file.

    The audit runs on the files to be released; a report in the build is not read. The release is refused
    while a judge has not scored every text.

    Example: rbtc release robustbench-tc --version 1.0.0 --out releases/1.0.0/robustbench-tc
    Example: rbtc release robustbench-tc --version 1.1.0 --out releases/1.1.0/robustbench-tc \\
    --previous acme/robustbench-tc@v1.0.0 --sign ~/.ssh/releases --repo acme/robustbench-tc

    Raises UserError if the gate is red, or if the version step is too small for the changes in the data.

    >>> release("robustbench-tc", "releases/1.0.0/robustbench-tc", version="1.0.0").version  # doctest: +SKIP
    """
    from ..release import freeze
    from ..release.sign import ask_passphrase, private_key

    out = Path(out)
    moment = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    frozen = freeze.release(
        Path(build),
        out,
        version=version,
        created_at=created_at or moment,
        previous=previous,
        repo=repo,
        doi=doi,
        trial=trial,
        own_data=own_data,
        key=None if sign is None else private_key(sign, warn=say, passphrase=ask_passphrase()),
        sources=sources,
        benchmark=benchmark,
        worlds=worlds,
        world_python=world_python,
        progress=progress,
    )
    return freeze.Released(frozen, out)


def publish(
    folder: Annotated[str | Path, Option(help="A release folder.", typed=Path)],
    repo: Annotated[str, Option(help="The repository on the Hub, ORG/NAME.")],
    *,
    token: str | None = None,
    dry_run: Annotated[bool, options.DRY_RUN] = False,
    private: Annotated[bool, Option(help="Create the repository, if it does not exist, as private.")] = False,
    own_data: Annotated[bool, options.OWN_DATA] = False,
    timeout_s: Annotated[float, options.TIMEOUT] = 300.0,
    progress: Tell = silent,
) -> "Published":
    """Publish a release on the Hub: upload it in one commit, read it back, compare it, then tag its version.

    The token comes from HF_TOKEN or `hf auth login`. A failed upload leaves no tag; run the same command
    again to complete it.

    Example: rbtc publish releases/1.0.0/robustbench-tc acme/robustbench-tc --dry-run

    Raises UserError for a folder that is not a gated release, for a token without write rights, for a tag
    that exists, and for a failed upload.

    >>> publish("releases/1.0.0/robustbench-tc", "acme/robustbench-tc").tag  # doctest: +SKIP
    """
    from ..release.publish import publish as send

    return send(
        Path(folder),
        repo,
        token=token,
        dry_run=dry_run,
        private=private,
        own_data=own_data,
        timeout_s=timeout_s,
        progress=progress,
    )


def amend(
    release: Annotated[
        str | Path, Option(help="A release folder; with --withdraw also org/name@VERSION.", typed=Path)
    ],
    out: Annotated[str | Path | None, options.OUT] = None,
    *,
    clean_id: Annotated[str | None, Option(help="The sample whose golden answers are wrong.")] = None,
    answers: Annotated[
        "Path | Answers | None",
        Option(
            help="JSON file: the right golden answers, as the column golden_answers has them.",
            typed=Path | None,
        ),
    ] = None,
    reason: Annotated[
        str,
        Option(
            help="What was wrong, in one sentence; shown on the card and to everybody who loads the version."
        ),
    ] = "",
    date: str | None = None,
    sources: Annotated[Path | None, options.SOURCES] = None,
    withdraw: Annotated[
        bool, Option(help="Withdraw the version instead; its files stay where they are.", panel=_WITHDRAW)
    ] = False,
    use: Annotated[str | None, Option(help="The version to use instead.", panel=_WITHDRAW)] = None,
    undo: Annotated[bool, Option(help="Undo the withdrawal.", panel=_WITHDRAW)] = False,
    kind: Annotated[
        Literal["robustbench-tc", "toolrl-dr", "robustbench-tc-live", "checkpoint"], options.KIND
    ] = "robustbench-tc",
    timeout_s: Annotated[float, options.TIMEOUT] = 300.0,
    progress: Tell = silent,
) -> "Amended | Yanked":
    """Correct a golden answer: rebuild the release with an erratum, and show what changes.

    The new build passes the gate like any other before it becomes a version. Every row of the sample follows
    the new answers: a list of answers, each a list of calls with a name and, per parameter, the list of its
    accepted values.

    --withdraw builds nothing; it warns everybody who loads the version. On the Hub it writes `yanked.json`
    and the top of the card on main, and moves no tag. In a folder it writes `yanked.json`, and `rbtc publish`
    then refuses the folder.

    Example: rbtc data amend releases/1.0.0/robustbench-tc --clean-id bfcl_v3__simple_7 \\
    --answers right.json --reason "The unit is kilometres." --out robustbench-tc
    Example: rbtc data amend acme/robustbench-tc@v1.0.0 --withdraw --reason "12 golds are wrong." --use 1.1.0

    Raises UserError for a folder that is not a release, and for an answer that cannot be corrected.

    >>> amend("releases/1.0.0/robustbench-tc", withdraw=True, reason="Wrong unit.").version  # doctest: +SKIP
    """
    from ..release.amend import amend as correct
    from ..release.hub import Hub
    from ..release.verify import parse_name
    from ..release.yank import yank, yank_on_hub

    date = date or datetime.now(UTC).date().isoformat()
    reason = " ".join(reason.split())
    if undo and reason:
        raise UserError("--undo takes no --reason")
    if not undo and not reason:
        raise UserError("--reason is missing: say in one sentence what was wrong")
    if withdraw or undo:
        if Path(release).expanduser().exists():
            return yank(Path(release).expanduser(), reason or None, date=date, use=use)
        name, revision = parse_name(str(release))
        repo_type = "model" if kind == "checkpoint" else "dataset"
        hub = Hub(name, repo_type, timeout_s=timeout_s, progress=progress)
        return yank_on_hub(hub, revision, reason or None, date=date, use=use)
    if out is None or clean_id is None or answers is None:
        raise UserError("name the sample with --clean-id, its right --answers, and the new build with --out")
    return correct(
        Path(release),
        Path(out),
        clean_id=clean_id,
        answers=answers,
        reason=reason,
        date=date,
        sources=sources,
        progress=progress,
    )
