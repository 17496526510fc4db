"""Tokens per second of the input: text, tokens and masked shards.

    python -m benchmarks.input_pipeline --text=FILE --vocab=FILE

Four loaders read the same documents and make batches of masked sequences,
interleaved in this process: `swe/bert_pretraining_text` from text (`text`) and
from shards of tokens (`tokens`), Model Garden's `pretrain_text_dataloader` from
text (`stock_text`), and Model Garden's loader of masked shards (`masked`). Only
tokens that are not padding count. Each turn has a pipeline of its own, timed
from its start and for several passes over the text: otherwise what is made
ahead and buffered would seem to take no time.
"""

import os
import statistics
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# pylint: disable=g-import-not-at-top
from absl import app
from absl import flags
from rich import console as rich_console
import tensorflow as tf

from benchmarks import common
from official.nlp.data import pretrain_dataloader
from official.nlp.data import pretrain_text_dataloader
from swe_tf.data import loaders
from swe_tf.data.prepare import job
from swe_tf.data.prepare import manifest

_TEXT = flags.DEFINE_string("text", None, "Text file.", required=True)
_VOCAB = flags.DEFINE_string("vocab", None, "WordPieces.", required=True)
_SEQ_LENGTH = flags.DEFINE_integer("seq_length", 512, "Sequence length.")
_TOKENS = flags.DEFINE_integer("tokens", 12_000_000, "Tokens in a turn.")
_TURNS = flags.DEFINE_integer("turns", 3, "Turns of each side.")
_OUTPUT = flags.DEFINE_string("output", None, "A JSON file for the figures.")


def _write_records(path: str) -> None:
  """Writes every paragraph as a `tf.train.Example`, for Model Garden."""
  with open(_TEXT.value, "rb") as file, tf.io.TFRecordWriter(path) as writer:
    for line in filter(None, map(bytes.strip, file)):
      feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[line]))
      writer.write(
        tf.train.Example(
          features=tf.train.Features(feature={"text": feature})
        ).SerializeToString()
      )


def _prepare(folder: str, fresh_masks: bool) -> str:
  """Writes shards of tokens, or masked ones; returns their pattern."""
  job.prepare(
    job.Options(
      input=_TEXT.value,
      vocab=_VOCAB.value,
      output_dir=folder,
      seq_length=_SEQ_LENGTH.value,
      num_shards=8,
      fresh_masks=fresh_masks,
    ),
    rich_console.Console(stderr=True),
  )
  return os.path.join(folder, "*.tfrecord")


def _ours(source: str):
  return loaders.build_dataset(
    loaders.PretrainTextDataConfig(
      input_path=source,
      vocab_file_path=_VOCAB.value,
      seq_length=_SEQ_LENGTH.value,
      global_batch_size=32,
    )
  )


def _model_garden(records: str):
  return pretrain_text_dataloader.BertPretrainTextDataLoader(
    pretrain_text_dataloader.BertPretrainTextDataConfig(
      input_path=records,
      vocab_file_path=_VOCAB.value,
      seq_length=_SEQ_LENGTH.value,
      global_batch_size=32,
      max_predictions_per_seq=int(0.15 * _SEQ_LENGTH.value) + 1,
      use_next_sentence_label=False,
    )
  ).load()


def _masked(shards: str):
  return pretrain_dataloader.BertPretrainDataLoader(
    pretrain_dataloader.BertPretrainDataConfig(
      input_path=shards,
      seq_length=_SEQ_LENGTH.value,
      global_batch_size=32,
      max_predictions_per_seq=manifest.max_predictions(_SEQ_LENGTH.value, 0.15),
      use_next_sentence_label=False,
    )
  ).load()


def _tokens_per_second(dataset) -> float:
  start, tokens = time.perf_counter(), 0
  for batch in dataset:
    tokens += int(tf.reduce_sum(batch["input_mask"]))
    if tokens >= _TOKENS.value:
      return tokens / (time.perf_counter() - start)
  raise ValueError("The text does not repeat.")


def main(_):
  with tempfile.TemporaryDirectory() as folder:
    records = os.path.join(folder, "text.tfrecord")
    _write_records(records)
    sides = {
      "text": _ours(_TEXT.value),
      "stock_text": _model_garden(records),
      "tokens": _ours(_prepare(f"{folder}/tokens", fresh_masks=True)),
      "masked": _masked(_prepare(f"{folder}/masked", fresh_masks=False)),
    }
    speeds = {name: [] for name in sides}
    for _ in range(_TURNS.value):
      for name, dataset in sides.items():
        speeds[name].append(_tokens_per_second(dataset))
  result = {name: statistics.median(found) for name, found in speeds.items()}
  for ours, stock in (("text", "stock_text"), ("tokens", "masked")):
    ratio = result[f"{ours}/{stock}"] = common.median_ratio(speeds, ours, stock)
    print(
      f"tokens/s: {ours} {result[ours]:,.0f}, {stock} {result[stock]:,.0f}, "
      f"ratio {ratio:.2f}"
    )
  common.write_figures(
    _OUTPUT.value, result | {"seq_length": _SEQ_LENGTH.value}
  )


if __name__ == "__main__":
  app.run(main)
