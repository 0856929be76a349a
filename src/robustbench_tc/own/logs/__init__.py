"""Logs of an agent that runs already, as conversations: `log_files.read_log`.

    chat       what a log is, and the entries of its conversations in the words of every format
    steps      what single records tell, put together to conversations
    spans      traces: spans of OpenTelemetry, runs and observations of tracing services
    formats    the formats in one table: how a record of each is known, and how it is read
    log_files  files as JSON values with their lines, bounded, and as a `Log`
    redact     personal data out of it
    proposals  its conversations as proposed cases, and the YAML that they are written in
    importing  what `rbtc cases import` writes

Nothing of a log's content stands in an error: a line that cannot be read is named by its number.
"""
