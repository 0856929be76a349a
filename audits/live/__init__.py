"""The gate of the live dataset: rows by themselves, in pairs, and replayed in their worlds.

    entries  rows as they lie in the files, each held against its clean row
    met      which of gold's calls a fault stands before
    rows     what must hold of a row by itself
    registry what must hold of a row with more tools
    faults   what must hold of a fault, given the tools and gold
    texts    what may not stand in a text that an agent reads
    replay   gold and labels, tried in the worlds
    needed   the values of a read that gold needs later
    asked    the arguments that reads are tried with
    differing what can be seen of two worlds

No code is shared with the builder that made the rows.
"""
