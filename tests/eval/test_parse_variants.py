"""Every variant of the parser, the order in which they are tried, and the rules that make them precise."""

from itertools import product

import pytest

from robustbench_tc.eval.parse import FORMATS, ORDERS, parse
from robustbench_tc.eval.parse.json_values import decode
from robustbench_tc.eval.parse.turns import LAYOUT_TOKENS
from robustbench_tc.eval.prompts.calls import render_calls
from robustbench_tc.schema import Call, Json, Tool

from ..known import SOURCES
from ..refusals import refuses
from .texts import PING, TOOLS

EXAMPLES: dict[str, tuple[str, tuple[Call, ...]]] = {
    "B1": ('[geo.find(q="oslo", n=2), ping()]', (Call("geo.find", {"q": "oslo", "n": 2}), Call("ping", {}))),
    "B2": ('[ping(host:"a", n: 3)]', (Call("ping", {"host": "a", "n": 3}),)),
    "B3": ('[func_name="ping", params={"host": "a"}]', (Call("ping", {"host": "a"}),)),
    "A1": (
        '<tool_call>{"name":"ping","parameters":{"host":"a"}}</tool_call>',
        (Call("ping", {"host": "a"}),),
    ),
    "A2": ('<tool>ping</tool>\n{"host":"a"}', (Call("ping", {"host": "a"}),)),
    "A3": ('<tool name="ping" parameters={"host":"a"}/>', (Call("ping", {"host": "a"}),)),
    "A4": ('<toolcall tool="ping">{"host":"a"}</toolcall>', (Call("ping", {"host": "a"}),)),
    "A5": ('<tool_call tool_name="ping">{"host":"a"}</tool_call>', (Call("ping", {"host": "a"}),)),
    "R1": ('Action: ping\nAction Input: {"host": "a"}', (Call("ping", {"host": "a"}),)),
    "R2": ('ActionCode: ping\nAction Input: {"host": "a"}', (Call("ping", {"host": "a"}),)),
    "T1": ('ping: {"host": "a"}', (Call("ping", {"host": "a"}),)),
    "T2": ('Function: ping\nParameters: {"host": "a"}', (Call("ping", {"host": "a"}),)),
    "T3": ("ping?host=a&n=3", (Call("ping", {"host": "a", "n": "3"}),)),
    "J": ('{"tool":"ping","args":{"host":"a"}}', (Call("ping", {"host": "a"}),)),
    "P": ('I ask it now.\nping(host="a")\nThen I wait.', (Call("ping", {"host": "a"}),)),
}

OF_A = Tool("f", "", {"type": "dict", "properties": {"a": {"type": "string"}}})


def calls(text: str, source: str = "bfcl_v3", tools: tuple[Tool, ...] = ()) -> list[tuple[str, Json]]:
    return [(call.name, call.parameters) for call in parse(text, source=source, tools=tools).calls]


def test_every_source_reads_every_variant_and_records_it(subtests: pytest.Subtests) -> None:
    for source, variant in product(SOURCES, EXAMPLES):
        with subtests.test(source=source, variant=variant):
            text, expected = EXAMPLES[variant]
            parsed = parse(text, source=source, tools=(PING,))
            assert (parsed.variant, parsed.calls) == (variant, expected)


@pytest.mark.parametrize("source", SOURCES)
def test_an_order_tries_every_variant_once(source: str) -> None:
    marked = set(FORMATS) - set(ORDERS[source])
    assert sorted((*ORDERS[source], *marked)) == sorted(("A", *FORMATS))
    # T4 is found in the step of T2.
    assert {code for code in marked if not FORMATS[code].marked} == {"T4"}


def test_an_unknown_source_is_an_error() -> None:
    refuses("unknown source 'bfcl'", parse, "x", source="bfcl")


def test_the_family_of_the_source_is_tried_first() -> None:
    both = 'Action: ping\nAction Input: {"host": "a"}\n[geo.find(q="b")]'
    assert parse(both, source="rotbench").variant == "R1"
    assert parse(both, source="bfcl_v3").variant == "B1"
    tagged = '<tool_call>{"name": "ping", "parameters": {"host": "[geo.find()]"}}</tool_call>'
    assert parse(tagged, source="apibank").variant == "A1"


