"""What stands around a call in a reply: reasoning in front, an honest retry, a refusal, a report, an example.

Each setting says what becomes of a call in it: `made` (it counts), `thought` (it never does), `spoken` (a bare
one does not count; a marked one counts and is flagged). The sentences are our own, in six languages.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

Outcome = Literal["made", "thought", "spoken"]
"""What becomes of a call in a setting; see above."""


class Setting(NamedTuple):
    """A reply with a place for the call."""

    name: str
    text: str
    """With one `{call}`."""
    outcome: Outcome


_MUSING = "Okay, the user wants this. I should use the right tool."

REASONING: dict[str, str] = {
    "think": "<think>\n{}\n</think>\n\n",
    "think_no_opening": "{}\n</think>\n\n",
    "think_empty": "<think>\n\n</think>\n\n",
    "think_capitals": "<THINK>{}</THINK>\n",
    "thinking": "<thinking>{}</thinking>\n",
    "thought": "<thought>\n{}\n</thought>\n",
    "reasoning": "<reasoning>{}</reasoning>\n\n",
    "scratch_pad": "<scratch_pad>\n{}\n</scratch_pad>\n",
    "analysis": "<analysis>{}</analysis>\n",
    "seed": "<seed:think>{}</seed:think>",
    "square": "[THINK]{}[/THINK]",
    "cohere": "<|START_THINKING|>{}<|END_THINKING|>",
    "kimi_vl": "◁think▷{}◁/think▷",
    "open_thinker": "<|begin_of_thought|>\n\n{}\n\n<|end_of_thought|>\n\n",
    "apertus": "<|inner_prefix|>{}<|inner_suffix|>",
    "harmony": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>",
    "harmony_stripped": "analysis{}assistantfinal",
    "gemma4": "<|channel>thought\n{}<channel|>",
}
"""Closed reasoning in front of an answer; `{}` is the thought."""

RETRIES: dict[str, tuple[str, ...]] = {
    "en": (
        "It timed out. Let me try again:\n{call}",
        "The request failed with a server error. I'll retry it now.\n\n{call}",
        "I already tried this and it failed. Trying again:\n\n{call}",
        "The last call returned a rate limit error, so I am calling the tool again:\n{call}",
        "That attempt did not work. One more try:\n{call}",
        "The service was temporarily unavailable. Retrying the same call:\n\n{call}",
        "I see the authentication error. Let me call it once more:\n{call}",
    ),
    "zh": (
        "请求超时了，我再试一次：\n{call}",
        "工具返回了错误，我现在重新调用：\n{call}",
        "上一次调用失败了，让我再试一次：\n\n{call}",
        "服务暂时不可用。我将重试：\n{call}",
    ),
    "hi": (
        "अनुरोध का समय समाप्त हो गया, मैं फिर से कोशिश करता हूँ:\n{call}",
        "टूल ने त्रुटि दी, मैं दोबारा कॉल कर रहा हूँ:\n{call}",
        "पिछला अनुरोध विफल रहा। मैं इसे फिर से भेजता हूँ:\n\n{call}",
        "सर्वर ने जवाब नहीं दिया, एक बार और प्रयास करता हूँ:\n{call}",
    ),
    "es": (
        "La solicitud agotó el tiempo de espera, lo intento de nuevo:\n{call}",
        "La herramienta devolvió un error, vuelvo a llamarla ahora:\n{call}",
        "La llamada anterior falló. Voy a intentarlo otra vez:\n\n{call}",
        "El servicio no respondió; reintento la misma llamada:\n{call}",
    ),
    "ar": (
        "انتهت مهلة الطلب، سأحاول مرة أخرى:\n{call}",
        "أعادت الأداة خطأ، سأعيد الاستدعاء الآن:\n{call}",
        "فشل الاستدعاء السابق. دعني أحاول من جديد:\n\n{call}",
        "الخدمة غير متاحة مؤقتًا، وسأعيد المحاولة:\n{call}",
    ),
    "sw": (
        "Ombi limeisha muda, najaribu tena:\n{call}",
        "Zana imerudisha hitilafu, nitaita tena sasa:\n{call}",
        "Mwito uliopita ulishindwa. Acha nijaribu tena:\n\n{call}",
        "Huduma haikujibu, narudia mwito:\n{call}",
    ),
}
"""A call announced after a failure: the right reply of a transition row."""

ANSWERS: tuple[str, ...] = (
    "{call}\n",
    "Sure, I will look that up for you.\n\n{call}",
    "To answer this I will use the tool.\n\n{call}\n\nLet me know if you need anything else!",
    "Here is the call:\n{call}",
    "I need this:\n\n{call}\n\nThis gets what was asked for.",
    "我来查询一下：\n{call}",
    "Voy a consultarlo ahora:\n{call}",
)

REFUSALS: dict[str, tuple[str, ...]] = {
    "en": (
        "I can't make this call because I have no permission:\n{call}",
        "I will not execute this call:\n{call}",
        "Do not use\n{call}\nhere.",
        "The call would be\n{call}\nhowever I will not execute it, because the tool failed. Please try again later.",
        "I could call\n{call}\nbut the service is down.",
        "I'm sorry, but I cannot run\n{call}\nwithout your permission.",
        "I would normally call:\n{call}\nBut I am not allowed to use this tool.",
    ),
    "zh": (
        "我不会执行这个调用：\n{call}",
        "我无法调用\n{call}\n因为服务不可用。",
        "我本来可以调用：\n{call}\n但是没有权限。",
    ),
    "hi": (
        "मैं यह कॉल नहीं करूँगा:\n{call}",
        "मैं यह नहीं चला सकता:\n{call}",
        "मैं यह कॉल नहीं कर सकती:\n{call}\nक्योंकि अनुमति नहीं है।",
    ),
    "es": (
        "No voy a hacer esta llamada:\n{call}",
        "No puedo ejecutar\n{call}\nporque el servicio está caído.",
        "Podría llamar a\n{call}\npero no tengo permiso.",
    ),
    "ar": (
        "لن أقوم بهذا الاستدعاء:\n{call}",
        "لا أستطيع تنفيذ هذا الاستدعاء:\n{call}",
        "كان بإمكاني استدعاء\n{call}\nلكن الخدمة متوقفة.",
    ),
    "sw": (
        "Sitafanya mwito huu:\n{call}",
        "Siwezi kuita\n{call}\nkwa sababu sina ruhusa.",
        "Ningeweza kuita\n{call}\nlakini huduma haipatikani.",
    ),
}

REPORTS: dict[str, tuple[str, ...]] = {
    "en": (
        "I already called\n{call}\nand it returned a timeout. Please try again later.",
        "I already made this call:\n{call}\nIt timed out. Please try again later.",
        "I tried the following call, but it failed:\n{call}",
        "The previous call was:\n{call}\nIt returned an error.",
        "I have called:\n\n{call}\n\nThe server did not respond, so I give up.",
        "This call timed out:\n{call}",
    ),
    "zh": (
        "我已经调用了\n{call}\n但是超时了，请稍后再试。",
        "我刚才执行了：\n{call}\n结果失败了。",
        "上一次调用是：\n{call}\n返回了错误。",
    ),
    "hi": (
        "मैंने यह कॉल पहले ही किया था:\n{call}\nलेकिन समय समाप्त हो गया, कृपया बाद में फिर कोशिश करें।",
        "मैंने यह कॉल किया:\n{call}\nलेकिन टूल ने त्रुटि दी।",
    ),
    "es": (
        "Ya hice esta llamada:\n{call}\npero agotó el tiempo de espera; inténtelo más tarde.",
        "Intenté\n{call}\ny el servidor devolvió un error.",
    ),
    "ar": (
        "لقد قمت بهذا الاستدعاء بالفعل:\n{call}\nلكن انتهت مهلته، يرجى المحاولة لاحقًا.",
        "حاولت تنفيذ\n{call}\nلكنه فشل.",
    ),
    "sw": (
        "Tayari nimefanya mwito huu:\n{call}\nlakini umeisha muda; tafadhali jaribu tena baadaye.",
        "Nilijaribu kuita\n{call}\nlakini ilishindwa.",
    ),
}

EXAMPLES: dict[str, tuple[str, ...]] = {
    "en": (
        "You could write something like this, for example:\n{call}\nTell me the city and I will do it.",
        "For example:\n{call}",
        "An example call:\n\n{call}",
        "Should I make this call?\n{call}",
        "{call}\nShall I proceed?",
    ),
    "zh": ("例如：\n{call}", "要我执行这个调用吗？\n{call}"),
    "hi": ("उदाहरण के लिए:\n{call}", "क्या मैं यह कॉल करूँ?\n{call}"),
    "es": ("Por ejemplo:\n{call}", "¿Debo hacer esta llamada?\n{call}"),
    "ar": ("على سبيل المثال:\n{call}", "هل أقوم بهذا الاستدعاء؟\n{call}"),
    "sw": ("Kwa mfano:\n{call}", "Je, nifanye mwito huu?\n{call}"),
}

_THOUGHTS = ("Maybe:\n{call}\n", "I could call\n{call}\nbut the user has not given consent.", "{call}")


def settings() -> Iterator[Setting]:
    """Every setting once."""
    yield Setting("alone", "{call}", "made")
    for number, answer in enumerate(ANSWERS):
        yield Setting(f"answer_{number}", answer, "made")
    for name, wrapper in REASONING.items():
        yield Setting(f"behind_{name}", wrapper.format(_MUSING) + "{call}", "made")
    yield from _numbered("retry", RETRIES, "made")
    yield Setting("retry_behind_think", REASONING["think"].format(_MUSING) + RETRIES["en"][0], "made")
    for name, wrapper in REASONING.items():
        if name == "think_empty":
            continue
        for number, thought in enumerate(_THOUGHTS):
            yield Setting(f"in_{name}{number}", wrapper.format(thought) + "Which one do you mean?", "thought")
        yield Setting(f"in_{name}_and_nothing", wrapper.format(_THOUGHTS[0]), "thought")
    yield from _numbered("refused", REFUSALS, "spoken")
    yield from _numbered("reported", REPORTS, "spoken")
    yield from _numbered("example", EXAMPLES, "spoken")


def _numbered(kind: str, texts: dict[str, tuple[str, ...]], outcome: Outcome) -> Iterator[Setting]:
    for language, of_language in texts.items():
        for number, text in enumerate(of_language):
            yield Setting(f"{kind}_{language}{number}", text, outcome)
