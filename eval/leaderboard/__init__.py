"""The leaderboard: uploads in, checked and scored on the server; a board computed from what is stored.

reading, checks, scoring    an upload becomes verdicts, or one clear reason why not
worker                      the same in a process with limits: uploads are hostile
records, board              what is stored, and how entries become a ranked board (pure)
store, hub                  one small record per submission and its raw predictions, append-only
desk                        who may submit, how often, and the moment at which a submission is listed
views, figures, web         the pages, outside gradio's queue
submit_page, app, space     the gradio page, the whole app, the files of a Space
"""
