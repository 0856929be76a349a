"""Names that are never a tool's: ways of declining, and what our own prompts show in a name's place."""

import re

NO_TOOL = frozenset(
    "none null nil na n/a notool noaction nocall nofunction notoolneeded notoolcall notoolcalls noactionneeded"
    " nofunctioncall nofunctionneeded noactionrequired notoolrequired noop notapplicable nothing finalanswer"
    " directlyanswer directanswer answerdirectly respondtouser respondtotheuser replytouser".split()
)
"""Ways to say that nothing is called, lower case, without white space, hyphens and underscores."""

PLACEHOLDERS = frozenset(
    "name nameofthetool nameofthefunction nameoffunction nameoftool function functionname tool toolname thetoolsname"
    " thenameofonetool thenameofonetool,exactlyasitislisted funcname funcname1 funcname2 apiname yourfunction"
    " yourtool".split()
)
"""What stands for a name in our prompts, and in the prompts and documentation that models know."""

_LAYOUT = re.compile(r"[\s_'<>{}\[\]-]+|\.\Z")
_CERTAIN = ("functions.", "default_api.", "multi_tool_use.")
_LIKELY = ("function.", "tools.", "tool.", "api.", "client.", "self.")


def declines(name: str) -> bool:
    """Whether a name says that nothing is called. The caller has looked into the registry before."""
    return _LAYOUT.sub("", name).lower() in NO_TOOL


def is_no_name(name: str) -> bool:
    """Whether a name declines, stands for one, or is empty. The caller has looked into the registry before."""
    plain = _LAYOUT.sub("", name).lower()
    return plain in NO_TOOL or plain in PLACEHOLDERS or not plain


def stripped_prefix(name: str, *, certain: bool = False) -> str | None:
    """The name behind the object that some formats call every tool on, or None where there is none.

    `certain`: only objects that no tool is known to belong to.
    """
    if "." in name:
        for prefix in _CERTAIN if certain else _CERTAIN + _LIKELY:
            if name.startswith(prefix) and len(name) > len(prefix):
                return name[len(prefix) :]
    return None
