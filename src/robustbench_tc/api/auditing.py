"""`audit`: the gate's verdict on a build, and other looks at what an audit rests on."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..errors import need_extra
from ..option import Option, Tell, silent
from . import options

if TYPE_CHECKING:
    from ..audits.judge import Judge
    from ..audits.outcomes import Audited, Golds, LookedAgain, Unreviewed

_JUDGE, _LOOK = "Judges", "Instead of auditing"


def audit(
    folder: Annotated[
        str | Path,
        Option(
            help="A build or a release; or a run, or its predictions.parquet or scores.parquet.", typed=Path
        ),
    ],
    *,
    dataset: Annotated[str | Path | None, options.DATASET] = None,
    judge: Annotated[
        "str | Sequence[Judge]",
        Option(
            help="Judge of texts without a judgment in the package: recorded (nobody), recorded:PATH, or "
            "MODEL[@BASE_URL].",
            typed=str,
            panel=_JUDGE,
        ),
    ] = "recorded",
    second_judge: Annotated[
        str | None, Option(help="Second judge of the same draw; their agreement is reported.", panel=_JUDGE)
    ] = None,
    n: Annotated[
        int, Option(help="Text pairs per type drawn for the second judge; 0: all.", panel=_JUDGE, at_least=0)
    ] = 50,
    store: Annotated[str | Path, options.STORE] = Path(".rbtc/judgments.jsonl"),
    max_requests: Annotated[int | None, options.MAX_REQUESTS] = None,
    benchmark: Annotated[Path | None, options.BENCHMARK] = None,
    sources: Annotated[Path | None, options.SOURCES] = None,
    rlla: Annotated[Path | None, options.RLLA] = None,
    worlds: Annotated[Sequence[str], options.WORLDS] = (),
    world_python: Annotated[str | None, options.WORLD_PYTHON] = None,
    seed: Annotated[int, options.SEED] = 0,
    out: Annotated[Path | None, options.OUT] = None,
    full: Annotated[bool, options.FULL] = False,
    golds: Annotated[
        int | None,
        Option(
            help="Print this many golden values, drawn with --seed, and the words that support each; "
            "credentials are shown.",
            panel=_LOOK,
            at_least=0,
        ),
    ] = None,
    gold_class: Annotated[
        str | None, Option(help="Draw golden values of this class only: nowhere, schema, …", panel=_LOOK)
    ] = None,
    refetch: Annotated[
        bool, Option(help="Fetch every address of the evidence again; exits 1 if one is gone.", panel=_LOOK)
    ] = False,
    review_out: Annotated[
        Path | None,
        Option(
            help="Print the unreviewed findings in upstream's texts, credentials included, and write "
            "their hashes to this file.",
            panel=_LOOK,
        ),
    ] = None,
    progress: Tell = silent,
) -> "Audited | Golds | LookedAgain | Unreviewed":
    """Audit a build: exits 0 if it may be released, 1 if not.

    The report, its page and data docs are written to --out (default: the build). For a run, the predictions
    are checked against its dataset.

    Example: rbtc audit robustbench-tc --judge gpt-5.4
    Example: rbtc audit runs/qwen3 --dataset robustbench-tc
    Example: rbtc audit robustbench-tc --golds 200 --gold-class nowhere

    Raises UserError for a folder that is not a build, and for a judge or sources that cannot be used.

    >>> audit("robustbench-tc").passed  # doctest: +SKIP
    """
    if find_spec("great_expectations") is None:
        raise need_extra("great_expectations", "audit")
    from ..audits import audit_files, gate, outcomes
    from ..llm import store as store_files

    folder = Path(folder)
    if golds is not None or gold_class is not None:
        return outcomes.golds_of(folder, 200 if golds is None else golds, gold_class, seed)
    if refetch:
        return outcomes.looked_again(folder, progress)
    if review_out is not None:
        return outcomes.unreviewed(folder, review_out)
    if folder.is_file() or (folder / "run.json").is_file():
        if out is not None:
            audit_files.check(out, alone=True)
        report = gate.audit_predictions(*outcomes.answers_of(folder, dataset))
        return outcomes.Audited(report, () if out is None else gate.write(report, out), full)
    out = audit_files.check_place(folder, out)
    store_files.refuse_foreign(Path(store))
    files: dict[str, bytes] = {}
    report = gate.audit(
        folder,
        judge=judge,
        second_judge=second_judge,
        n=n or None,
        benchmark=benchmark,
        sources=sources,
        rlla=rlla,
        worlds=worlds,
        world_python=world_python,
        seed=seed,
        store=Path(store),
        max_requests=max_requests,
        progress=progress,
        files=files,
    )
    return outcomes.Audited(report, gate.write(report, out, files), full)