def test_json_comes_before_python_where_the_text_is_json() -> None:
    text = '[{"name": "ping", "arguments": {"host": "[geo.find(q=1)]"}}]'
    parsed = parse(text, source="bfcl_v3")
    assert (parsed.variant, parsed.calls) == ("J", (Call("ping", {"host": "[geo.find(q=1)]"}),))


SOURCE_OF = {"python_calls": "bfcl_v3", "tool_call_tags": "apibank", "react": "toolalpaca"}


# --- preparation ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", ["<|im_end|>", "<|eot_id|>", "</s>", "</s> \n<|im_end|>"])
def test_end_markers_are_dropped(marker: str) -> None:
    assert calls(f'[ping(host="a")]{marker}\n') == [("ping", {"host": "a"})]


def test_an_end_marker_in_a_value_stays() -> None:
    values = ["{}", "a {}", "{} b", "it's {}", 'say "x" {}', "a', {}", "x\"{}'", "a\n{}", "='{}"]
    keys = ["host", "from"]  # no Python names an argument `from`: it is read loosely
    wrong = []
    for key, value, marker in product(keys, values, sorted(LAYOUT_TOKENS)):
        written = (Call("ping", {key: value.format(marker), "n": 1}),)
        for output_format, source in SOURCE_OF.items():
            if parse(render_calls(written, output_format), source=source).calls != written:
                wrong.append((written, output_format))
    assert wrong == []


def test_what_follows_the_last_thought_counts() -> None:
    text = '<think>[ping(host="x")] </think> hm </think>\n[ping(host="a")]'
    assert calls(text) == [("ping", {"host": "a"})]


def test_closed_reasoning_is_never_a_source_of_calls() -> None:
    parsed = parse('<think>so: [ping(host="x")]</think> I am done.', source="bfcl_v3")
    assert (parsed.calls, parsed.flags) == ((), ("call_in_thought",))


@pytest.mark.parametrize("text", [None, "", " \n\t", "<|im_end|>", "  </s>\n"])
def test_an_empty_text_is_flagged(text: str | None) -> None:
    assert parse(text, source="bfcl_v3").flags == ("empty_text",)


def test_a_text_beyond_the_limit_is_read_up_to_it() -> None:
    parsed = parse('[ping(host="a")]\n' + "x" * 100_000, source="bfcl_v3")
    assert (parsed.calls, parsed.flags) == ((Call("ping", {"host": "a"}),), ("truncated",))


# --- native calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("native", "parameters", "flags"),
    [
        ({"id": "1", "name": "ping", "arguments": '{"host": "a"}'}, {"host": "a"}, ()),
        ({"name": "ping", "arguments": {"host": "a"}}, {"host": "a"}, ()),
        ({"type": "function", "function": {"name": "ping", "arguments": '{"n": 1}'}}, {"n": 1}, ()),
        ({"name": "ping", "arguments": "{broken"}, {}, ("bad_arguments",)),
        ({"name": "ping", "arguments": "[1]"}, {}, ("bad_arguments",)),
        ({"name": "ping", "arguments": '{"n": NaN}'}, {}, ("bad_arguments",)),
        ({"name": "ping", "arguments": None}, {}, ("bad_arguments",)),
        ({"name": "ping", "arguments": '{"host": "\\ud83d\\ude00 \\ud800"}'}, {"host": "😀 \ufffd"}, ()),
    ],
)
def test_native_calls_are_taken(native: Json, parameters: Json, flags: tuple[str, ...]) -> None:
    parsed = parse("some text", source="apibank", tool_calls=[native])
    assert (parsed.variant, parsed.calls, parsed.flags) == ("fc", (Call("ping", parameters),), flags)


@pytest.mark.parametrize(
    "native", [None, [], "x", [1], [{"name": 5}], [{"function": None}], {"name": "ping"}]
)
def test_without_a_native_call_the_text_counts(native: Json) -> None:
    parsed = parse('ping(host="a")', source="bfcl_v3", tool_calls=native)
    assert (parsed.variant, parsed.calls) == ("B1", (Call("ping", {"host": "a"}),))


