"""From logs to a plan: which faults tools really had, how often, and in which words.

kinds     what a tool's answer says went wrong
rates     how often, with an interval
fitted    both over logs, and the plan
"""
