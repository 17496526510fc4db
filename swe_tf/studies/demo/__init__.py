"""`swe demo`: one model trained twice, with and without sharing, and a page.

Read `experiment` for what is trained, `jobs` for one of the two runs, `story`
for what they show, `page` for how it is presented.
"""
