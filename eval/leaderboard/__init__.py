"""The board: a results repository, a checker, static pages.

In: run folders, added by pull request (or into a folder). Out: an entry for each run that the checker
scored, one file of all entries, and a site that any host serves. Begin with `entry`: what is known of a run.
Then `repository`, `checker` (a run folder into an entry), `site` (entries into pages), `space`
(a form).
"""