# --- Python calls ---------------------------------------------------------------------------------------


def test_values_are_literals() -> None:
    cases = [
        ("true", True),
        ("[false, null]", [False, None]),
        ("'true'", "true"),
        ("(1, 2)", [1, 2]),
        ("{'k': (1,)}", {"k": [1]}),
        ("{1: 2, None: 3, True: 4}", {"1": 4, "null": 3}),
        ("oslo", "oslo"),
        ("Unit.KELVIN", "Unit.KELVIN"),
        ("+5", 5),
        ("--5", 5),
        ("not True", False),
        ("10/4", 2.5),
        ("2**8 - 1", 255),
        ("-7 // 2", -4),
        ("'a' + 'b' + 'c'", "abc"),
        ("'a' 'b'", "ab"),
        ('r"a\\d"', "a\\d"),
        ("1_000", 1000),
        ("1e3", 1000.0),
        ("...", "..."),
        ("now()", "now()"),
        ("date(y=2020)", {"date": {"y": 2020}}),
        ("x[1, 2]", "x[(1, 2)]"),
        ('float("inf")', "float('inf')"),
        ('"\\ud83d\\ude00"', "😀"),
    ]
    wrong = [
        (source_text, value, got)
        for source_text, value in cases
        if (got := calls(f"[f(a={source_text})]")) != [("f", {"a": value})]
    ]
    assert wrong == []


def test_what_is_refused_is_no_call() -> None:
    cases = [
        "[f(a=~5)]",
        "[f(a=not 5)]",
        "[f(a='x'*3)]",
        "[f(a=1|2)]",
        "[f(a=x+1)]",
        "[f(a=True+1)]",
        "[f(a=1/0)]",
        "[f(a=2**99999999)]",
        "[f(a=(-8)**0.5)]",
        "[f(a=1e400)]",
        "[f(a=b'x')]",
        "[f(a=2j)]",
        "[f(**x)]",
        "[f(a={**x})]",
        "[a[0](x=1)]",
        "[f()(x=1)]",
        "[f(a=g()(x=1))]",
        "[f(a=lambda: 1)]",
        "[f(a=f'{x}')]",
        "[f(a=1), g(a=~5)]",
        "[f(a=~5, b=[g(x=1)])]",
        "[f, g(a=1)]",
    ]
    assert [(text, got) for text in cases if (got := calls(text)) != []] == []


@pytest.mark.parametrize(
    "text",
    [
        'ping(host="a")',
        '[ping(host="a")',
        'ping(host="a")]',
        '```\n[ping(host="a")]\n```',
        '```python\nping(host="a")\n```',
        '`[ping(host="a")]`',
        '[ping(host="a"),]',
        '[ping(host="a")]  # as asked',
        '# as asked\n[ping(host="a")]',
        '(ping(host="a"))',
        '[ping(\n  host="a"\n)]',
        "[ping(host='b', host=\"a\")]",
        'Here is the call: [ping(host="a")]',
        'Here is the call:\n[ping(host="a")]\nDone.',
        'Sure!\n```python\n[ping(host="a")]\n```\nIt asks the host.',
    ],
)
def test_brackets_fences_comments_and_prose_around_python_calls(text: str) -> None:
    assert calls(text) == [("ping", {"host": "a"})]


def test_dotted_names_keep_their_dots_and_full_width_letters_are_normalised() -> None:
    assert calls("[a.b.c(ｘ=1)]") == [("a.b.c", {"x": 1})]


def test_positional_arguments_mean_the_declared_parameters_in_order() -> None:
    assert calls('[ping("a", 3)]', tools=TOOLS) == [("ping", {"host": "a", "n": 3})]
    assert calls('[ping("a", n=3)]', tools=TOOLS) == [("ping", {"n": 3, "host": "a"})]
    assert calls('[ping("a", 3)]') == [("ping", {})]
    assert calls("[ping(*x)]", tools=TOOLS) == [("ping", {})]


def test_keys_that_python_cannot_spell_are_read() -> None:
    assert calls('[book(from="A", to="B", class=1)]') == [("book", {"from": "A", "to": "B", "class": 1})]
    assert calls('[book(user-id: 5, "zip code": "7")]') == [("book", {"user-id": 5, "zip code": "7"})]


