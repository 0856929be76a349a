"""A user's own tools and requests, as his files say them: what `rbtc build --cases` and `rbtc lint` read.

    files      how large and how deep a file may be, and strict JSON
    tools      tool lists in four shapes (OpenAI, MCP's tools/list, Anthropic, plain JSON) as one
    yaml       YAML 1.2 with line numbers, safe and bounded
    cases      what a case is, and what somebody decided about one that was proposed
    cases_file a cases file as cases
    reviewing  deciding about proposed ones
    drafting   cases that tools propose
    book       what a dataset of them says beside its rows
    logs       logs of an agent that runs already, as conversations
    lint       what would break before any model is asked

What an argument has to be (`eval.score.matchers`) the scorers say, whose room stands before this one;
builders make rows of the cases.
"""
