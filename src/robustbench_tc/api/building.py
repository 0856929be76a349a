"""`build`: the benchmark, a dataset of own cases, the training data."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from .. import taxonomy
from ..compute.parallel import SERIAL, Workers
from ..errors import UserError, unknown
from .at_hand import leaks_of
from .own import build_own
from .progress import Progress

if TYPE_CHECKING:
    from ..builders.build import BuildSpec
    from ..builders.generate import Settings
    from ..builders.report import BuildReport
    from ..builders.sources import Profile
    from ..builders.toolrl_dr import TrainingSpec
    from ..builders.toolrl_report import TrainingReport
    from ..eval.inputs import Names
    from ..own.mcp_tools import Server


def build(
    out: str | Path,
    *,
    profile: "Profile" = "paper",
    sources: Path | None = None,
    cases: Path | None = None,
    server: "Server | None" = None,
    types: "Names" = (),
    design: str | None = None,
    generator: Sequence[str] = (),
    seed: int = 0,
    allow_missing: bool = False,
    max_requests: int | None = None,
    max_cost: float | None = None,
    price: tuple[float, float] | None = None,
    concurrency: int = 16,
    store: Path = Path(".rbtc/generations.jsonl"),
    errata: Path | None = None,
    workers: Workers = SERIAL,
    force: bool = False,
    discard_changes: bool = False,
    progress: Progress = lambda line: None,
) -> "BuildReport":
    """`rbtc build`: writes the benchmark into the new folder `out`, all or nothing.

    `cases`: a cases file of one's own tools, instead of a profile of the benchmark; `server`: a live MCP
    server whose tools they name. `types`: codes, components, packs, levels and mixtures, by default all 22.
    `design`: `factorial`, whose cells are built beside the `types` that are named. `generator`: who writes
    texts, as on the command line; by default what ships with the package, and for `cases` honest rules.

    `max_cost` is in the currency of `price`, which is per million prompt and completion tokens; answers of
    endpoints are kept in `store` and never asked for twice. `workers` moves no byte.

    Raises UserError for a wrong option, sources that are not as pinned, a text that nobody wrote (unless
    `allow_missing`), a spent budget, and a folder that is there already (`force` replaces one of ours).
    >>> build("robustbench-tc", profile="bundled").total  # doctest: +SKIP
    """
    from ..builders.build import BuildSpec, factorial, select_types
    from ..builders.generate import Settings
    from ..builders.sources import Profile
    from ..io.errata import read_file
    from ..io.store import refuse_foreign

    out = Path(out)
    if profile not in get_args(Profile):
        raise unknown("profile", profile, get_args(Profile))
    if design not in (None, "factorial"):
        raise unknown("design", str(design), ("factorial",))
    refuse_foreign(store)
    if few := taxonomy.few(names := taxonomy.split(types)):
        listed = ", ".join(f"{kind.code} {kind.rows.paper}" for kind in few)
        progress(f"{len(few)} types left out, too small in profile paper: {listed} (name one to build it)")
    if cases is not None:
        _refuse_beside_cases(sources=sources, errata=errata)
    spec = BuildSpec(
        profile=profile,
        sources=sources,
        codes=select_types([*names, *(factorial() if design else ())]),
        seed=seed,
        generators=tuple(generator) or ("recorded",),
        settings=Settings(
            store=store,
            concurrency=concurrency,
            max_requests=max_requests,
            max_cost=max_cost,
            price=price,
            workers=workers,
        ),
        allow_missing=allow_missing,
        errata=() if errata is None else read_file(errata),
        workers=workers,
    )
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder with --out")
    if cases is not None:
        replace = {"force": force, "discard_changes": discard_changes}
        return build_own(Path(cases), spec, out, server, generator=generator, progress=progress, **replace)
    if server is not None:
        raise UserError("--tools-from-mcp is for your own cases: name them with --cases")
    return build_release(spec, out, force=force, discard_changes=discard_changes, progress=progress)


def _refuse_beside_cases(**options: Path | None) -> None:
    for name, given in options.items():
        if given is not None:
            raise UserError(f"--{name} is for the published benchmark: leave it out beside --cases")


def build_release(
    spec: "BuildSpec",
    out: Path,
    *,
    force: bool = False,
    discard_changes: bool = False,
    progress: Progress = lambda line: None,
) -> "BuildReport":
    """`build` of a spec: the builder with the scorers' self-check of every golden answer, and the card."""
    from ..builders.build import build
    from ..dataset_cards.render import benchmark_card
    from ..eval.validate import self_check, taken

    return build(
        spec,
        out,
        card=benchmark_card,
        accept=self_check,
        taken=taken,
        force=force,
        discard_changes=discard_changes,
        progress=progress,
    )


def build_training(
    spec: "TrainingSpec",
    out: Path,
    *,
    generator: Sequence[str] = ("none",),
    settings: "Settings | None" = None,
    sources: Path | None = None,
    tokens: Callable[[list[dict[str, str]]], int] | None = None,
    max_tokens: int = 2048,
    force: bool = False,
    discard_changes: bool = False,
    progress: Progress = lambda line: None,
) -> "TrainingReport":
    """`rbtc build toolrl-dr`: the training data, with every row's reward and leaks to the benchmark checked.

    `sources`: the benchmark's, for the leak check; by default those at hand, and without any the report says
    so. `tokens` counts a prompt's tokens; prompts over `max_tokens` are dropped. Raises UserError.
    """
    from ..builders.generate import Settings, parse_generators
    from ..builders.sources.fetch import default_root
    from ..builders.toolrl_dr import build
    from ..builders.toolrl_versions import Checks
    from ..dataset_cards.training import training_card
    from ..train_recipes.toolrl_dr.reward import earns_maximum

    generators = parse_generators(generator, settings=settings or Settings())
    root: Path | None = sources or default_root()
    if root is not None and not (root / "bfcl").is_dir():
        if sources is not None:
            raise UserError(f"no benchmark sources in {sources}: name their folder, or leave --sources out")
        root = None
    leaks, note = leaks_of(root, progress)
    return build(
        spec,
        out,
        checks=Checks(earns_maximum=earns_maximum, leaks=leaks, tokens=tokens, max_tokens=max_tokens),
        card=training_card,
        generators={kind: one for kind, one in generators.items() if one.label != "none"},
        leak_note=note,
        force=force,
        discard_changes=discard_changes,
        progress=progress,
    )
