"""A reply as reasoning, invented turns and the final answer: the split that comes before any reading of calls.

Closed reasoning is never a source of calls. Reasoning that is not closed runs to the end of the reply, unless a
complete marked call ends the reply. What follows a made-up turn or tool result is invented.
"""

import re
from typing import Literal

import msgspec

from . import harmony, turns
from .context import MAX_CHARS, ParseContext
from .marked import admitted, outermost, read_marked

Kind = Literal["reasoning", "invented", "final"]


class Segment(msgspec.Struct, frozen=True):
    """A passage of a reply: `text[start:end]`."""

    kind: Kind
    start: int
    end: int


WORDS = (
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "scratch_pad",
    "scratchpad",
    "analysis",
    "reflection",
    "inner_thoughts",
    "inner_monologue",
    "internal_monologue",
    "think_fast",
    "think_faster",
)
"""Names of the tags around reasoning, in angle brackets, with or without a name space: an open table."""

PAIRS = (
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    ("<|content_thinking|>", "<|end_message|>"),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    ("<|think|>", "<|/think|>"),
    ("<|thinking|>", "<|/thinking|>"),
    ("<|begin_of_thinking|>", "<|end_of_thinking|>"),
    ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
    ("<|reasoning_start|>", "<|reasoning_end|>"),
)
"""Special tokens around reasoning."""

_TAG = (
    r"<(?P<tag_end>/)?(?:[A-Za-z]{1,8}[:|])?(?P<word>(?i:"
    + "|".join(WORDS)
    + r"))(?::[\w-]{1,24})?(?:\s[^<>\n]{0,60})?>"
)
_SQUARE = r"\[(?P<square_end>/)?(?i:THINK(?:ING)?|THOUGHT|REASONING)\]"
_TRIANGLE = r"◁(?P<triangle_end>/)?think(?:ing)?▷"
_OPENS = "|".join(re.escape(pair[0]) for pair in PAIRS)
_CLOSES = "|".join(re.escape(pair[1]) for pair in PAIRS if pair[1] != "<|end_message|>")
_EVENT = re.compile(
    r"(?=[<\[◁✿\]])"  # which spares most places the long look
    f"(?:{_TAG}|{_SQUARE}|{_TRIANGLE}|(?P<pair>{_OPENS})|(?P<pair_end>{_CLOSES})|(?P<channel>{harmony.ANALYSIS})"
    f"|{turns.TOKENS.pattern})"
)
_STOP = re.compile("|".join(turns.TURN_TOKENS_IN_THOUGHT))
_STRUCTURE = re.compile(r"(?:\A|\n)[ \t`]{0,8}(?:[^\W\d][\w.-]{0,127})?(?P<at>[\[{(])")
_NEXT_STEP = re.compile(r"\n[ \t*_]{0,8}(?i:thought|action)s?[ \t]{0,2}\d{0,3}[*_]{0,3}[ \t]{0,4}[:：]")
_PLAIN_THOUGHTS = re.compile(r"(?:<think>[^<]*+</think>\s*+)++")
"""The usual thought, several in a row too."""

_CLOSERS: dict[str, re.Pattern[str]] = {
    pair[0]: re.compile(re.escape(pair[1]) + "|" + _STOP.pattern) for pair in PAIRS
}
_TAG_CLOSER = re.compile(
    r"</(?:[A-Za-z]{1,8}[:|])?(?i:" + "|".join(WORDS) + r")(?::[\w-]{1,24})?\s*>|" + _STOP.pattern
)
_SQUARE_CLOSER = re.compile(r"\[/(?i:THINK(?:ING)?|THOUGHT|REASONING)\]|" + _STOP.pattern)
_BY_SIGN = {
    "<": _TAG_CLOSER,
    "[": _SQUARE_CLOSER,
    "◁": re.compile(r"◁/think(?:ing)?▷|" + _STOP.pattern),
}

_THOUGHT_TAGS = re.compile(f"{_TAG}|{_SQUARE}|{_TRIANGLE}|{_OPENS}|{_CLOSES}|{harmony.ANALYSIS}")


def without_thought_tags(text: str) -> str:
    """The text of a thought with line breaks for the tags around it."""
    return _THOUGHT_TAGS.sub("\n", text)


_BEHIND_CALLS = re.compile(
    r"(?:\s++|</[\w:.-]{1,48}>|\[/[\w ]{1,24}\]|<[|｜][^<>\n]{1,48}[|｜]>|<[\w|]{0,24}\|>|`++)*+"
)
"""What may stand between marked calls that end a reply, and behind them."""


def split(text: str, context: ParseContext, *, opens_thought: bool = False) -> list[Segment]:
    """The segments of a reply, in order and without gaps but for the tags between them.

    `opens_thought`: the model's chat template opens the thought, so the reply begins inside it.
    """
    return _Splitter(text, context).split(opens_thought)


