"""Turns and tool results that a model makes up, its own turn's header, and the end markers of every family."""

import re
from collections.abc import Iterable, Mapping

OWN_ROLES = frozenset({"assistant", "model", "ai", "bot", "chatbot", "gpt", "助手", "assistente"})
"""Names of the model's own role in the headers of chat templates."""

END_MARKERS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "</s>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<eos>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "<turn|>",
    "<|return|>",
    "<|call|>",
    "<｜end▁of▁sentence｜>",
    "<|end▁of▁sentence|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
    "<|START_TEXT|>",
    "<|END_TEXT|>",
    "<|END_ACTION|>",
    "<|eot|>",
    "<|eom|>",
    "<|end_of_msg|>",
    "<|end_message|>",
    "<|content_model_end_sampling|>",
    "<|assistant_end|>",
    "<|role_end|>",
    "<|stop|>",
    "<seed:eos>",
    "<seed:bos>",
    "<|eos|>",
    "<|EOS|>",
    "[EOS]",
    "[/INST]",
    "[e~[",
    "<bos>",
    "<s>",
    "<pad>",
    "<|endofprompt|>",
    "<|END_OF_TURN|>",
    "<|im_sep|>",
    "<｜begin▁of▁sentence｜>",
    "<|begin_of_text|>",
    "<0x0A>",
)
"""Tokens that say nothing but that a turn, a text or a message ends or begins."""

_ROLE = r"(?P<role{n}>[^\W\d_]{{1,16}})"
_TOKENS = (
    r"<\|im_start\|>\s*" + _ROLE.format(n=1),
    r"<\|start_header_id\|>\s*" + _ROLE.format(n=2) + r"\s*<\|end_header_id\|>",
    r"<(?:start_of_turn|\|turn|\|start_of_turn\|)>\s*" + _ROLE.format(n=3),
    r"<\|(?P<role4>user|assistant|system|observation|model|ipython|human|environment)\|>(?!\w)",
    r"<｜(?P<role5>User|Assistant)｜>",
    r"<\|start_of_role\|>\s*" + _ROLE.format(n=6) + r"\s*<\|end_of_role\|>",
    r"(?:<\|START_OF_TURN_TOKEN\|>)?<\|(?P<role7>USER|CHATBOT|SYSTEM)_TOKEN\|>",
    r"<\|(?P<role8>user|assistant|system)_start\|>",
    r"<\|start\|>(?P<role9>user|system|developer|functions\.[\w.-]{1,128})",
    r"(?P<role10>\[INST\])",
    r"\]~[!b]\[?\]?(?P<role11>user|system|ai|tool)\b",
    r"<\|from\|>\s*(?P<role12>(?!assistant)[\w.-]{1,128})(?=\s*<\|recipient\|>)",
    r"<\|message_(?P<role13>user|model|tool|system)\|>",
)
_RESULT_TOKENS = (
    r"<(?:\w{1,12}:)?(?:tool_responses?|function_results?|function_responses?|tool_results?|tool_outputs?|observation"
    r"|longcat_tool_response|api_response)(?::\w{1,16})?>",
    r"<\|?(?:tool_response|tool_result|tool_output|tool_outputs|tool_responses)\|?>",
    r"<[|｜](?:tool[▁_ ]outputs?[▁_ ]begin|tool[▁_ ]results?|START_TOOL_RESULT|observation)[|｜]>",
    r"✿(?:RESULT|RETURN)✿",
    r"\[TOOL_RESULTS\]",
    r"\[/?tool_(?:response|result)s?\]",
)
TOKENS = re.compile("|".join(_TOKENS) + "|(?P<result>" + "|".join(_RESULT_TOKENS) + ")")
"""Turn headers and results written with special tokens or tags."""

TURN_TOKENS_IN_THOUGHT = (
    r"<\|im_start\|>",
    r"<\|start_header_id\|>",
    r"<start_of_turn>",
    r"<\|(?:user|assistant)\|>",
    r"<｜(?:User|Assistant)｜>",
    r"<\|start_of_role\|>",
)
"""Headers of another turn, which end a thought that was never closed."""

