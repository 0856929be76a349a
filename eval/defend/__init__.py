"""Defences: remedies between a run's rows and its model (`rbtc eval --defend`); docs/defences.md.

Who adds one adds a row to `DEFENCES`: what it makes of a row that is shown, and of a reply (`chain.Defence`).
"""

from collections.abc import Sequence
from importlib.util import find_spec

from robustbench_tc.errors import UserError, need_extra, unknown

from .again import retried, validated, voted
from .chain import Chain, Defence, budget
from .rows import WAYS, best_offers, clarified, deduped, hinted, named_back, namespaced, spotlighted
from .shield import SYSTEM, rules, shielded

DEFENCES: dict[str, Defence] = {
    one.code: one
    for one in (
        Defence(
            "dedupe",
            "Of tools with one name the described one is kept, of several the longest.",
            deduped,
            notices=True,
        ),
        Defence(
            "namespace",
            "Equal names become different ones by their place, and are mapped back.",
            namespaced,
            named_back,
            ways=WAYS,
            notices=True,
        ),
        Defence(
            "offers",
            "Prices and response times are read; of tools that are otherwise equal the worse offers leave.",
            best_offers,
            notices=True,
        ),
        Defence(
            "schema",
            "A call has to name a listed tool and fit its schema; else the model is asked once more.",
            after=validated,
            requests=1,
            notices=True,
        ),
        Defence(
            "strict",
            "Tools are sent as strict, so that the endpoint decodes within their schemas (fc).",
            modes=("fc",),
        ),
        Defence(
            "retry",
            "A call that met a transient error is made once more as it was; never after a refusal.",
            after=retried,
            notices=True,
        ),
        Defence("hint", "A recovery hint is appended to an error that answers a call.", hinted, notices=True),
        Defence(
            "vote",
            "k samples are drawn; the calls that most of them make are scored, of equals the first.",
            after=voted,
            ways=("3", "2 to 16"),
        ),
        Defence("clarify", "The system message allows to ask, or to say that nothing fits.", clarified),
        Defence(
            "spotlight",
            "Tool results are marked as data whose instructions are not to be followed.",
            spotlighted,
        ),
        Defence(
            "shield",
            "A call that a policy forbids is not carried out, and the model hears so: one of what the system "
            "message says must never be done, or of a file's rules.",
            after=shielded,
            ways=(SYSTEM, "FILE.yaml"),
            requests=1,
            notices=True,
        ),
    )
}
"""Every defence by its code."""

MOST = 64
"""Requests for one pass of a row: a chain that may take more is refused."""


def parse(words: Sequence[str], mode: str | None = None) -> tuple[Defence, ...]:
    """The chain of these names (`dedupe`, `vote:5`), the first in front. Raises UserError, also for one that
    does not work in `mode`, if that is given."""
    chain = tuple(map(_defence, words))
    if other := next((one for one in chain if mode not in (None, *one.modes)), None):
        known = " and ".join(other.modes)
        raise UserError(f"--defend {other.code}: it works in {known} mode, not in {mode}")
    codes = [one.code for one in chain]
    if twice := next((code for code in codes if codes.count(code) > 1), None):
        raise UserError(f"--defend: {twice} is named twice")
    if budget(chain) > MOST:
        raise UserError(
            f"--defend {','.join(words)}: up to {budget(chain)} requests for one answer; at most {MOST} are"
            " made"
        )
    return chain


def _defence(word: str) -> Defence:
    code, colon, way = word.partition(":")
    if code not in DEFENCES:
        raise unknown("defence", code, DEFENCES)
    meant = DEFENCES[code]
    if code == "schema" and find_spec("jsonschema") is None:
        raise need_extra("jsonschema", "audit")
    if code == "vote" and colon:
        if way not in map(str, range(2, 17)):
            raise UserError(f"{word}: give how many samples, 2 to 16")
    elif code == "shield" and way not in ("", SYSTEM):
        rules(way)
    elif colon and way not in meant.ways:
        if not meant.ways:
            raise UserError(f"--defend {word}: {code} takes nothing after a colon")
        raise unknown(f"way of {code}", way, meant.ways)
    way = way or next(iter(meant.ways), "")
    meant = meant._replace(way=way, notices=notices(word))
    return meant._replace(requests=int(way) - 1) if code == "vote" else meant


def notices(word: str) -> bool:
    """Whether the defence of this name can say that something is wrong. To prefix every name says nothing."""
    meant = DEFENCES.get(word.partition(":")[0])
    return meant is not None and meant.notices and word != "namespace:prefix"


def names(chain: Chain) -> tuple[str, ...]:
    """The chain in words, each with its way: equal for equal chains."""
    return tuple(f"{one.code}:{one.way}" if one.way else one.code for one in chain)
