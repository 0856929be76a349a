"""Logs of an agent that runs already, as conversations: `read.read_log`.

    chat       what a log is, however it was written; OpenAI's chat messages and Responses items
    spans      OpenTelemetry's GenAI spans
    read       a file as JSON values with their lines, bounded, and as a `Log`
    redact     personal data out of it
    proposals  its conversations as proposed cases, and the YAML that they are written in
    importing  what `rbtc cases import` writes

Nothing of a log's content stands in an error: a line that cannot be read is named by its number.
"""
