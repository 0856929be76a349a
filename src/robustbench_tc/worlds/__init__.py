"""Worlds behind the tools of live episodes, and what goes wrong in them.

    base        what a world's file is written with: World, read, write, Task, Turn, call, Failure
    fit         a tool's parameters as a schema, and whether arguments fit it
    check       the mistakes of a world's author, a line each
    orders      a shop (bundled), with its tasks in orders.json
    calendar    appointments (bundled), with its tasks in calendar.json
    handle      a world as an episode holds it: call, snapshot, copy, close
    host        where worlds are opened: in this process, BFCL's in forks of another one (fork_server)
    faults      a handle with a fault in front of it

Builders probe them, episodes and training rollouts run in them: so they belong to no room.
"""
