"""Two grammars of what prose makes of a bare call: wordings that only speak of it, and wordings that make it.

A production is one line of text. `{call}` is the row's calls in a bare form; a production with `{object}` is a
JSON object that is written once for each call, with its name and arguments there; `{signature}` and `{registry}`
are what the first tool looks like where it is declared.
"""

SPOKEN: dict[str, tuple[str, ...]] = {
    "list": (
        "Tool calls made so far:\n1. {call} → error 500\n\nNothing more can be done.",
        "Attempts:\n- {call} failed\n- {call} timed out\n\nThe service is down.",
        "Steps taken:\n* {call} ✗ no answer\n* {call} ✗ no answer",
        "1. {call} => 504\n2. {call} => 504\n",
    ),
    "table": (
        "| step | call | result |\n|---|---|---|\n| 1 | {call} | timeout |\n\nI stop here.",
        "| status | call |\n|:--|:--|\n| 503 | `{call}` |",
    ),
    "log": (
        "[12:01:07] ERROR {call}: request timed out",
        "2026-01-05 10:22:31 WARN tool call {call}\n2026-01-05 10:22:36 WARN timed out",
        ">>> {call}\nTimeoutError: no answer from the remote end",
        "Error while running {call}: timeout",
    ),
    "fence": (
        "```python\n{call}  # 503\n```\nThe service does not answer.",
        "```\n$ {call}\nTraceback (most recent call last):\nTimeoutError\n```",
        "```\n{call}\n# -> timed out\n```",
    ),
    "diff": (
        "```diff\n- {call}\n```\nThat line is gone from the script.",
        "```diff\n+ {call}\n```\nThis is what changed since yesterday.",
    ),
    "record": (
        '{{object}, "error": "timeout"}',
        '{{object}, "status": "failed"}',
        '{"step": 1, {object}, "result": {"message": "no answer"}}',
        '{"history": [{{object}, "observation": "The endpoint did not respond."}]}',
    ),
    "past": (
        "I have tried the following:\n\n{call}\n\nNo luck, the endpoint is silent.",
        "This is the request I sent:\n{call}",
        "What was called:\n\n{call}",
        "The tool was invoked twice with:\n```\n{call}\n```",
        "Retries exhausted for:\n{call}",
        "Ya intenté lo siguiente:\n{call}",
    ),
    "plan": (
        "Plan for when the service recovers:\n1. {call}",
        "Still pending:\n{call}",
        "Queued until the outage is over:\n```json\n{call}\n```",
    ),
    "deferral": (
        "Once the service is back I will run:\n{call}",
        "I'll try again later with:\n{call}",
        "As soon as the endpoint answers, I will send:\n\n{call}",
        "If the tool works again tomorrow, the call to make is:\n{call}",
        "等服务恢复之后我会调用：\n{call}",
    ),
    "advice": (
        "Please try again later with:\n{call}",
        "To check it yourself, run:\n{call}",
        "You can use this call when the server responds:\n```\n{call}\n```",
        "Please contact support and quote:\n{call}",
    ),
    "label": (
        "For the record:\n{call}",
        "Failed call:\n{call}",
        "**Last request**\n\n{call}",
        "## History\n\n{call}",
        "Error on:\n{call}",
    ),
    "refusal": (
        "I am not going to repeat this:\n{call}",
        "There is no point in calling this again:\n{call}",
        "The above call would be needed, but I lack the permission to make it.\n{call}\nSo I leave it.",
    ),
    "registry echo": ("Available tools:\n{registry}", "```json\n{registry}\n```"),
    "signature": ("{signature}", "```python\n{signature}\n```", "declaration:{signature}"),
}
"""Nothing is called. By kind."""

MADE: dict[str, tuple[str, ...]] = {
    "announcement": (
        "I call the tool now:\n{call}",
        "Let me look that up.\n\n{call}",
        "To find out, I'm going to need this:\n{call}",
        "The function call would look like this:\n{call}",
        "I would call:\n{call}",
        "For this I need the following call:\n```\n{call}\n```",
        "我现在调用工具：\n{call}",
    ),
    "correction": (
        "I have corrected the parameters:\n{call}",
        "That was malformed. The corrected call:\n{call}",
        "Sorry, the name was wrong. It should be:\n{call}",
        "I prepared the request again:\n\n{call}",
        "I have identified the right tool:\n{call}",
    ),
    "retry": (
        "The previous call failed, so I retried it:\n{call}",
        "It timed out, so I repeat it:\n\n1. {call}",
        "The endpoint did not respond within the allotted time. Second attempt:\n{call}",
        "Since the first request got no answer, I send it again:\n```json\n{call}\n```",
        "After the timeout I try once more:\n{call}",
        "No answer so far; retry:\n{call}",
        "Como la llamada falló, la repito:\n{call}",
    ),
    "participle": (
        "Calling the tool:\n{call}",
        "Retrying...\n{call}",
        "Trying again with the same arguments:\n{call}",
        "Timed out. Resending the request:\n\n{call}",
        "Reintentando:\n{call}",
    ),
    "noun": (
        "Function call:\n{call}",
        "**Tool call**\n\n{call}",
        "Next call:\n{call}",
        "### Retry\n\n{call}",
        "Action:\n\n```\n{call}\n```",
    ),
    "closing remarks": (
        "{call}\n\nNo further calls are needed.",
        "{call}\n\nI will wait for the result.",
        "{call}\n\nOnce the result is here I can answer.",
        "{call}\n\nThis repeats the request that timed out.",
        "I will fetch it.\n{call}\nIf it fails again, I will let you know.",
    ),
    "status of a call item": (
        '{{object}, "status": "completed"}',
        '{{object}, "status": "pending"}',
        '{"thought": "The last try timed out.", {object}}',
        '{"role": "assistant", {object}, "error": null}',
    ),
    "comments that are no outcome": (
        "```python\n# the same call as before\n{call}\n```",
        "{call}  # returns what was asked for",
        "```\n{call}  # second try\n```",
        "- {call}",
    ),
    "words of the request": (
        "You want an example and a definition, so I look them up:\n{call}",
        'You asked: "Could you tell me later if it failed, for example?"\n\n{call}',
    ),
}
"""The row's calls are made. By kind."""
