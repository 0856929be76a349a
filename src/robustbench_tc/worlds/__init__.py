"""Worlds behind the tools of live episodes, and what goes wrong in them.

    base      what a world's file is written with: World, read, write, Task, Turn, call, Failure
    orders    a shop (bundled)
    calendar  appointments (bundled)
    handle    a world as an episode holds it: call, snapshot, copy, close
    host      worlds in processes of their own (processes: the host's ends of them; worker: what runs in them)
    faults    a handle with a fault in front of it

Builders probe them, episodes and training rollouts run in them: so they belong to no room.
"""
