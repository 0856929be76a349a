"""Live episodes: an agent in a world whose state its calls change, with a fault in some of them.

claims    what a final message says: done, not done, or neither; and whether it asks
replay    the worlds of an episode again, without the model
success   the end state against gold's, up to generated ids and undone calls
ledger    what the agent did about the fault
score     one row of scores for every episode
agents    scripted agents whose scores are known beforehand
"""
