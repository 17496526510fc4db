"""`swe finetune`: a checkpoint to the numbers of the paper's tables.

A study over learning rates and seeds. Read `protocol` for what is run, `task`
for the study of a task, `jobs` for a single run, `table` for the outcome.
`docs/finetuning.md` shows how to use it.
"""
