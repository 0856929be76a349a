"""The doors of `api`: relays between an agent and its model that carry out a plan."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .errors import UserError
from .schema import Sample, loads

if TYPE_CHECKING:
    from .proxy.scored import Scored
    from .proxy.summary import Summary


@contextmanager
def proxy_llm(
    upstream: str,
    plan: str | Path,
    *,
    port: int = 0,
    journal: str | Path | None = None,
    allow_writes: bool = False,
    silence_s: float = 600.0,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[str]:
    """`rbtc proxy llm`: an OpenAI-compatible address on loopback, while the block runs; yields it.

    `upstream`: the base URL of the model's server. `port`: 0 for a free one. `journal`: a file that gets a
    line for each exchange. `allow_writes`: faults may take the place of the results of any tool. `silence_s`:
    how long the server may say nothing. `say` gets a line, once each, for what the user should know: a
    request that did not get its type, a server that refuses the key.

    Raises UserError for a plan that is none, a dataset that lacks one of its types, and a port that is taken.

    >>> with proxy_llm("http://127.0.0.1:8000/v1", "plan.yaml") as base_url:  # doctest: +SKIP
    ...     run_agent(base_url.replace("/v1", "/s/refund-17.0/v1"))
    """
    from .eval import inputs
    from .proxy.door import Door
    from .proxy.plan import read_plan
    from .proxy.relay import serving

    found = read_plan(Path(plan))
    rows: tuple[Sample, ...] = ()
    fingerprint = None
    if found.bench is not None:
        data = inputs.load(found.bench)
        rows, fingerprint = data.rows, data.fingerprint()
        found = msgspec.structs.replace(found, bench=data.name)
        read_only, idempotent = _of_own_tools(Path(data.name))
        found = msgspec.structs.replace(
            found,
            read_only=(*found.read_only, *read_only),
            idempotent=(*found.idempotent, *idempotent),
        )
    if allow_writes:
        found = msgspec.structs.replace(found, allow_writes=True)
    door = Door(
        upstream,
        found,
        rows=rows,
        journal=None if journal is None else Path(journal),
        fingerprint=fingerprint,
        silence_s=silence_s,
        say=say,
    )
    if found.idle:
        say("the plan names neither types nor faults: requests pass as they are, and no journal is written")
    with serving(door, port) as url:
        yield url


def score_journal(
    journal: str | Path,
    *,
    dataset: str | Path | None = None,
    model: str | None = None,
    repeat: int | None = None,
    out: str | Path | None = None,
) -> "Scored":
    """`rbtc score JOURNAL`: a run folder of a door's journal, scored; `.folder.path` says where.

    `dataset`: where the plan's dataset lies now, if it was moved. `model`: the run's name. `repeat`: how many
    attempts at each row count. `out`: by default `runs/MODEL-fc-door`.

    Raises UserError for a journal that is damaged, holds no case, or was made with another dataset.

    >>> score_journal("journal.jsonl").predictions  # doctest: +SKIP
    """
    from .proxy import scored

    return scored.score(
        Path(journal),
        dataset=None if dataset is None else str(dataset),
        model=model,
        repeat=repeat,
        out=None if out is None else Path(out),
    )


def summarise_journal(journal: str | Path) -> "Summary":
    """`rbtc proxy summary`: calls, errors and faults of a door's journal, and what the agent did after them.

    >>> summarise_journal("journal.jsonl").faults  # doctest: +SKIP
    """
    from .proxy.journal import read
    from .proxy.summary import summary

    return summary(read(Path(journal)))


def _of_own_tools(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tools that a dataset of own tools calls read-only and idempotent, as an agent registers them."""
    from .own.wire_names import safe_name

    path = folder / "own.json"
    if not path.is_file():
        return (), ()
    try:
        book = loads(path.read_bytes())
        return tuple(map(safe_name, book["read_only"])), tuple(map(safe_name, book["idempotent"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path}: not as `rbtc build` writes it: build the dataset again") from None
