"""How each perturbation type is made, a short paragraph per code. The rules live in `builders/perturb/`."""

_SAME_NAME = (
    "One more tool with the gold tool's name enters the registry at a seeded place (one per "
    "distinct tool where an answer calls several). It has {}."
)
_METADATA = (
    "A second tool equivalent to the gold tool enters and both descriptions are annotated with a "
    "{what}; the gold tool's is better by a factor of 4 or more. The annotations are true, names "
    "mislead: the other tool is called {name}. {query} The registry is shuffled."
)
_STATED = "A sentence that asks for the {wish} joins the last substantive user turn."
_UNSTATED = "The query states no preference, and the golden answer takes the gold tool's new name."
_AB_NAME = "by the original, readable name, while the gold tool's name is abbreviated"
_TRANSIENT = (
    "The row equals its clean row. While a model is evaluated, the first reply that holds a call is"
    " answered with the text below instead of a result, and the second reply is scored."
)

HOW_MADE: dict[str, str] = {
    "clean": "The sample as upstream has it, read into the common columns.",
    "realistic_typos": (
        "A model writes two to four human typing errors into the user's query (API-Bank: the last "
        "substantive user turn). Numbers, names, quoted text and every word that a golden argument "
        "copies stay intact; a text that loses a golden value or a digit is refused and asked for "
        "again."
    ),
    "query_paraphrase": (
        "A model says the same query in other words, entities, numbers and technical terms "
        "verbatim; a text that loses a golden value or a digit is refused and asked for again."
    ),
    "paraphrase_tool_description": (
        "A model rewrites the description of every tool in the registry: same meaning, all "
        "constraints kept, about the same length."
    ),
    "paraphrase_parameter_description": (
        "A model rewrites the description of every parameter in the registry: type constraints and "
        "accepted values verbatim, similar length."
    ),
    "same_name_A": _SAME_NAME.format("no description and no parameters"),
    "same_name_B": _SAME_NAME.format("the gold tool's description and no parameters"),
    "same_name_C": _SAME_NAME.format("no description, and the parameters of another tool"),
    "same_name_D": _SAME_NAME.format("the gold tool's description, and the parameters of another tool"),
    "same_name_E": _SAME_NAME.format("the description and the parameters of another tool"),
    "redundant": (
        "Up to two new tools per tool of the registry (control tools excepted), written by a model:"
        " related, of another purpose, named by the same convention, and none meant to answer the "
        "query."
    ),
    "CD": _METADATA.format(
        what="price per call",
        name="by the gold tool's name and `_Budget`",
        query=_STATED.format(wish="cheap one"),
    ),
    "TD": _METADATA.format(
        what="response time",
        name="by the gold tool's name and `_Fast`",
        query=_STATED.format(wish="quick one"),
    ),
    "CD_NT": _METADATA.format(
        what="price per call", name="by the gold tool's name and `_1`", query=_STATED.format(wish="cheap one")
    ),
    "TD_NT": _METADATA.format(
        what="response time", name="by the gold tool's name and `_1`", query=_STATED.format(wish="quick one")
    ),
    "CD_AB": _METADATA.format(what="price per call", name=_AB_NAME, query=_UNSTATED),
    "TD_AB": _METADATA.format(what="response time", name=_AB_NAME, query=_UNSTATED),
    "CD_AB_pref": "As CD_AB. " + _STATED.format(wish="cheap one"),
    "TD_AB_pref": "As TD_AB. " + _STATED.format(wish="quick one"),
    "transient_timeout": _TRANSIENT,
    "transient_rate_limit": _TRANSIENT,
    "transient_auth_error": _TRANSIENT,
    "transient_server_error": _TRANSIENT,
    "transient_malformed_response": _TRANSIENT,
    "transient_schema_drift": _TRANSIENT,
}

FLAGS: dict[str, str] = {
    "history_names_distractor": (
        "the transcript already calls the tool by the name that the distractor now has; reported apart"
    ),
    "fewer_redundant_tools": "fewer than two new tools per tool: their names were taken",
}

PAPER_ROWS: dict[str, int] = {
    "clean": 199,
    "realistic_typos": 199,
    "query_paraphrase": 199,
    "paraphrase_tool_description": 199,
    "paraphrase_parameter_description": 199,
    "same_name_A": 133,
    "same_name_B": 127,
    "same_name_C": 126,
    "same_name_D": 125,
    "same_name_E": 126,
    "redundant": 199,
    "CD": 102,
    "TD": 102,
    "CD_NT": 102,
    "TD_NT": 102,
    "CD_AB": 144,
    "TD_AB": 144,
    "transient_timeout": 199,
    "transient_rate_limit": 199,
    "transient_auth_error": 199,
    "transient_server_error": 199,
    "transient_malformed_response": 199,
    "transient_schema_drift": 199,
}
"""Rows of the paper's own release (arXiv:2605.11928, appendix), for comparison only."""
