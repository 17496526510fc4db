"""Encoders from and to other formats.

`huggingface_names` is the table of names and shapes; `huggingface_import` and
`huggingface_export` are the two directions. `swe import` and `swe export` are
the commands; `docs/scoring.md` shows them.
"""
