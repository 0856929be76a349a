"""Names that are never a tool's: ways of declining, and what our own prompts show in a name's place."""

DECLINED = frozenset(
    "none null nil na n/a no_tool notool no_action noaction no_call no_function "
    "no_tool_needed no_tool_call no_op noop not_applicable nothing".split()
)
_DECLINED_WORDS = frozenset({"no tool", "no action", "no call", "no function", "not applicable"})

PLACEHOLDERS = frozenset(
    "name_of_function name_of_tool name_of_the_tool function_name tool_name func_name api_name function tool "
    "func_name1 func_name2 name your_function your_tool".split()
) | {
    "name of the tool",
    "name of the function",
    "the name of one tool",
    "the name of one tool, exactly as it is listed",
    "the tool's name",
    "tool name",
    "function name",
    "name of tool",
    "name of function",
}
"""What stands for a name in our prompts, and in the prompts and documentation that models know."""

_NO_NAMES = DECLINED | _DECLINED_WORDS | PLACEHOLDERS | {""}
_CERTAIN = ("functions.", "default_api.", "multi_tool_use.")
_LIKELY = ("function.", "tools.", "tool.", "api.", "client.", "self.")


def declines(name: str) -> bool:
    """Whether a name says that nothing is called. The caller has looked into the registry before."""
    plain = name.strip(" \t\n<>[]{}").lower().replace("-", "_")
    return plain in DECLINED or plain in _DECLINED_WORDS


def is_no_name(name: str) -> bool:
    """Whether a name declines or stands for one. The caller has looked into the registry before."""
    plain = name.strip(" \t\n<>[]{}").lower().replace("-", "_")
    return plain in _NO_NAMES


def stripped_prefix(name: str, *, certain: bool = False) -> str | None:
    """The name behind the object that some formats call every tool on, or None where there is none.

    `certain`: only objects that no tool is known to belong to.
    """
    if "." in name:
        for prefix in _CERTAIN if certain else _CERTAIN + _LIKELY:
            if name.startswith(prefix) and len(name) > len(prefix):
                return name[len(prefix) :]
    return None
