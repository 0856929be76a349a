"""The judges that an audit names: recorded ones, a model behind an endpoint, one after the other."""

from functools import lru_cache
from pathlib import Path

import msgspec

from robustbench_tc.audits.audit_files import JUDGMENTS
from robustbench_tc.builders import generations
from robustbench_tc.builders.generators import recorded
from robustbench_tc.builders.perturb.base import TextRequest
from robustbench_tc.builders.plan import sets_of_new_tools
from robustbench_tc.errors import UserError
from robustbench_tc.llm import parse_endpoint
from robustbench_tc.schema import Tool

from .judge import EndpointJudge, Item, Judge, Judgment, Recorded
from .judgments import Stored
from .rows import Pair


def make_judges(spec: str, store: Path, max_requests: int | None, folder: Path) -> tuple[Judge, ...]:
    """The judge that `--judge` names, after the judgments that ship with the package. Raises UserError."""
    name, _, path = spec.partition(":")
    first = recorded_judge(build=folder)
    if name != "recorded":
        return first, live_judge(spec, store, max_requests)
    if path:
        return first, recorded_judge(Path(path), folder)
    stored = folder / JUDGMENTS  # what an earlier audit kept in the build
    return (first, Stored(stored)) if stored.is_file() else (first,)


def second_opinion(spec: str, store: Path, max_requests: int | None) -> Judge:
    """A judge of its own: a second opinion is not looked up among the first one's judgments."""
    name, _, path = spec.partition(":")
    if name == "recorded":
        return recorded_judge(Path(path) if path else None)
    return live_judge(spec, store, max_requests)


def live_judge(spec: str, store: Path, max_requests: int | None = None) -> Judge:
    """A model behind an endpoint. Raises UserError."""
    endpoint = parse_endpoint(spec)
    endpoint.resolved()  # a missing key is said before any work
    return EndpointJudge(endpoint, store=store, max_requests=max_requests)


def recorded_judge(path: Path | None = None, build: Path | None = None) -> Recorded:
    """The judgments that ship with the package, or those of a folder or file, found by the builder's keys.

    `build`: the answers that it kept have to be those that were judged.
    """
    known, served = recorded.load_judgments(path), recorded.load_served(path)
    pinned = path is None  # a file's judgments are its writer's word, whatever they are called in it
    name = "recorded" if path is None else f"file {path.name}"
    orders = [recorded.shipped(), recorded.shipped(bundled=True)]
    if path is not None:
        orders = [recorded.from_path(path)] if served else []
    kept = None
    if build is not None and (build / generations.NAME).is_file():
        try:
            kept = recorded.from_path(build / generations.NAME)
        except UserError:  # provenance names a file that cannot be read
            kept = ()

    @lru_cache(1_000)  # the passes over the judged items ask for the same registries
    def made(clean_id: str, registry: str) -> set[tuple[str, ...]]:
        return sets_of_new_tools(clean_id, msgspec.json.decode(registry, type=list[Tool]), orders, kept)

    def find(item: Item) -> Judgment | None:
        if isinstance(item, Pair):
            request = TextRequest(kind=item.kind, input=item.before, tool=item.tool, parameter=item.parameter)
            found = known.get(recorded.judgment_address(request, item.after))
            if found is None or (pinned and kept is not None and recorded.edited(request, kept)):
                return None
            return Judgment(found.score, found.reason, found.judge if pinned else name, pinned)
        serves = served.get(item.hash)
        ours = item.definition in item.together
        if serves is None or not ours or item.together not in made(item.clean_id, item.registry):
            return None  # no judge was shown such a tool, or these tools together
        return Judgment(serves.serves, serves.reason, serves.judge if pinned else name, pinned)

    return Recorded(find, name)
