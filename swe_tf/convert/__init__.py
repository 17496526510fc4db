"""Encoders from and to other formats.

`huggingface_config` is the table of names and shapes, `huggingface` converts in
both directions. `swe import` and `swe export` are the commands;
`docs/scoring.md` shows them.
"""
