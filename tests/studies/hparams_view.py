"""TensorBoard's dashboard HParams of a directory, through the plug-in's API."""

from tensorboard import context
from tensorboard.backend.event_processing import data_provider
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams import backend_context
from tensorboard.plugins.hparams import list_session_groups


def value_of(value):
  """Returns what a protobuf value holds."""
  return getattr(value, value.WhichOneof("kind"))


def read(directory):
  """Returns the experiment and its groups of sessions, all of them."""
  multiplexer = plugin_event_multiplexer.EventMultiplexer()
  multiplexer.AddRunsFromDirectory(str(directory)).Reload()
  provider = data_provider.MultiplexerDataProvider(multiplexer, str(directory))
  backend = backend_context.Context(
    base_plugin.TBContext(
      logdir=str(directory), multiplexer=multiplexer, data_provider=provider
    )
  )
  request = context.RequestContext()
  metadata = backend.hparams_metadata(request, "")
  experiment = backend.experiment_from_metadata(
    request, "", True, metadata, provider.list_hyperparameters
  )
  asked = api_pb2.ListSessionGroupsRequest(
    allowed_statuses=[
      api_pb2.STATUS_UNKNOWN,
      api_pb2.STATUS_SUCCESS,
      api_pb2.STATUS_RUNNING,
    ],
    slice_size=100,
  )
  for info in experiment.hparam_infos:
    asked.col_params.add(hparam=info.name)
  for info in experiment.metric_infos:
    asked.col_params.add(metric=info.name)
  found = list_session_groups.Handler(request, backend, "", asked).run()
  return experiment, list(found.session_groups)
