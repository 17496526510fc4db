"""`swe finetune`: a checkpoint to the numbers of the paper's tables.

Read `plan` for what is run, `sweep` for how the runs follow each other,
`run` for one of them, `table` for what comes out. `command` has the flags.
`docs/finetuning.md` shows it at work.
"""