def test_a_quoted_key_with_a_colon_may_follow_a_text() -> None:
    assert calls("[book(a='x', 'from': 'B')]") == [("book", {"a": "x", "from": "B"})]
    assert calls("[book(a='', 'from': '')]") == [("book", {"a": "", "from": ""})]
    assert calls("[book(a='it's, ok', b='x')]") == [("book", {"a": "it's, ok", "b": "x"})]
    assert calls("[book(a='['x', 'y: 1']')]") == [("book", {"a": "['x', 'y: 1']"})]


def test_a_colon_counts_only_directly_inside_the_parentheses() -> None:
    assert calls('[f(a: {"k": "x:y"}, b: [1])]') == [("f", {"a": {"k": "x:y"}, "b": [1]})]


@pytest.mark.parametrize(
    "text",
    [
        'Here is the call: [ping(host="a")] Done.',
        'First [ping(host="a")], then [ping(host="b")].',
        'The call is {"name": "ping", "parameters": {"host": "a"}} as asked.',
    ],
)
def test_a_bare_call_inside_a_sentence_is_quoted(text: str) -> None:
    parsed = parse(text, source="bfcl_v3", tools=TOOLS)
    assert (parsed.calls, parsed.flags) == ((), ("quoted_call",))


def test_lists_of_calls_between_prose_are_all_read_but_a_formula_is_none() -> None:
    assert calls("First:\n[f(a=1)]\nThen:\n[g(b=2)]") == [("f", {"a": 1}), ("g", {"b": 2})]
    assert calls("The slope is [sin(x)] there.") == []


def test_names_and_parameters_of_a_keyword_list_are_paired_in_order() -> None:
    text = "[func_name='f', params={'a': 1}, func_name='g', params={}]"
    assert calls(text) == [("f", {"a": 1}), ("g", {})]


def test_calls_on_their_own_lines_need_a_known_name_in_prose_only() -> None:
    assert calls("f(a=1)\ng(b=2)") == [("f", {"a": 1}), ("g", {"b": 2})]
    assert calls("I would say\nprint(1)\nbut no.", tools=TOOLS) == []


# --- tags and JSON --------------------------------------------------------------------------------------


def tagged(*lines: str) -> str:
    return "\n".join(["<tool_call>", *lines, "</tool_call>"])


A, B = '{"name": "a", "parameters": {}}', '{"name": "b", "parameters": {"x": 1}}'
BOTH = [("a", {}), ("b", {"x": 1})]


@pytest.mark.parametrize(
    "text",
    [
        tagged(A, B),
        tagged(A) + "\nand\n" + tagged(B),
        tagged("```json", A, B, "```"),
        tagged(f"[{A}, {B}]"),
        tagged(A + ",", B + ","),
        tagged(A, "not JSON", "", B),
        tagged("{'name': 'a', 'parameters': {}}", "{'name': 'b', 'parameters': {'x': 1}}"),
        tagged('{\n "name": "a",\n "parameters": {}\n}\n{\n "name": "b", "parameters": {"x": 1}}'),
        f"<tool_call>\n{A}\n{B}",
        f"<TOOL_CALL>{A}{B}</TOOL_CALL>",
    ],
)
def test_blocks_between_call_tags(text: str) -> None:
    assert calls(text, "apibank") == BOTH


def test_a_closing_tag_inside_a_string_does_not_close() -> None:
    text = tagged('{"name": "a", "parameters": {"x": "</tool_call>"}}')
    assert calls(text, "apibank") == [("a", {"x": "</tool_call>"})]


@pytest.mark.parametrize("name", ["none", "None", " NONE ", "null", "no_tool"])
def test_a_native_call_named_none_declines_unless_a_tool_has_the_name(name: str) -> None:
    calls = [{"id": "a", "name": name, "arguments": "{}"}, {"id": "b", "name": "ping", "arguments": "{}"}]
    assert parse("", source="apibank", tool_calls=calls[:1]).calls == ()
    assert [call.name for call in parse("", source="apibank", tool_calls=calls).calls] == ["ping"]
    named = Tool(name.strip(), "Does nothing.", {"type": "object", "properties": {}})
    assert parse("", source="apibank", tools=[named], tool_calls=calls[:1]).calls == (Call(name.strip(), {}),)


