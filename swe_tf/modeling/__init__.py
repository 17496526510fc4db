"""BERT encoders as the paper trains them."""
