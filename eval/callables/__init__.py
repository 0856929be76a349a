"""A user's own agent in the harness: a Python function (`--callable`) or a command (`--command`).

task        what the agent gets, and what it may give back
invocation  one run of the agent on one row: its calls, what they are answered with, its replies
function    a Python function, sync or async, bounded in time
command     a program: the request on standard input, the reply on standard output
agent       either of them as a speaker, chosen by `--callable` and `--command`
"""
