"""Is a tool server safe to retry? Its writes are carried out, once and twice, and the reads compared.

A server's command or address comes in, with an inputs file for what its schemas do not say; a verdict for
each write goes out, beside what the server says of itself. No model is asked. Begin with `trials`.

inputs      the inputs file, which tools are reads and which are writes, and values for their arguments
link        one connection to a fresh server, with a door that can lose an answer
effects     what a trial changed, without clocks and with generated ids renamed one to one
trials      which trials a server and a write go through
verdicts    what the trials of a write show, and what the server says
report      a whole drill, what it needs permission for, and its result in each form
"""
