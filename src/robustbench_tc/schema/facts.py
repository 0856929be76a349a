"""Facts: what every room knows of a perturbation type and of a source.

Types and sources state theirs in their own modules in `builders/`; `make facts` writes them to `data/`, from
where `taxonomy` and `sources` read them.
"""

from typing import Literal

import msgspec

from .json import Json
from .rows import Component

COMPONENTS: tuple[Component, ...] = ("observation", "action", "reward", "transition")

CLEAN = "clean"

Level = Literal["perception", "interaction", "reasoning", "internalization"]
"""What of an agent a type tries: reading, acting with tools, weighing them, knowing when not to call."""

Pack = Literal["core", "language", "abstention", "context", "registry", "offers", "severity", "mixed"]
"""`core` are the 22 of the benchmark; the others are built only when named and enter no headline number."""

Method = Literal["llm", "rule", "runtime"]
"""llm: the text is model-written; rule: a pure function; runtime: happens while the tool runs."""

Channel = Literal[
    "query", "descriptions", "namesake", "siblings", "offers", "registry", "context", "tool_result", "result",
    "mixed",
]  # fmt: skip
"""By which way the perturbation enters. Beside what it checks in every row, the gate requires of

- query, descriptions: digits and gold values kept, the text changed; if model-written, a judgment
- namesake: one distractor per gold tool, as `description` and `wrong_parameters` say; no golden call fits it
- siblings: new tools only, at most two per tool, no duplicates, in the registry's schema style
- offers: one counterpart per gold tool, annotated as `quality`, named by `suffix`, asked for as `stated`;
  of inv, unit and moot the type's own `check` says what is right
- tool_result, result: the clean row; the protocol's text (`times`: so many calls are answered), or `check`
- registry, context: nothing more, the type's own `check` decides
- mixed: each part's step keeps the rules of its own type
"""

NoCall = Literal["wrong", "accepted", "right"]
"""wrong: its rows want calls. accepted: their answers hold the empty one beside answers with calls. right:
the empty answer is the only one, so that declining, asking and answering in words are right, any call is
wrong."""

Part = Literal[
    "messages", "the number or roles of messages", "the set of tools", "the order of tools", "tool names",
    "tool descriptions", "parameter descriptions", "parameter schemas", "golden answers",
]  # fmt: skip
"""A part of a row that can differ from its clean row."""


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows per profile, as far as they are known: those of `full` depend on who writes the texts."""

    paper: int
    bundled: int
    full: int | None = None
    """Where a rule suffices."""


class PerturbationType(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one type."""

    order: int
    code: str
    display_name: str
    """The paper's short name."""
    label: str
    """At most four words that say what happens; tables print it behind the code (`named`)."""
    component: Component
    level: Level
    pack: Pack
    channel: Channel
    what_is_modified: str
    """One sentence for tables."""
    how_made: str
    """A paragraph for the card."""
    method: Method
    may_change: tuple[Part, ...]
    """What of a row may differ from its clean row."""
    ground_truth_changes: bool
    train_augmentable: bool
    """Whether training data may draw it."""
    sources: tuple[str, ...] = ()
    """Sources whose samples it can apply to."""
    rows: Rows
    """What a build has of the paper's five sources."""
    paper_rows: int | None = None
    """Rows of the paper's own release; null for an extension."""
    paper_unchanged: int = 0
    """How many of those hold nothing that could be rewritten: no rows here."""
    judged_as: str | None = None
    """Types that rewrite a text: what it is, in the words of the judge of meaning."""
    injected_error: str | None = None
    """Types of the channel `tool_result`: the protocol's text, letter by letter."""
    flags: dict[str, str] = {}
    """Flags that its rows may carry beyond their clean row's, with words for the card."""
    traits: dict[str, Json] = {}
    """What tells the types of one channel apart, by name."""
    solved_without_reading: str = ""
    """Why the type stays although its gold tool is found without the request; "" for one where it is not."""
    series: str = ""
    """Types that are one perturbation in several doses: the series' name; its types' order is that of the
    doses, from the mildest to the strongest. "" for a type that is of none."""
    dose: float | None = None
    """How much of it, in the series' own unit."""
    prior_art: str = ""
    """Who has asked the same before, in a line; "" for the core, whose prior art is the paper's."""
    may_decline: bool = False
    """Whether its rows are asked in words that leave it open to call nothing."""
    no_call: NoCall = "wrong"
    """What a reply without a call is worth in its rows."""
    control: str = ""
    """Where calling nothing is right or accepted: the type whose rows of the same samples ask in the same
    words and make a call due."""

    @property
    def status(self) -> Literal["core", "extension"]:
        """Core: one of the paper's 22 types, which alone enter the headline numbers."""
        return "core" if self.pack == "core" else "extension"

    @property
    def static(self) -> bool:
        """False where something happens at run time: such rows equal their clean row."""
        return self.method != "runtime"

    @property
    def answered_calls(self) -> int:
        """How many of a row's calls are answered with its text before the reply that is scored; 0: none."""
        if self.injected_error is None and self.channel not in ("tool_result", "result"):
            return 0
        times = self.traits.get("times", 1)
        return times if isinstance(times, int) else 1

    @property
    def scored(self) -> bool:
        """False where something else than right answers is counted (tries): then no accuracy is shown."""
        return self.traits.get("scored") is not False


OutputFormat = Literal["python_calls", "tool_call_tags", "react"]
"""How samples ask for a call: `[f(a=1)]`, `<tool_call>{…}</tool_call>`, or ReAct."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one source."""

    order: int
    name: str
    """The prefix of its clean ids, before `__`."""
    output_format: OutputFormat
    scorer: str
    """A scorer of `eval/score` by name, or `module:function` for the source's own: (calls, category, golden
    answers, tools) to None where right, else the reason."""
    one_call: bool
    """Prompts ask for exactly one call; else for as many as the request needs."""
    single_gold_tool: bool
    """False where a label is a set of accepted tool names: there is no one gold tool to imitate."""
    shown_last: bool
    """The card takes an example from it only where there is no other."""
    rows: Rows
    """Clean rows."""
    paper: bool
    """One of the five that the paper draws its 199 samples from."""
