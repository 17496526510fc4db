"""`python -m swe_tf.train`: `swe train`, called as `official.nlp.train` is."""

import sys

from swe_tf import cli

if __name__ == "__main__":
  cli.main(["train", *sys.argv[1:]])
