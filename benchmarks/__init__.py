"""What the endpoint costs, beside everything that a team would use instead.

One run on one machine measures all contestants in turns, over HTTP, and rewrites `RESULTS.md` and
its plots. Machines differ and drift: what counts are ratios of turns that lie side by side.
Every answer is checked; a contestant that answers wrongly ends the run.
"""
