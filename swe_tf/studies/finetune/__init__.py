"""`swe finetune`: a study over learning rates and seeds, per task."""