@pytest.mark.parametrize("found", ["null", "[1]", '"text"', "5"])
def test_parameters_that_are_no_object_count_as_none_and_are_flagged(found: str) -> None:
    parsed = parse(tagged(f'{{"name": "a", "parameters": {found}}}'), source="apibank")
    assert (parsed.calls, parsed.flags) == ((Call("a", {}),), ("bad_arguments",))


def test_the_keys_of_a_json_call() -> None:
    wrong = [
        (name_key, key, got)
        for name_key, key in product(
            ["name", "function", "tool", "func_name", "tool_name", "action"],
            ["parameters", "arguments", "params", "args", "action_input"],
        )
        if (got := calls(f'{{"{name_key}": "f", "{key}": {{"a": 1}}}}')) != [("f", {"a": 1})]
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "function", "function": {"name": "f", "arguments": "{\\"a\\": 1}"}}',
        '{"name": "f", "arguments": "{\\"a\\": 1}"}',
        '{"tool_calls": [{"name": "f", "arguments": {"a": 1}}]}',
        '```json\n{"name": "f", "parameters": {"a": 1}}\n```',
        'The call is: {"name": "f", "parameters": {"a": 1}}',
        '{"name": " `f` ", "parameters": {"a": 1}}',
    ],
)
def test_shapes_of_a_json_call(text: str) -> None:
    assert calls(text) == [("f", {"a": 1})]


@pytest.mark.parametrize(
    "text", ['{"name": "Ann"}', '{"name": "ping"}', '<tool_call>{"name": "ping"}</tool_call>']
)
def test_an_object_with_only_a_name_is_not_a_call(text: str) -> None:
    assert calls(text, tools=TOOLS) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I call ping(*hosts).", [("ping", {})]),  # a tool of the registry, its arguments unreadable
        ("knock(*doors)", []),  # any other name is a call only with arguments that can be read
        ("knock(door='a')", [("knock", {"door": "a"})]),
    ],
)
def test_positional_text_is_a_call_of_a_listed_tool_only(text: str, found: list[tuple[str, Json]]) -> None:
    assert calls(text, tools=TOOLS) == found


@pytest.mark.parametrize("text", ['<ping host="a"/>', '<ping host="a"></ping>', 'Sure.\n<ping host="a" />\n'])
def test_an_element_called_as_a_tool_takes_attributes(text: str) -> None:
    assert calls(text, tools=TOOLS) == [("ping", {"host": "a"})]


@pytest.mark.parametrize("call", ['ping(host="a")', '[ping(host="a")]', '`ping(host="a")`'])
@pytest.mark.parametrize(
    ("lead", "made"), [("I will call ", True), ("I now call ", True), ("You could call ", False)]
)
def test_a_call_in_a_sentence_is_made_where_the_sentence_says_so(lead: str, call: str, made: bool) -> None:
    assert calls(lead + call, tools=TOOLS) == [("ping", {"host": "a"})] * made


@pytest.mark.parametrize(
    ("behind", "made"),
    [
        ("The call timed out.", False),
        ("It returned an error.", False),
        ("The previous call timed out.", True),
        ("The first request failed.", True),
    ],
)
def test_a_bare_call_with_its_outcome_behind_it_is_a_report(behind: str, made: bool) -> None:
    assert calls(f'ping(host="a")\n{behind}', tools=TOOLS) == [("ping", {"host": "a"})] * made


# --- ReAct and plain lines ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'Thought: so\nAction: ping\nAction Input: {"host": "a"}\nObservation: ok',
        'Action:ping\nAction Input:{"host": "a"}',
        'Action: ping \n\nAction Input: {"host": "a"}',
        'Action: ping Action Input: {"host": "a"}',
        "Action: `ping`\nAction Input: {'host': 'a'}",
        '**Action:** "ping"\n**Action Input:** ```json\n{"host": "a"}\n```',
        'Action: ping\nAction Input: {\n  "host": "a"\n}',
    ],
)
def test_react_in_its_spellings(text: str) -> None:
    assert calls(text, "rotbench") == [("ping", {"host": "a"})]


