"""Pointer chasing: one operation, iterated as many times as the input says.

    python -m experiments.pointer_chasing OUTPUT_DIR [EXAMPLES]

Writes train.tfrecord and validation.tfrecord for `swe/bert_pretraining`. An
example has a random permutation f of 16 nodes and a number k of hops, 1 to 8;
the model has to predict f(f(...f(i))), k times, for every node i:

    [CLS] k f(1) ... f(16) [MASK] x 16

Only position embeddings say which node a position stands for. A block that does
one hop solves the task if it is applied k times: the case in which layers have
most to share. A guess has a loss of log 16 = 2.77.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

NODES, HOPS = 16, 8
_MASK, _CLS = 1, 2
_FIRST_NODE = 3
_FIRST_HOPS = _FIRST_NODE + NODES
VOCAB_SIZE = _FIRST_HOPS + HOPS
SEQ_LENGTH = 2 + 2 * NODES


def make_example(rng: np.random.Generator) -> dict[str, np.ndarray]:
  """Returns the features of a random example."""
  successors = rng.permutation(NODES)
  hops = int(rng.integers(1, HOPS + 1))
  reached = np.arange(NODES)
  for _ in range(hops):
    reached = successors[reached]
  ids = np.full(SEQ_LENGTH, _MASK)
  ids[:2] = _CLS, _FIRST_HOPS + hops - 1
  ids[2 : 2 + NODES] = _FIRST_NODE + successors
  return {
    "input_ids": ids,
    "input_mask": np.ones(SEQ_LENGTH, int),
    "segment_ids": np.zeros(SEQ_LENGTH, int),
    "masked_lm_positions": np.arange(SEQ_LENGTH - NODES, SEQ_LENGTH),
    "masked_lm_ids": _FIRST_NODE + reached,
    "masked_lm_weights": np.ones(NODES, np.float32),
  }


def _serialize(features: dict[str, np.ndarray]) -> bytes:
  def feature(values: np.ndarray):
    if values.dtype == np.float32:
      return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

  table = {name: feature(values) for name, values in features.items()}
  return tf.train.Example(
    features=tf.train.Features(feature=table)
  ).SerializeToString()


def main(output_dir: str, examples: str = "64000") -> None:
  """Writes the examples, and 2,000 others for validation."""
  folder = pathlib.Path(output_dir)
  folder.mkdir(parents=True, exist_ok=True)
  for seed, (name, count) in enumerate(
    [("train", int(examples)), ("validation", 2000)]
  ):
    rng = np.random.default_rng(seed)
    with tf.io.TFRecordWriter(str(folder / f"{name}.tfrecord")) as writer:
      for _ in range(count):
        writer.write(_serialize(make_example(rng)))


if __name__ == "__main__":
  main(*sys.argv[1:])
