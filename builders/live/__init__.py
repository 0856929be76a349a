"""The third dataset: tasks in worlds that calls change, and the same tasks with one fault each.

bfcl       BFCL's multi-turn tasks as clean rows, and which of its functions write
trace      a world's tasks as clean rows with their gold carried out: what its calls say, and what the end is
           without each or with it twice
pool       arguments that an agent could try
probing    what an agent can find out and put right, tried out in the world
placing    where in a task a fault can stand, and which it gets of each kind, with its label
registry   the core's types that put tools into the registry
build      all of it into a folder of Parquet; and again from that folder, dataset is for `datasets`
"""