class _Splitter:
    def __init__(self, text: str, context: ParseContext) -> None:
        self.text = text
        self.context = context
        self.segments: list[Segment] = []
        self.start = 0
        """Of the current piece of the final answer."""
        self.at = 0
        self.firm: re.Match[str] | None = None
        self.weak: re.Match[str] | None = None
        has_colon = ":" in text or "：" in text
        self.no_more_firm = not has_colon and "##" not in text
        self.no_more_weak = not has_colon
        self.event = _EVENT.search(text)
        """The next one at or behind `at`, once that is asked for."""
        self.has_quotes = '"' in text or "`" in text
        self.has_final = False
        self.checked = 0
        """So many segments were looked at for the beginning of the final answer."""
        self.call_seen = -1
        """Where the first thing like a call stands, at or behind the start of the current piece."""

    def split(self, opens_thought: bool) -> list[Segment]:
        text = self.text
        if stripped := harmony.split_stripped(text, self.context):
            for kind, start, end in stripped:
                self._add(kind, start, end)
            return self.segments
        if opens_thought:
            self._thought(0, 0, _TAG_CLOSER)
        elif label := turns.OWN_LABEL.match(text):  # `Assistant:` in front of the reply is its own header
            self.start = self.at = label.end()
        while self.at < len(text):
            if self.event is not None and self.event.start() < self.at:
                self.event = _EVENT.search(text, self.at)
            event, label = self.event, self._next_label()
            if event is None and label is None:
                break
            if event is None or (label is not None and label.start() < event.start()):
                assert label is not None
                self._read_label(label)
            else:
                self._read_event(event)
        self._add("final", self.start, len(text))
        return self.segments or [Segment("final", 0, len(text))]

    def _next_label(self) -> re.Match[str] | None:
        if self.firm is None or self.firm.start() < self.at - 1:
            self.firm = None if self.no_more_firm else turns.LABELS.search(self.text, max(0, self.at - 1))
            self.no_more_firm = self.firm is None
        weak = self._next_weak_label()
        if weak is not None and (self.firm is None or weak.start() < self.firm.start()):
            return weak
        return self.firm

    def _next_weak_label(self) -> re.Match[str] | None:
        """The next "Output:" behind something like a call in the final answer."""
        if self.no_more_weak:
            return None
        if self.call_seen < self.start:
            seen = turns.CALL_BEFORE.search(self.text, self.start)
            self.call_seen = len(self.text) if seen is None else seen.start()
        begin = max(self.at - 1, self.call_seen, 0)
        if self.weak is None or self.weak.start() < begin:
            self.weak = self._search_weak(begin)
        self.no_more_weak = self.weak is None
        return self.weak

    def _search_weak(self, at: int) -> re.Match[str] | None:
        """The next label that is not the name of a parameter: that is a line of an argument."""
        while (found := turns.WEAK_LABELS.search(self.text, at)) is not None:
            if not any(found["weak"].lower() in declared for declared in self.context.declared.values()):
                break
            at = found.end()
        return found

    def _add(self, kind: Kind, start: int, end: int) -> None:
        if end > start and not (kind == "final" and self.text[start:end].isspace()):
            self.segments.append(Segment(kind, start, end))

    def _written(self) -> bool:
        """Whether the final answer has begun."""
        while not self.has_final and self.checked < len(self.segments):
            one = self.segments[self.checked]
            self.checked += 1
            self.has_final = one.kind == "final" and self._has_text(one.start, one.end)
        return self.has_final or self._has_text(self.start, self.at)

    def _has_text(self, start: int, end: int) -> bool:
        return bool(turns.without_end_markers(self.text[start:end]).strip())

    # --- reasoning ------------------------------------------------------------------------------------

    def _read_event(self, event: re.Match[str]) -> None:
        kind = event.lastgroup
        start = event.start()
        if kind == "pair":
            self._thought(start, event.end(), _CLOSERS[event[0]])
        elif kind == "pair_end":
            self._orphan(event.end())
        elif kind == "channel":
            self._thought(start, event.end(), harmony.ANALYSIS_END)
        elif kind is not None and (kind.startswith("role") or kind == "result"):
            self._turn(event, event[kind] if kind != "result" else None)
        elif self._is_mention(event):
            self.at = event.end()
        elif event["tag_end"] or kind in ("square_end", "triangle_end"):
            self._orphan(event.end())
        else:
            self._thought(start, event.end(), _BY_SIGN[event[0][0]])

    def _is_mention(self, event: re.Match[str]) -> bool:
        """A tag inside a string or between back-ticks, or one that is an argument of a tool's element."""
        if self.has_quotes and turns.in_string(self.text, event.start()):
            return True
        if not self.context.tools:
            return False
        word = (event["word"] or "").lower()
        if not word or not any(word in properties for properties in self.context.declared.values()):
            return False
        near = self.text[max(0, event.start() - 2_000) : event.start()]
        return any(
            word in properties and near.rfind(f"<{name}>") > near.rfind(f"</{name}>")
            for name, properties in self.context.declared.items()
        )

    def _thought(self, start: int, content: int, closer: re.Pattern[str]) -> None:
        self._add("final", self.start, start)
        run = _PLAIN_THOUGHTS.match(self.text, start)
        if run is not None:
            self._add("reasoning", start, run.end())
            self.start = self.at = run.end()
            return
        closing = closer.search(self.text, content)
        if closing is None:
            self._open_thought(start, content)
            return
        token = closing[0]
        end = closing.start() if closer is harmony.ANALYSIS_END or _STOP.match(token) else closing.end()
        if closer is harmony.ANALYSIS_END and token in harmony.MESSAGE_ENDS:
            end = closing.end()
        self._add("reasoning", start, end)
        self.start = self.at = end

    def _open_thought(self, start: int, content: int) -> None:
        """To the end of the reply, but for the marked calls that end it."""
        whole = len(self.text)
        end = whole if self.context.cut else self._last_calls(max(content, whole - MAX_CHARS // 2))
        self._add("reasoning", start, end)
        self._add("final", end, whole)
        self.start = self.at = whole

    def _last_calls(self, near: int) -> int:
        """Where, from `near` on, the complete marked calls begin that end the reply; its end without any."""
        thought = self.text[near:]
        inner = ParseContext(self.context.source, self.context.tools, self.context.name_back)
        first, end = len(thought), len(turns.without_trailing_markers(thought))
        for one in reversed(admitted(outermost(read_marked(thought, inner)), inner)):
            if not _BEHIND_CALLS.fullmatch(thought, one.end, end):
                break
            first = end = one.start
        return near + first

    def _orphan(self, end: int) -> None:
        """A closing tag whose opening one is missing: all before it was reasoning. Where only closing tags of
        the kind follow, the last one counts."""
        token = self.text[self.text.rfind("<", 0, end) if "<" in self.text[end - 48 : end] else end : end]
        last = self.text.rfind(token) if token.startswith("</") else -1
        if last >= end and self.text.find(token.replace("/", "", 1), end, last) < 0:
            end = last + len(token)
        self.segments = []
        self.has_final = False
        self.checked = 0
        self._add("reasoning", 0, end)
        self.start = self.at = end

    # --- made-up turns --------------------------------------------------------------------------------

    def _turn(self, event: re.Match[str], role: str | None) -> None:
        own = role is not None and role.lower() in turns.OWN_ROLES
        if self.has_quotes and turns.in_string(self.text, event.start()):
            self.at = event.end()
            return
        self.at = event.start()
        if own and not self._written():
            self._add("final", self.start, event.start())
            self.start = self.at = event.end()
            return
        self._cut(event.start())

    def _cut(self, at: int) -> None:
        self._add("final", self.start, at)
        self._add("invented", at, len(self.text))
        self.start = self.at = len(self.text)

    def _read_label(self, label: re.Match[str]) -> None:
        start = label.start() + label[0].startswith("\n")
        kind = label.lastgroup
        past = self._past_structure(start)
        if past is not None:
            self.at = past
            return
        self.at = start
        if kind == "weak":
            self._cut(start)
        elif kind == "assistant" or (kind == "header" and label["header"] == "Assistant"):
            if self._written():
                self._cut(start)
            else:
                self.start = self.at = label.end()
        elif (
            kind == "strong" or (kind == "header" and label["header"] == "Observation")
        ) and not self._written():
            self._restated(start)
        else:
            self._cut(start)

    def _restated(self, start: int) -> None:
        """A result in front of everything repeats what the model was given: the reply goes on behind it."""
        following = _NEXT_STEP.search(self.text, start)
        if following is None:
            self._cut(start)
            return
        self._add("invented", start, following.start())
        self.start = following.start()
        self.at = following.start() + 1

    def _past_structure(self, label: int) -> int | None:
        """The end of the list, object, call or element around a label, or None: inside one it is a value."""
        text = self.text
        near = text[max(self.start, label - 4_096) : label]
        for tag in ("parameter", "arg_value"):
            if near.rfind(f"<{tag}") > near.rfind(f"</{tag}"):
                end = text.find(f"</{tag}", label)
                if end >= 0:
                    return end
        base = max(self.start, label - 4_096)
        for opening in _STRUCTURE.finditer(text, base, label):
            closing = self.context.balanced(text, opening.start("at"))
            if closing is not None and closing > label:
                return closing
            if self.context.left <= 0:
                break
        return None
