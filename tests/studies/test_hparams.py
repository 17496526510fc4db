"""The HParams view of a study, through the plug-in's own API."""

from tensorboard.plugins.hparams import api_pb2

from swe_tf.studies import hparams
from swe_tf.studies import study_file
from tests.analysis.fake_runs import write_events
from tests.studies import hparams_view

_METRICS = ("validation_loss", "masked_lm_accuracy")


def _study(axes):
  return study_file.Study(
    "swe/bert_pretraining", (), {}, _METRICS, study_file.plan_runs(axes)
  )


def test_a_sweep_is_readable_through_the_plug_in(tmp_path):
  study = _study({"method": ["baseline", "swe"], "seed": [0, 1]})
  hparams.write_study(tmp_path, study)
  losses = {}
  for index, run in enumerate(study.runs):
    directory = tmp_path / run.name
    directory.mkdir()
    hparams.write_run(directory, run.point)
    losses[tuple(run.point.values())] = 2.0 + index
    write_events(
      directory / "validation",
      {"validation_loss": [(5, 9.0), (10, 2.0 + index)]},
    )
    if index:
      hparams.write_run(directory, run.point, is_finished=True)

  experiment, groups = hparams_view.read(tmp_path)
  domains = {
    info.name: [hparams_view.value_of(v) for v in info.domain_discrete.values]
    for info in experiment.hparam_infos
  }
  assert domains == {"method": ["baseline", "swe"], "seed": [0.0, 1.0]}
  assert [info.name.tag for info in experiment.metric_infos] == [*_METRICS]
  sessions = [session for group in groups for session in group.sessions]
  assert len(groups) == len(sessions) == 4, "written twice, it is one session"
  for group in groups:
    point = tuple(
      hparams_view.value_of(group.hparams[axis]) for axis in ("method", "seed")
    )
    (metric,) = group.metric_values
    assert metric.name.tag == "validation_loss"
    assert metric.value == losses[point] and metric.training_step == 10
  statuses = sorted(session.status for session in sessions)
  assert statuses == sorted(
    [api_pb2.STATUS_UNKNOWN] + [api_pb2.STATUS_SUCCESS] * 3
  )


def test_a_study_that_grows_is_shown_as_it_is_now(tmp_path):
  hparams.write_study(tmp_path, _study({"seed": [0]}))
  hparams.write_study(tmp_path, _study({"seed": [0, 1, 2]}))
  study = _study({"seed": [0]})
  (tmp_path / "run").mkdir()
  hparams.write_run(tmp_path / "run", study.runs[0].point)
  experiment, groups = hparams_view.read(tmp_path)
  (info,) = experiment.hparam_infos
  assert [hparams_view.value_of(v) for v in info.domain_discrete.values] == [
    0.0,
    1.0,
    2.0,
  ]
  assert len(groups) == 1
