"""`swe finetune`: a checkpoint to the numbers of the paper's tables.

Read `protocol` for what is run, `execution` for how it is, `jobs` for one run,
`table` for what comes out. `docs/finetuning.md` shows it at work.
"""