def test_several_actions_are_several_calls_and_labels_in_strings_are_text() -> None:
    text = 'Action: f\nAction Input: {"q": "Action: g Action Input: {}"}\nAction: h\nAction Input: {}'
    assert calls(text, "toolalpaca") == [("f", {"q": "Action: g Action Input: {}"}), ("h", {})]


@pytest.mark.parametrize("found", ["host is a", "[{}]"])
def test_an_input_that_does_not_decode_is_flagged(found: str) -> None:
    parsed = parse(f"Action: ping\nAction Input: {found}", source="tooleyes")
    assert (parsed.calls, parsed.flags) == ((Call("ping", {}),), ("bad_arguments",))


def test_an_input_in_quotes_is_decoded_once_but_for_rotbench() -> None:
    text = 'Action: ping\nAction Input: "{\\"host\\": \\"a\\"}"'
    assert calls(text, "tooleyes") == [("ping", {"host": "a"})]
    assert parse(text, source="rotbench").flags == ("bad_arguments",)


@pytest.mark.parametrize("found", ['{"host": ', '{"host": "a'])
def test_an_input_that_is_cut_off_makes_the_call_unread(found: str) -> None:
    parsed = parse(f"Action: ping\nAction Input: {found}", source="tooleyes", tools=TOOLS)
    assert (parsed.calls, parsed.flags) == ((), ("unread_shape",))


@pytest.mark.parametrize(
    "text", ["Action: ping", "Action: ping\nAction Input:", "Action: ping\nAction Input: None"]
)
def test_an_action_may_have_no_input(text: str) -> None:
    parsed = parse(text, source="rotbench", tools=TOOLS)
    assert (parsed.calls, parsed.flags) == ((Call("ping", {}),), ())


def test_plain_lines_in_prose_need_a_known_name() -> None:
    assert calls('Note: {"host": "a"} is what I use', tools=TOOLS) == []
    assert calls('I use\nping: {"host": "a"}\nnow', tools=TOOLS) == [("ping", {"host": "a"})]
    assert calls("see https://example.org/ping?host=a", tools=TOOLS) == []
    assert calls("I call ping?host=a%20b&n=3. Then I wait.", tools=TOOLS) == [
        ("ping", {"host": "a b", "n": "3"})
    ]
    assert calls("`search?q=new york`") == [("search", {"q": "new york"})]


OF_TODAY = {
    "LongCat": (
        "<longcat_tool_call>ping\n<longcat_arg_key>host</longcat_arg_key>\n"
        "<longcat_arg_value>a</longcat_arg_value>\n</longcat_tool_call>",
        "G1",
    ),
    "Solar": (
        '<|tool_call:begin|>c1<|tool_call:name|>ping<|tool_call:args|>{"host": "a"}<|tool_call:end|>',
        "K1",
    ),
    "Gorilla": ('<<function>>ping(host="a")', "B1"),
    "MCP": ('{"method": "tools/call", "params": {"name": "ping", "arguments": {"host": "a"}}}', "J"),
}


def test_styles_that_no_table_of_ours_writes(subtests: pytest.Subtests) -> None:
    for source, style in product(SOURCES, OF_TODAY):
        with subtests.test(source=source, style=style):
            text, variant = OF_TODAY[style]
            parsed = parse(text, source=source, tools=(PING,))
            assert (parsed.calls, parsed.flags) == ((Call("ping", {"host": "a"}),), ())
            assert parsed.variant == variant or (style, parsed.variant) == ("Gorilla", "P")


@pytest.mark.parametrize("text", ["oslo", "x" * 5_000, "", "a, b"])
def test_an_unmarked_text_of_gemma_that_nothing_ends_is_not_read(text: str) -> None:
    """Without the tokens a text ends at the next key or at the brace."""
    assert parse("<|tool_call>call:f{a:oslo}<tool_call|>", source="bfcl_v3", tools=(OF_A,)).calls
    assert parse("<|tool_call>call:f{a:" + text, source="bfcl_v3", tools=(OF_A,)).calls == ()


