"""The judges that an audit names: recorded ones, a model behind an endpoint, one after the other."""

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..errors import UserError
from ..schema import Tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..audits.judge import Judge, Recorded
    from ..builders.generators.recorded import Book


def make_judge(spec: str, store: Path, max_requests: int | None, folder: Path) -> "Judge":
    """The judge that `--judge` names, after the judgments that ship with the package. Raises UserError."""
    from ..audits.judge import Chain

    name, _, path = spec.partition(":")
    if name == "recorded":
        first = recorded_judge(build=folder)
        return Chain(first, recorded_judge(Path(path), folder)) if path else replayed_judge(folder)
    return Chain(recorded_judge(build=folder), live_judge(spec, store, max_requests))


def second_opinion(spec: str, store: Path, max_requests: int | None) -> "Judge":
    """A judge of its own: a second opinion is not looked up among the first one's judgments."""
    name, _, path = spec.partition(":")
    if name == "recorded":
        return recorded_judge(Path(path) if path else None)
    return live_judge(spec, store, max_requests)


def live_judge(spec: str, store: Path, max_requests: int | None = None) -> "Judge":
    """A model behind an endpoint. Raises UserError."""
    from ..audits.judge import EndpointJudge
    from ..llm import parse_endpoint

    endpoint = parse_endpoint(spec)
    endpoint.resolved()  # a missing key is said before any work
    return EndpointJudge(endpoint, store=store, max_requests=max_requests)


def replayed_judge(folder: Path) -> "Judge":
    """The judgments that ship with the package, then those that an audit kept in the build."""
    from ..audits.judge import Chain
    from ..audits.judgments import Stored
    from ..io.audit_files import JUDGMENTS

    stored = folder / JUDGMENTS
    first = recorded_judge(build=folder)
    return Chain(first, Stored(stored)) if stored.is_file() else first


def _kept_answers(build: Path) -> "Sequence[Book] | None":
    """What the build kept; nothing of a file that cannot be read, which provenance names."""
    from ..builders.generations import NAME
    from ..builders.generators.recorded import from_path

    try:
        return from_path(build / NAME) if (build / NAME).is_file() else None
    except UserError:
        return ()


def recorded_judge(path: Path | None = None, build: Path | None = None) -> "Recorded":
    """The judgments that ship with the package, or those of a folder or file, found by the builder's keys.

    `build`: the answers that it kept have to be those that were judged.
    """
    from ..audits.judge import Answer, Judgment, Recorded
    from ..audits.rows import NewTool, Pair
    from ..builders.generators.recorded import (
        edited,
        from_path,
        judgment_address,
        load_judgments,
        load_served,
        shipped,
    )
    from ..builders.generators.siblings import sets_of_new_tools
    from ..builders.perturb.base import TextRequest

    known, served = load_judgments(path), load_served(path)
    pinned = path is None  # a file's judgments are its writer's word, whatever they are called in it
    name = "recorded" if path is None else f"file {path.name}"

    orders = [shipped(), shipped(bundled=True)]
    if path is not None:
        orders = [from_path(path)] if served else []

    kept = None if build is None else _kept_answers(build)

    @lru_cache(1)  # the new tools of a row come one after the other
    def made(clean_id: str, registry: str) -> set[tuple[str, ...]]:
        return sets_of_new_tools(clean_id, msgspec.json.decode(registry, type=list[Tool]), orders, kept)

    def find(pair: Pair) -> Judgment | None:
        request = TextRequest(kind=pair.kind, input=pair.before, tool=pair.tool, parameter=pair.parameter)
        found = known.get(judgment_address(request, pair.after))
        if found is None or (pinned and kept is not None and edited(request, kept)):
            return None
        return Judgment(found.score, found.reason, found.judge if pinned else name, pinned)

    def find_answer(tool: NewTool) -> Answer | None:
        found = served.get(tool.hash)
        ours = tool.definition in tool.together
        if found is None or not ours or tool.together not in made(tool.clean_id, tool.registry):
            return None  # no judge was shown such a tool, or these tools together
        return Answer(found.serves, found.reason, found.judge if pinned else name, pinned)

    return Recorded(find, name, find_answer)
