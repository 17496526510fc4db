"""Raw text through a real tf.data service: one dispatcher, two workers."""

import os

import pytest
import tensorflow as tf
import tf_keras

from swe_tf.data import loaders
from swe_tf.data.text import pretrain_text
from tests.data import corpus


@pytest.fixture(name="address")
def fixture_address():
  service = tf.data.experimental.service
  dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
  address = dispatcher.target.split("://")[1]
  workers = [
    service.WorkerServer(
      service.WorkerConfig(
        dispatcher_address=address, heartbeat_interval_ms=100
      )
    )
    for _ in range(2)
  ]
  yield dispatcher.target
  del workers


def test_every_worker_sends_text_in_an_order_of_its_own(tmp_path, address):
  vocab = corpus.write(str(tmp_path), text=corpus.text(20000))
  params = pretrain_text.PretrainTextDataConfig(
    input_path=os.path.join(tmp_path, "text*"),
    vocab_file_path=vocab,
    seq_length=32,
    global_batch_size=8,
    is_training=True,
    seed=3,
    enable_tf_data_service=True,
    tf_data_service_address=address,
    tf_data_service_job_name="test",
  )
  # As a task seeds its weights: the workers must not all draw from it.
  tf_keras.utils.set_random_seed(0)
  stream = loaders.build_dataset(params, tf.distribute.InputContext())
  batches = list(stream.take(60).as_numpy_iterator())
  plain = loaders.build_dataset(params.replace(enable_tf_data_service=False))
  assert stream.element_spec == plain.element_spec
  for batch in batches:
    assert (batch["masked_lm_weights"].sum(axis=1) >= 1).all()
  rows = [row.tobytes() for batch in batches for row in batch["input_word_ids"]]
  assert len(set(rows)) > 0.95 * len(rows), "workers repeat each other"
  masked = {int(i) for b in batches for i in b["masked_lm_positions"][:, 0]}
  assert len(masked) > 3, "every sequence is masked alike"
