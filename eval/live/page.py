"""Live runs as one HTML page that needs no outside request: what each fault costs, and episodes step by step.

An episode stands as a list of its calls in order: what was called, what the agent was answered, what really
happened, and what changed in the world. Where the page cannot hold every episode, wrong and faulted ones come
first, and the page says how many it left out.
"""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from robustbench_tc.io import templates
from robustbench_tc.io.folders import atomic_dir
from robustbench_tc.safe_text import safe, safe_json
from robustbench_tc.schema import EXPLICIT, Episode, Json, dumps

from .score import LiveScore
from .show import Shown, ShownCall

MOST_EPISODES = 400
"""Episodes that are drawn step by step."""

LONGEST = 1_500
"""Characters that are shown of a text of the model's or of a result."""


class Table(msgspec.Struct, frozen=True):
    """A table as it stands on the page; cells are texts."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


class LivePage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows of one run."""

    run: str
    model: str
    mode: str
    dataset: str
    finding: str
    tables: tuple[Table, ...]
    episodes: tuple[Shown, ...]
    left_out: int = 0
    """Episodes of the run that are not drawn."""


def chosen(
    episodes: Sequence[Episode], scores: Sequence[LiveScore], most: int = MOST_EPISODES
) -> tuple[list[Episode], int]:
    """The episodes that the page draws, in their order, and how many it leaves out: where it cannot hold all,
    wrong ones come first, then faulted ones."""
    right = {(one.id, one.repeat): one.success is True for one in scores}

    def key(one: Episode) -> tuple[bool, bool, str, int]:
        return right.get((one.id, one.repeat), False), one.type_code == "clean", one.id, one.repeat

    kept = {(one.id, one.repeat) for one in sorted(episodes, key=key)[:most]}
    return [one for one in episodes if (one.id, one.repeat) in kept], len(episodes) - len(kept)


def write(page: LivePage, folder: Path, *, discard_changes: bool = False) -> Path:
    """The folder with `live.html` and `live.json`, all or nothing; an earlier one of ours is replaced.

    UserError for a folder that holds anything else.
    """
    with atomic_dir(folder, kind="live-report", force=True, discard_changes=discard_changes) as made:
        (made / "live.html").write_text(html(page), encoding="utf-8")
        found = msgspec.json.format(msgspec.json.encode(page), indent=1).decode()
        (made / "live.json").write_text(f"{safe_json(found)}\n", encoding="utf-8")
    return folder / "live.html"


def html(page: LivePage) -> str:
    """The page. Texts of models are escaped, and what would steer a terminal or turn a line is spelled out
    (`_seen`); its policy lets these style sheets in and nothing else."""
    styles = [_file("../report/page.css"), _file("live.css")]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in styles]
    tasks: dict[str, list[Shown]] = {}
    for one in page.episodes:
        tasks.setdefault(one.scores.clean_id, []).append(one)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        _environment()
        .get_template("live.html.j2")
        .render(
            page=page,
            styles=[Markup(text) for text in styles],
            policy=f"default-src 'none'; style-src {hashes}; base-uri 'none'; form-action 'none'",
            tasks=tasks,
            **_DRAWING,
        )
    )


def drawn(shown: Shown) -> Markup:
    """One episode as it stands on the page, for another page: escaped in the same way."""
    return Markup(_environment().get_template("episode.html.j2").render(one=shown, **_DRAWING))


def outcome(shown: Shown) -> str:
    """One word for how an episode ended, which is also the class of its mark."""
    score = shown.scores
    if score.success is None:
        return "unscored"
    if score.success:
        return "right"
    return "silent" if score.silent_failure else "wrong"


def happened(call: ShownCall) -> str:
    """What really happened where the agent could not see it; "" for an ordinary call."""
    if call.problem:
        return {
            "timeout": "cut off: it took too long",
            "died": "its world ended in this call and was started again without it",
            "not_offered": "no such tool",
            "arguments": "the arguments are no object",
        }[call.problem]
    if not call.met:
        return "" if call.executed else "not carried out"
    times = {0: "not carried out", 1: "carried out", 2: "carried out twice"}[call.executed]
    return f"met the fault: {times}"


def _anchor(shown: Shown) -> str:
    """An id for the address of an episode: row ids may hold anything."""
    return "e" + hashlib.sha256(f"{shown.id} {shown.repeat}".encode()).hexdigest()[:12]


def _clip(text: str | None) -> str:
    text = text or ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} characters more)"


def _text(value: Json) -> str:
    """A value as JSON, cut."""
    try:
        return _clip(dumps(value))
    except ValueError:
        return _clip(repr(value))


_DRAWING = {
    "clip": _clip,
    "text": _text,
    "outcome": outcome,
    "happened": happened,
    "anchor": _anchor,
    "explicit": EXPLICIT,
}
"""What the template of an episode uses."""


def _file(name: str) -> str:
    return Path(__file__).parent.joinpath(name).read_text(encoding="utf-8")


def _environment() -> jinja2.Environment:
    made: Any = templates.environment("robustbench_tc.eval.live")
    environment: jinja2.Environment = made.overlay(finalize=_seen)
    return environment


def _seen(value: Any) -> Any:
    """A value of the template as it is put in: only style sheets, which are ours, stay as they are."""
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value
