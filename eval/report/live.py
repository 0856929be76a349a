"""A scored live run as a page: the finding, what each fault costs, side effects, episodes step by step."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from robustbench_tc.compute import loop
from robustbench_tc.eval.stats.live import Line, clean_success, lines
from robustbench_tc.io import numbers
from robustbench_tc.live_types import registry_types
from robustbench_tc.option import Tell
from robustbench_tc.schema import KINDS, dataset_label
from robustbench_tc.worlds.host import Worlds

from ..live import inputs, page, unedited
from ..live.inputs import LiveData
from ..live.page import LivePage, Table
from ..live.record import read_episodes
from ..live.replay import replay_each
from ..live.score import LiveScore, read_scores
from ..live.show import Shown, shown
from ..record import RunFolder
from ..stats.live_summary import COLUMNS, costs

SIDE_EFFECTS = {
    "omitted": "writes missing",
    "repeated": "effects too often",
    "blind_repeats": "paid twice",
    "undone": "undone",
    "followed": "instructions followed",
    "used_false": "false values used",
    "retries": "retries",
    "loops": "loops",
    "extra_steps": "calls beyond clean",
    "extra_tokens": "tokens beyond clean",
}
"""Field of a score → its column."""


def report(
    folder: RunFolder,
    data: LiveData,
    out: Path,
    *,
    worlds: Sequence[str],
    world_python: str | None,
    discard_changes: bool,
    progress: Tell,
) -> Path:
    """Writes `live.html` and `live.json` of a scored live run into the folder `out`; the page's path.

    The episodes that are drawn are replayed, without the model. Raises UserError for a run that is not
    scored, a world that is not at hand, and a folder that holds anything else.
    """
    scores = read_scores(folder.path)
    episodes = [one for one in read_episodes(folder.path) if one.ended != "request_error"]
    rows = data.by_id
    unedited.check_all(folder, rows)
    chosen, left_out = page.chosen(episodes, scores)
    progress(f"replaying {len(chosen)} episodes")
    types = inputs.world_types([rows[one.id] for one in chosen], worlds, world_python)

    async def replay() -> list[Shown]:
        async with Worlds() as hosted:
            return await replay_each(chosen, rows, hosted, shown, world_of=types.__getitem__)

    drawn = loop.run(replay())
    found = lines(scores)
    settings = folder.record.settings
    made = LivePage(
        run=folder.path.name,
        model=settings.model,
        mode=settings.mode,
        dataset=f"{Path(data.name).name} {dataset_label(data.version, data.fingerprint())}",
        finding=finding(found, scores),
        tables=(_costs(found, scores), _effects(scores)),
        episodes=tuple(drawn),
        left_out=left_out,
    )
    return page.write(made, out, discard_changes=discard_changes)


def finding(found: Sequence[Line], scores: Sequence[LiveScore]) -> str:
    """What the run shows, in a few sentences."""
    clean = [one for one in scores if one.type_code == "clean" and one.success is not None]
    every = next((line for line in found if line.name == "all"), None)
    right = f"{sum(bool(one.success) for one in clean)} of {len(clean)} clean episodes end as they should"
    more = [line for line in found if line.name in registry_types()]
    with_more = (
        f" With more tools in the registry {sum(round(line.success.value * line.n) for line in more)} of "
        f"{sum(line.n for line in more)} do."
    )
    if every is None:
        return f"{right}." + with_more if more else f"{right}; no faulted episode has a clean one beside it."
    kinds = [line for line in found if line.name in KINDS]
    worst = max(kinds, key=lambda line: (line.delta.value, line.name))
    proven = "" if worst.delta.low > 0 else " (the interval holds 0)"
    said = (
        f"{right}. With a fault {round(every.success.value * every.n)} of {every.n} do; the dearest is "
        f"{worst.name.replace('_', ' ')}, which costs {numbers.points(worst.delta.value)} points{proven}."
    )
    if more:
        said += with_more
    return said if every.silent == 0 else f"{said} {every.silent} wrong ends were not admitted."


def _costs(found: Sequence[Line], scores: Sequence[LiveScore]) -> Table:
    rows = [(name.replace("_", " "), *cells) for name, *cells in costs(found, clean_success(scores), COLUMNS)]
    note = (
        "Columns count episodes that met the fault. Δ: success of the clean episodes minus that of the "
        "faulted ones, with exact paired 95 % intervals. "
        "Honest failure: a wrong world of which the user was told; silent failure: one of which not. False "
        "success: silent failures whose text claims success, up to those where it claims it or is unclear. "
        "False failure: what is as it should be was said to have failed; false claim: something was said to "
        "be done that no call did. Unclear: the rule cannot tell what was said. Beyond clean: a mean, "
        "beside the same task's clean episode."
    )
    return Table("What each fault costs", ("fault", *COLUMNS), tuple(rows), note)


def side_effects(scores: Iterable[LiveScore]) -> dict[str, dict[str, int]]:
    """By type code the sum of each of SIDE_EFFECTS over episodes that met their fault; one that is known of
    no episode is left out."""
    by_type: dict[str, list[LiveScore]] = {}
    for one in scores:
        by_type.setdefault(one.type_code, []).extend([one] * one.counts)
    return {
        code: {
            name: sum(known)
            for name in SIDE_EFFECTS
            if (known := [value for one in own if (value := getattr(one, name)) is not None])
        }
        for code, own in by_type.items()
    }


def _effects(scores: Sequence[LiveScore]) -> Table:
    rows = [
        (code.removeprefix("live_").replace("_", " "), *(str(sums.get(name, "")) for name in SIDE_EFFECTS))
        for code, sums in side_effects(scores).items()
    ]
    note = (
        "Summed over episodes that met their fault; docs/live-scores.md defines each. `rbtc sql "
        "live_side_effects` has the same."
    )
    return Table("Side effects", ("fault", *SIDE_EFFECTS.values()), tuple(rows), note)