def test_a_loose_string_holds_up_to_63_bare_quotes() -> None:
    """One more try would be one more scan of a hostile text."""
    for quotes, read in ((1, True), (63, True), (64, False), (500, False)):
        said = '"'.join(["inch"] * (quotes + 1))
        found = parse(f'[f(a="{said}")]', source="bfcl_v3", tools=(OF_A,)).calls
        assert found == ((Call("f", {"a": said}),) if read else ()), quotes


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ('<toolcall tool="f">```json\n{"a": "x"}\n```</toolcall>', {"a": "x"}),
        ('<toolcall tool="f"><a>{x}</a></toolcall>', {"a": "{x}"}),
        ('<toolcall tool="f"><a>{"k": 1}</a></toolcall>', {"a": '{"k": 1}'}),
        ('<invoke name="f"><parameters><a>x</a></parameters></invoke>', {"a": "x"}),
        ('<invoke name="f"><parameters><a>x</a> and more</parameters></invoke>', {}),
        ('<invoke name="f"><parameters><a>x</parameters></invoke>', {}),
        ('<toolcall tool="f"><parameters><!-- x --></parameters></toolcall>', {}),
    ],
)
def test_what_an_element_of_a_call_holds(text: str, parameters: dict[str, Json]) -> None:
    """JSON, fenced or not, or elements; elements with text between them, and torn ones, give nothing."""
    assert parse(text, source="bfcl_v3", tools=(OF_A,)).calls == (Call("f", parameters),)


def test_a_tag_named_as_an_argument_is_one_inside_its_tool_and_else_a_thought() -> None:
    tools = (Tool("ping", "", {"type": "dict", "properties": {"think": {"type": "string"}}}),)
    assert calls("<ping><think>hard</think></ping>", tools=tools) == [("ping", {"think": "hard"})]
    assert calls("<think>[ping(think=1)]</think>\n[ping(think=2)]", tools=tools) == [("ping", {"think": 2})]


def test_a_call_in_prose_is_read_loosely_where_it_is_no_python() -> None:
    text = 'I ask it now.\nping(from="a")\nThen I wait.'
    assert calls(text, tools=(PING,)) == [("ping", {"from": "a"})]


def test_an_integer_is_read_up_to_13_000_bits() -> None:
    """Where Python's own decoder reads: JSON with a raw tab."""
    assert decode(f'["\t", {1 << 12_999}]') == ["\t", 1 << 12_999]
    with pytest.raises(ValueError, match="not a JSON number"):
        decode(f'["\t", {1 << 13_000}]')


def test_doubled_brackets_are_calls_but_not_as_a_value() -> None:
    assert calls('[[ping(host="a")]]') == [("ping", {"host": "a"})]
    assert calls('{"x": [[ping(host="a")]]}') == calls('I set x: [[ping(host="a")]].') == []


