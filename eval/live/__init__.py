"""Live episodes: an agent in a world whose state its calls change, with a fault in some of them.

inputs     the rows of a live dataset, and whether they can be played
world_env  an episode as a dialogue has it; `defended`: as defences show it
stage      calls carried out in a row's world
replay     the worlds of an episode again, without the model
success    the end state against gold's, and what the user was told against what happened
ledger     what the agent did about the fault
score      one row of scores for every episode
agents     scripted agents whose scores are known beforehand
"""
