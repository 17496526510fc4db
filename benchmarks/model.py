"""The BERT that the benchmarks train."""

from tests import tiny


def make_config(
  width: int, batch: int, length: int, layers: int, optimizer: str = "adamw"
):
  """Returns the experiment of a BERT of the given size."""
  data = {
    "input_path": "unused",
    "global_batch_size": batch,
    "seq_length": length,
    "max_predictions_per_seq": max(1, length // 8),
  }
  return tiny.config_of(
    {
      "task": {
        "model": {
          "encoder": {
            "any": {
              "vocab_size": 1000,
              "hidden_size": width,
              "num_layers": layers,
              "num_attention_heads": 4,
              "intermediate_size": 4 * width,
              "max_position_embeddings": length,
            }
          }
        },
        "train_data": data,
        "validation_data": data,
      },
      "trainer": {
        "train_steps": 10**6,
        "steps_per_loop": 1000,
        "optimizer_config": {"optimizer": {"type": optimizer}},
      },
    }
  )