_USERS = r"User|USER|Human|HUMAN|Customer|System|SYSTEM|Usuario|USUARIO|Humano|用户|人类|使用者|客户|उपयोगकर्ता|यूज़र|यूजर|المستخدم|مستخدم|Mtumiaji"
_ASSISTANTS = r"Assistant|ASSISTANT|AI|Bot|Agent|Asistente|助手|助理|सहायक|المساعد|مساعد|Msaidizi"
_STRONG = r"(?i:observations?)|观察(?:结果)?|अवलोकन|Observación|الملاحظة|ملاحظة|Uchunguzi"
_WEAK = (
    r"(?i:(?:(?:tool|function|api)[ _-]?(?:call )?)?(?:output|results?|response|return(?:ed)?(?: value)?))"
    r"|(?:工具|函数|接口|返回)?(?:结果|输出|返回值?|响应)|परिणाम|आउटपुट|(?:Resultado|Salida|Respuesta)(?: de la (?:herramienta|función))?"
    r"|النتيجة|نتيجة|الناتج|المخرجات|الاستجابة|Matokeo|Tokeo|Jibu"
)
_LEAD = r"[ \t>]{0,8}(?:#{1,4}[ \t]{1,2})?[*_]{0,3}"
_TAIL = r"[ \t]{0,2}\d{0,3}[*_]{0,3}[ \t]{0,4}[:：][*_]{0,3}"
_LABEL = (
    rf"(?:{_LEAD}(?:(?P<user>{_USERS})|(?P<assistant>{_ASSISTANTS})|(?P<strong>{_STRONG})){_TAIL}"
    r"|[ \t]{0,4}#{2,4}[ \t](?P<header>User|Human|Instruction|Observation|Assistant)[ \t]*:?[ \t]*(?=\n))"
)
FIRST_LABEL = re.compile(_LABEL)
LABELS = re.compile(r"\n" + _LABEL)
"""Turn and result labels: at the start of the text, and of a later line."""

WEAK_LABELS = re.compile(rf"\n{_LEAD}(?P<weak>{_WEAK}){_TAIL}")
"""Labels that mean a result only behind a call."""

CALL_BEFORE = re.compile(r"[\w\]]\(|\{|<[\w|｜]|\baction\b|\[TOOL|✿", re.IGNORECASE)
"""What must stand before a weak label ("Output:") for it to be the result of a call."""

OWN_LABEL = re.compile(rf"\s*+(?:{_ASSISTANTS}|assistant)[ \t]*(?:[:：]|\n)[ \t]*")
"""A label of the model's own turn at the start of a text."""

_ANSWERS = "answer final_answer final response solution output message reply".split()
LAYOUT_TOKENS = frozenset(
    (
        *END_MARKERS,
        *(f"<{end}{tag}>" for tag in _ANSWERS for end in ("", "/")),
        *("<|begin_of_solution|>", "<|end_of_solution|>", "<|from|>"),
    )
)
"""End markers, and the tags around an answer: layout."""

_MARKER = re.compile(r"</?[|｜]?[^<>\s]{1,40}>|\[(?:EOS|/INST)\]|\[e~\[")


def without_end_markers(text: str, declared: Iterable[Mapping[str, object]] = ()) -> str:
    """The text with every end marker outside quoted values as a line break.

    An `<answer>` right behind another tag stays where a tool declares such a parameter: it is an argument.
    """
    if "<" not in text and "[" not in text:
        return text
    pieces: list[str] = []
    position = 0
    arguments: set[str] = set()
    has_apostrophe = "'" in text
    for marker in _MARKER.finditer(text):
        token = marker[0]
        if token not in LAYOUT_TOKENS or in_string(text, marker.start()):
            continue
        if has_apostrophe and _in_value(text, marker):
            continue
        word = token[1:-1]
        is_declared = word in _ANSWERS and any(word in names for names in declared)
        if is_declared and text[position : marker.start()].rstrip().endswith(">"):
            arguments.add("/" + word)
            continue
        if word in arguments:
            arguments.discard(word)
            continue
        pieces += (text[position : marker.start()], "\n")
        position = marker.end()
        if token == "<|from|>" and text.startswith("assistant", position):  # Functionary's own header
            position += len("assistant")
    return "".join(pieces) + text[position:] if pieces else text


def without_trailing_markers(text: str) -> str:
    """The text without the end markers and the white space at its end."""
    for _ in range(16):
        text = text.rstrip()
        marker = next((one for one in END_MARKERS if text.endswith(one)), None)
        if marker is None:
            break
        text = text[: -len(marker)]
    return text


def in_string(text: str, at: int) -> bool:
    """Whether a place lies in a double-quoted string of its line, as far as 512 characters in front tell, or
    between back-ticks right around it."""
    if at == 0 or text[at - 1] in "\n>":
        return False
    if text[at - 1] == "`" and text[max(0, at - 3) : at] != "```":
        return True
    line = _line_before(text, at)
    return (line.count('"') - line.count('\\"')) % 2 == 1


_OPEN_VALUE = re.compile(r"[=:(\[{,][ ]{0,2}'(?:[^'\\]|\\.)*\Z")
_CLOSED_VALUE = re.compile(r"(?:[^'\\\n]|\\.){0,512}'[ ]{0,2}[,:)\]}]")


def _in_value(text: str, marker: re.Match[str]) -> bool:
    """Whether a marker lies in a single-quoted value of its line: an apostrophe opens one behind `=`, `:`, `,` or
    a bracket, and closes it in front of `,`, `:` or a bracket."""
    line = _line_before(text, marker.start())
    return "'" in line and bool(_OPEN_VALUE.search(line) and _CLOSED_VALUE.match(text, marker.end()))


def _line_before(text: str, at: int) -> str:
    """At most 512 characters in front of a place, of its own line."""
    return text[max(0, at - 512, text.rfind("\n", max(0, at - 512), at) + 1) : at]
