"""`swe finetune`: a checkpoint to the numbers of the paper's tables.

Read `protocol` for what is run, `execution` for how, `jobs` for a single run,
`table` for the outcome. `docs/finetuning.md` shows how to use it.
"""
