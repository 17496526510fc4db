"""SQuAD: its files, its records, answers from logits."""
