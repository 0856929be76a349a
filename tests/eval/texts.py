"""Texts as models and attackers write them, for the parser's property tests and the nightly fuzz."""

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from robustbench_tc.eval.prompts.calls import FORMATS, render_calls
from robustbench_tc.schema import Call, Json, Tool

PING = Tool(
    "ping",
    "Asks a host for an answer.",
    {
        "type": "object",
        "properties": {"host": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["host"],
    },
)
TOOLS = (PING, Tool("geo.find", "", {"type": "object", "properties": {"q": {"type": "string"}}}))

_PIECES = """
[ ] ( ) { } < > / = : , ; . ? & # @ - + * ~ ` ``` ' " \\ \\" \\n \\u00e9 \\ud800 | % $ ! _ 0 1 -5 3.5 1e9
1e999 0x1f 05 1_0 9999999999999999999999 true false null True False None NaN Infinity not lambda await if for
in is ** // ping geo.find f g host n name parameters arguments tool function func_name params action
action_input "name" "parameters" "host": "a" 'b' f"{x}" b"x" r"\\d" \"\"\" ping( ping(host="a")
[ping(host='a')] host= <tool_call> </tool_call> <tool> </tool> <tool <toolcall tool="ping"> /> <think>
</think> <|im_end|> </s>
Action: ActionCode: Thought: Observation: {"name": {"host":"a"} {"name":"ping","parameters":{"host":"a"}}
ping?host=a&n=3 ping: Function: Parameters: ```json ```python
"""
FRAGMENTS = (
    *_PIECES.split(),
    *(" ", "\n", "\t", "\0", "\x7f", "\u00a0", "\u2028", "\ud800", "é", "你好", "ﬁ"),
    *("Action Input:", "I think that ", "Here is the call: ", "\nAction: ping\nAction Input: "),
)


scalars: st.SearchStrategy[Json] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
values: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc _-'\"é", max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
NAMES = ("ping", "geo.find", "f", "a.b.c", "Find_it2")
KEYS = ("a", "city", "from", "class", "user-id", "max_n", "B2", "in", "zip code")
calls = st.builds(Call, st.sampled_from(NAMES), st.dictionaries(st.sampled_from(KEYS), values, max_size=3))


def reply(seed: int) -> str:
    """A text that a broken or hostile model may write.

    Fragments in any order, fragments many times over, or a well-formed reply with a few characters lost,
    doubled or replaced. One draw for a whole text keeps hypothesis fast; the seed reproduces it.
    """
    rng = random.Random(seed)
    kind = rng.randrange(8)
    if kind < 4:
        return "".join(rng.choices(FRAGMENTS, k=rng.randrange(40)))
    if kind == 4:
        return "".join(rng.choices(FRAGMENTS, k=rng.randrange(1, 4))) * rng.choice([20, 200, 2_000])
    written = [Call(rng.choice(NAMES), _parameters(rng)) for _ in range(rng.randrange(1, 3))]
    pieces = list(render_calls(written, rng.choice(sorted(FORMATS))))
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(pieces) + 1)
        pieces[at : at + rng.randrange(3)] = rng.choice(
            [[], ["'"], ['"'], ["\\"], ["["], ["}"], pieces[at : at + 9]]
        )
    return "".join(pieces)


def _parameters(rng: random.Random) -> dict[str, Json]:
    return {key: _value(rng, 0) for key in rng.sample(KEYS, rng.randrange(4))}


def _value(rng: random.Random, depth: int) -> Json:
    kind = rng.randrange(8 if depth < 3 else 6)
    if kind == 6:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {rng.choice(["k", "it's", "é", ""]): _value(rng, depth + 1) for _ in range(rng.randrange(3))}
    plain: list[Json] = [
        None,
        True,
        rng.randrange(-99, 10**9),
        rng.uniform(-9, 9),
        "New York, NY",
        'say "hi"\n',
    ]
    return plain[kind]


replies = st.integers(0, 2**40).map(reply)


def hostile(size: int = 1_000_000) -> dict[str, str]:
    """Texts meant to hurt, by what they try."""

    def filled(unit: str) -> str:
        return (unit * (size // len(unit) + 1))[:size]

    units: Sequence[str] = (
        '[ ( { ] [{ [] {} {"a": {"a":1} [f( f( f(a= f(a=1) f(a=1), [f(a:1)] [f(a={\'b\':[1,(2,{ - not 1+ 1** '
        'lambda: f\'{ """ " \' \\ \\\' a= a. < <tool_call> <tool_call>{ <tool name="a" parameters={ '
        "Action: a:{} a?b=%41& `a?b=1` ping?host=a& 9 0x \ud800 é \0 \\N{ </s> </think> ` ``` func_name='a', "
        'ping(host=\' [f(from=1,a: {"name":"ping","parameters":{ [a.b f()() #'
    ).split(" ")
    found = {f"many {unit!r}": filled(unit) for unit in units}
    found["lines of lists"] = filled("[f(a=b'x')]\n")
    found["actions without input"] = filled("Action: a\n")
    found["actions"] = filled('Action: a\nAction Input: {"a": ')
    found["open call tags"] = filled('<tool_call>\n{"name": "a", "parameters": {\n')
    found["nested and closed"] = "[" * (size // 2) + "]" * (size // 2)
    found["nested objects"] = '{"a":' * (size // 8) + "1" + "}" * (size // 8)
    found["a long list"] = "[f(a=[" + "1," * 30_000 + "])]"
    found["a long format string"] = "[f(a=f'" + "{a}" * 20_000 + "')]"
    found["a long number"] = f"[f(a={'9' * 60_000})]"
    found["a large power"] = "[f(a=9**9**9**9)]"
    found["a large product"] = "[f(a=10**4000*10**4000)]"
    found["a large shift"] = "[f(a=1<<100000000)]"
    found["a long repetition"] = "[f(a='x'*10**10)]"
    return found
