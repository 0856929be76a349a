"""Facts of the sources and types that many tests go through."""

from robustbench_tc import sources, taxonomy

SOURCES = sources.names()

OUTPUT_FORMATS = {source.name: source.output_format for source in sources.sources()}

INJECTED_ERRORS = {
    kind.code: kind.injected_error
    for kind in taxonomy.types("all")
    if kind.channel != "mixed" and kind.injected_error is not None
}
"""Type code → what answers a first call, letter by letter."""
