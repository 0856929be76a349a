"""`audit/judgments.jsonl`: every judgment that an audit rests on, so that a release can be audited again.

A line names what was judged by hash. A judgment that ships with the package is written down too, for readers,
but never believed from here: the package's own is looked up again. So whoever edits the file can invent
judgments of new texts only, and those are called their judge's word, not pinned, wherever they are shown.

Beside it the judges that an audit names: recorded ones, a model behind an endpoint, one after the other.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
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
from robustbench_tc.schema import Tool, dumps

from .judge import REASON, EndpointJudge, Item, Judge, Judgment, Recorded, Unjudged, Verdict
from .report import Failure
from .rows import Pair

NAME = "judgments.jsonl"

OURS = frozenset(("recorded", "hand-written"))
"""Judges whose judgments ship with the package: a stored one by that name is not a model's."""


_JUDGE = re.compile(r"\w[\w.:/@+ -]{0,119}")
"""What a judge may be called: the name is shown on pages and cards."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One judgment. Exactly one of `score` and `could_answer` is there."""

    kind: str
    """The type of the text."""
    text: str
    """32 hex digits of what was judged: `address`."""
    row: str
    """The first row that holds it; of a canary its type."""
    score: int | None = None
    could_answer: bool | None = None
    reason: str = ""
    judge: str
    pinned: bool = False
    canary: bool = False


def address(item: Item) -> str:
    """32 hex digits of a text and all that its judge was shown."""
    return hashlib.sha256(dumps(item).encode()).hexdigest()[:32]


def kind_of(item: Item) -> str:
    """The type whose text or new tool it is."""
    return item.kind if isinstance(item, Pair) else "redundant"


def line(item: Item, found: Judgment, row: str, *, canary: bool = False) -> Line:
    """What is written down of a judgment."""
    is_pair = isinstance(item, Pair)
    return Line(
        kind=kind_of(item),
        text=address(item),
        row=row,
        score=found.value if is_pair else None,
        could_answer=None if is_pair else bool(found.value),
        reason=found.reason,
        judge=found.judge,
        pinned=found.pinned,
        canary=canary,
    )


def encode(lines: Iterable[Line]) -> bytes:
    """The file: same judgments, same bytes."""
    return b"".join(msgspec.json.encode(one) + b"\n" for one in lines)


class Stored:
    """The judgments of an audit's file, to be replayed without any model."""

    live = True

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises UserError where it is missing or damaged."""
        self.name = "stored"
        self._lines = {(one.kind, one.text): one for one in _read(path)}

    def judge(self, items: Sequence[Item]) -> list[Verdict]:
        return [self._verdict(item) for item in items]

    def contradicts(self, item: Item, found: Judgment, row: str) -> Failure | None:
        """Where the file has another judgment of the text than the one that counts."""
        stored = self._lines.get((kind_of(item), address(item)))
        if stored is None:
            return None
        said = stored.score if isinstance(item, Pair) else stored.could_answer
        if said == found.value:
            return None
        return Failure(row, f"stored as {said}, {found.judge} says {found.value}")

    def _verdict(self, item: Item) -> Verdict:
        found = self._lines.get((kind_of(item), address(item)))
        if found is None:
            return Unjudged("no stored judgment of this text: audit the build with --judge")
        if found.pinned or found.judge in OURS:
            return Unjudged("stored as a judgment that ships with the package, which has none of this text")
        value = found.score if isinstance(item, Pair) else found.could_answer
        if value is None:
            return Unjudged("what is stored is no judgment of such a text")
        return Judgment(value, found.reason, found.judge)


def _read(path: Path) -> Iterable[Line]:
    decoder = msgspec.json.Decoder(Line)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"no stored judgments at {path} ({error.strerror}): run `rbtc audit` first") from None
    for number, text in enumerate(data.splitlines(), 1):
        try:
            found = decoder.decode(text)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}: run `rbtc audit` again") from None
        one = (found.score is None) != (found.could_answer is None) and found.score in (None, 1, 2, 3, 4, 5)
        if not one or not _JUDGE.fullmatch(found.judge) or len(found.reason) > REASON:
            raise UserError(f"{path}, line {number}: it is not one judgment: run `rbtc audit` again")
        yield found


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
