"""The layout of TensorBoard's "Custom Scalars": the method's curves on a page.

It is a separate event file in the run's directory, so that `train/` and
`validation/` hold only scalars. Imports no TensorFlow until it writes.
"""

import io
import time
from typing import Any

from swe_tf import files

# Charts by category: the title, and patterns for the beginning of the tags.
LAYOUT = {
  "Sharing": {
    "phase (0 shared, 1 unshared), groups, loops": [
      "sharing/(phase|groups|loops)$"
    ],
    "mean cosine between the gradients of tied layers": [
      "sharing/gradient_cosine$"
    ],
    "distance of the layers from their mean": ["sharing/distance_from_mean$"],
  },
  "Layers": {
    "update of each layer since the last summary, relative": ["layers/update/"],
    "distance of each layer from the mean, relative": ["layers/distance/"],
  },
  "Loss": {
    "loss": ["training_loss$", "validation_loss$"],
    "masked-LM accuracy": ["masked_lm_accuracy$"],
    "learning rate": ["learning_rate$"],
  },
}


def write_layout(directory: files.PathLike) -> None:
  """Writes the layout to a run's directory, replacing an earlier one."""
  from tensorboard.plugins.custom_scalar import layout_pb2
  from tensorboard.plugins.custom_scalar import summary

  layout = layout_pb2.Layout()
  for category, charts in LAYOUT.items():
    added = layout.category.add(title=category)
    for title, tags in charts.items():
      added.chart.add(title=title).multiline.tag.extend(tags)
  write_events(directory, "layout", summary.pb(layout))


def write_events(directory: files.PathLike, name: str, *summaries: Any) -> None:
  """Writes a complete event file of `Summary` messages, or replaces it."""
  from tensorboard.compat.proto import event_pb2
  from tensorboard.summary.writer import record_writer

  content = io.BytesIO()
  writer = record_writer.RecordWriter(content)
  for summary in summaries:
    event = event_pb2.Event(wall_time=time.time())
    event.summary.ParseFromString(summary.SerializeToString())
    writer.write(event.SerializeToString())
  path = files.as_path(directory) / f"events.out.tfevents.0.{name}"
  files.write_bytes(path, content.getvalue())