SAID = Tool(
    "say", "", {"type": "object", "properties": {"input": {"type": "string"}, "n": {"type": "integer"}}}
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "<use_mcp_tool><server_name>s</server_name><tool_name>ping</tool_name>"
            '<arguments>{"host":"a"}</arguments></use_mcp_tool>',
            [("ping", {"host": "a"})],
        ),
        (
            r'["{\"name\": \"ping\", \"arguments\": {\"host\": \"a\"}}", {"name": "ping"}]',
            [("ping", {"host": "a"})],
        ),
        (
            '{"name": "ping", "arguments": [{"name": "host", "value": "a"}, {"name": "n", "value": 2}]}',
            [("ping", {"host": "a", "n": 2})],
        ),
        ('{"name": "ping", "arguments": [{"name": "host", "value": "a"}]}', [("ping", {"host": "a"})]),
        # escaped once more, with and without quotes around it; MCP's own message; no arguments, in a word
        (r"{\"name\": \"ping\", \"arguments\": {\"host\": \"a\"}}", [("ping", {"host": "a"})]),
        (r"[{\"name\": \"ping\", \"arguments\": {\"host\": \"a\"}}]", [("ping", {"host": "a"})]),
        (r'"{\"name\": \"ping\", \"arguments\": {\"host\": \"a\"}}"', [("ping", {"host": "a"})]),
        (
            '{"method": "tools/call", "params": {"name": "ping", "arguments": {"host": "a"}}}',
            [("ping", {"host": "a"})],
        ),
        ("Function: ping\nParameters: none", [("ping", {})]),
        # a parameter that is called as arguments are elsewhere
        ('{"name": "say", "input": "x"}', [("say", {"input": "x"})]),
        ('{"name": "say", "input": {"a": 1}, "n": 2}', [("say", {"input": {"a": 1}, "n": 2})]),
        # a record, and what stands in one list with it; a result; a registry
        (
            '[{"name": "ping", "arguments": {"host": "a"}, "error": "timeout"},'
            ' {"name": "ping", "arguments": {"host": "b"}}]',
            [],
        ),
        ('{"name": "ping", "result": 3}', []),
        ('{"name": "ping", "parameters": [{"name": "host", "type": "string"}]}', []),
        ('[{"name": "ping", "arguments": {"host": "a"}}, {"name": "ping", "argu', []),
        # harmony without its tokens: a function's answer ends the reply; a bare final message
        (
            'analysisI think.assistantcommentary to=functions.ping json{"host":"a"}'
            'functions.ping to=assistantcommentary{"ok":1}'
            'assistantcommentary to=functions.ping json{"host":"b"}',
            [("ping", {"host": "a"})],
        ),
        ('final[ping(host="a")]', [("ping", {"host": "a"})]),
        ("<ping><other/><host>a</host></ping>", [("ping", {"host": "a"})]),
        ("<function=ping>some text</function>", [("ping", {})]),  # bad_arguments
        ('<invoke name="ping">', [("ping", {})]),
        # of what the prose says, and the text on the call's line
        ('The tool ping returns\nping(host="a")\n', []),
        ('This function returns the delay of a host:\nping(host="a")\n', []),
        ('ping(host="a")\nThis is an example of the call.', []),
        ('ping(host="a") # failed with 503\n', []),
        ('ping(host="a") -- error\n', []),
        ('- ping(host="a"): rejected\n- ping(host="b")', []),
        ('- ping(host="b")\n- ping(host="a"): rejected', []),
        ('Since it failed, here is the retry:\nping(host="a")\n', [("ping", {"host": "a"})]),
    ],
)
def test_what_is_rarely_met(text: str, found: list[tuple[str, Json]]) -> None:
    assert calls(text, tools=(PING, SAID)) == found


def test_a_wire_name_in_a_text_is_led_back() -> None:
    back = {"geo_find": "geo.find"}
    parsed = parse(
        '[geo_find(q="x")]', source="bfcl_v3", tools=TOOLS, name_back=lambda name: back.get(name, name)
    )
    assert parsed.calls == (Call("geo.find", {"q": "x"}),)


TRIP = Tool(
    "trip",
    "",
    {
        "type": "object",
        "properties": {
            "days": {"type": "integer"},
            "to": {"type": "object", "properties": {"city": {"type": "string"}}},
            "stops": {"type": "array", "items": {"type": "string"}},
        },
    },
)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ('<tool name="trip" days={3} to={{"city": "oslo"}} />', {"days": 3, "to": {"city": "oslo"}}),
        ("<trip><days>3</days><to><city>oslo</city></to></trip>", {"days": 3, "to": {"city": "oslo"}}),
        ("<trip><stops><item>oslo</item><item>bergen</item></stops></trip>", {"stops": ["oslo", "bergen"]}),
        ('<tool_call name="trip">three days</tool_call>', {}),
        ("<|tool_call>call:trip{days:3,to:{city:oslo}}<tool_call|>", {"days": 3, "to": {"city": "oslo"}}),
        (
            "Function: trip\nParameters:\ndays: 3\nstops:\n- oslo\n- bergen",
            {"days": 3, "stops": ["oslo", "bergen"]},
        ),
        ("Function: trip\nParameters: days=3", {"days": 3}),
    ],
)
def test_a_marked_or_labelled_call_is_read_in_every_legible_form(
    text: str, parameters: dict[str, Json]
) -> None:
    """No published format writes these; a small model that mixes two does."""
    assert calls(text, tools=(TRIP,)) == [("trip", parameters)]
