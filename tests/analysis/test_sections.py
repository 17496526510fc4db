"""Tables of made-up runs: every cell by hand, and the empty ones empty."""

import csv
import io
import json

import pytest

from swe_tf.analysis import build
from swe_tf.analysis import figures
from swe_tf.analysis import groups
from swe_tf.analysis import page
from swe_tf.analysis import render
from swe_tf.analysis import tables
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_events
from tests.analysis.fake_runs import write_run


def _make(*roots):
  sections, _ = build.make_sections(roots)
  return {section.name: section for section in sections}


def _csv(section):
  return list(csv.DictReader(io.StringIO(render.to_csv(section))))


@pytest.fixture(scope="module", name="study")
def fixture_study(tmp_path_factory):
  """Two seeds of a baseline and three ways to share; one did not finish."""
  root = tmp_path_factory.mktemp("runs") / "study"
  for seed in range(2):
    write_run(
      root / f"base{seed}",
      config(seed=seed),
      3.0 + seed,
      0.40 + seed / 10,
      curve=[(50, 5.0)],
      seconds=10.0 + seed,
    )
    write_run(
      root / f"swe{seed}",
      config(seed=seed, sharing=swe()),
      2.0 + seed,
      0.41 + seed / 10,
      curve=[(50, 4.0 + seed)],
      tau=10.0,
    )
    write_run(
      root / f"units{seed}",
      config(seed=seed, sharing=swe(unit_size=2)),
      3.5,
      0.39,
    )
  write_run(root / "tau", config(sharing=swe(0.5)), 3.2, 0.2)
  write_run(root / "rate", config(rate=2e-3), 8.0, 0.1)
  write_run(root / "wide", config(width=16), 1.0, 0.7)
  write_run(root / "lost", config(seed=2, sharing=swe()), 0.1, end=60)
  (root / "study.json").write_text(json.dumps({"unigram_entropy": 3.25}))
  return root


@pytest.fixture(scope="module", name="sections")
def fixture_sections(study):
  return _make(study)


def _row(section, **wanted):
  (row,) = [
    row
    for row in _csv(section)
    if all(row[key] == value for key, value in wanted.items())
    and "width 8" in row["setting"]
  ]
  return row


def test_the_baseline_has_no_gain_and_no_paper_s_column(sections):
  row = _row(sections["methods"], method="baseline")
  assert float(row["validation_loss_mean"]) == 3.5
  assert float(row["validation_loss_std"]) == pytest.approx(0.5**0.5)
  assert float(row["mlm_accuracy_mean"]) == pytest.approx(45.0)
  assert row["n"] == row["validation_loss_n"] == "2"
  assert row["rates_tried"] == "2" and row["learning_rate"] == "0.001"
  assert float(row["seconds_mean"]) == 10.5
  assert row["steps"] == "100" and row["tokens"] == str(100 * 4 * 16)
  for key in (
    "pairs",
    "loss_difference_mean",
    "mlm_gain_mean",
    "paper_gain",
    "gain_minus_paper",
    "paper_scale",
    "paper_mlm",
    "mlm_minus_paper",
    "squad_average_mean",
    "glue_average_mean",
  ):
    assert row[key] == "", key


def test_a_method_beside_the_paper_s(sections):
  row = _row(sections["methods"], method="swe")
  assert row["left_out"] == "1 unfinished"
  assert float(row["validation_loss_mean"]) == 2.5
  assert float(row["loss_difference_mean"]) == -1.0
  assert float(row["loss_difference_std"]) == 0.0
  assert float(row["mlm_gain_mean"]) == pytest.approx(1.0, abs=1e-5)
  assert float(row["paper_gain"]) == pytest.approx(0.26)
  assert float(row["gain_minus_paper"]) == pytest.approx(0.74, abs=1e-5)
  assert row["paper_scale"] == "BERT-large, Wikipedia + books, 0.5M steps"
  # Another model: its score is on another scale.
  assert row["paper_mlm"] == row["mlm_minus_paper"] == ""
  assert row["seconds_mean"] == "", "was not written down"


def test_what_was_not_run_is_empty(sections):
  measured = [
    column.key
    for column in sections["methods"].tables[0].columns
    if column.key not in ("method", "unit", "n", "paper_gain", "paper_scale")
  ]
  for method, gain in (("net2net", -1.32), ("reparameterize", -0.09)):
    (cells,) = [
      cells
      for table in sections["methods"].tables
      for cells in table.rows
      if cells["method"] == method and "width 8" in table.title
    ]
    assert cells["paper_gain"] == pytest.approx(gain)
    assert [key for key in measured if cells.get(key) is not None] == []
    row = _row(sections["methods"], method=method)
    assert row["validation_loss_mean"] == row["steps"] == ""


def test_units(sections):
  found = {row["unit"]: row for row in _csv(sections["units"])}
  assert list(found) == ["24x1", "1x24", "2x12", "12x2", "6x4", "4x6"]
  assert float(found["2x12"]["mlm_gain_mean"]) == pytest.approx(-6, abs=1e-4)
  assert float(found["2x12"]["paper_gain"]) == pytest.approx(0.50)
  assert found["6x4"]["mlm_gain_mean"] == "", "was not run"
  assert float(found["6x4"]["paper_gain"]) == pytest.approx(0.33)


def test_untie_steps(sections):
  section = sections["untie_steps"]
  assert [row["untie_step"] for row in _csv(section)] == ["0", "10", "50"]
  assert [figure.name for figure in section.figures] == ["untie_step_1"]
  late = _csv(section)[-1]
  assert float(late["mlm_gain_mean"]) == pytest.approx(-20, abs=1e-5)
  assert late["mlm_gain_n"] == late["pairs"] == "1", "one seed was not run"
  assert late["paper_gain"] == "", "the paper has no number for it"


def test_steps_ratio(sections):
  row = _row(
    sections["steps_ratio"], method="swe", unit="1x24", untie_step="10"
  )
  # Seed 0 from 4 to 2, past 3; seed 1 from 5 to 3, past 4: both half way.
  assert float(row["steps_ratio_mean"]) == pytest.approx(0.75)
  assert row["reached"] == row["pairs"] == "2"
  never = _row(sections["steps_ratio"], method="swe", unit="2x12")
  assert never["steps_ratio_mean"] == ""
  assert (never["reached"], never["pairs"]) == ("1", "2")
  text = " ".join(sections["steps_ratio"].text)
  assert "fully decayed at the same number of steps" in text


def test_learning_rates(sections):
  found = [
    (row["learning_rate"], row["shown"])
    for row in _csv(sections["learning_rates"])
  ]
  assert found == [("0.001", "yes"), ("0.002", "")]


def test_widths(sections):
  found = [(row["width"], row["method"]) for row in _csv(sections["widths"])]
  assert found == [("8", "baseline"), ("8", "swe"), ("16", "baseline")]


_OPENING = tables.Opening("verdict", [], "runs")


def test_sections_without_runs_are_one_list_at_the_end(sections):
  empty = [section for section in sections.values() if section.is_empty]
  assert [section.name for section in empty] == [
    "base",
    "finetuning",
    "columns",
  ]
  text = render.to_markdown(list(sections.values()), _OPENING)
  lines = [f"- {section.title}: {section.absent}" for section in empty]
  assert text.split("\n\n")[-1].splitlines() == lines
  assert text.count("BERT-base (Table 3)") == 1


def test_columns_without_a_cell_are_only_in_the_csv_file(sections):
  for text in (
    render.to_markdown([sections["methods"]], _OPENING),
    page.to_html([sections["methods"]], _OPENING),
  ):
    assert "SQuAD average" not in text and "loss - baseline" in text
  assert "squad_average_mean" in _csv(sections["methods"])[0]


def test_the_entropy_is_beside_the_losses(sections):
  text = render.to_markdown(list(sections.values()), _OPENING)
  assert "Entropy of single tokens: 3.2500 nats" in text
  assert {row["unigram_entropy"] for row in _csv(sections["runs"])} == {"3.25"}


def test_every_run_is_listed(sections):
  found = {row["run"]: row for row in _csv(sections["runs"])}
  assert len(found) == 10
  lost = found["study/lost"]
  assert (lost["status"], lost["step"], lost["steps"]) == (
    "unfinished",
    "60",
    "100",
  )
  assert lost["validation_loss"] == ""


def test_cells_for_readers():
  column = tables.Column("x", "x", "+.2f", spread=True)
  assert column.show(groups.Statistic(0.256, 0.1, 3)) == "+0.26 ± 0.10"
  assert column.show(groups.Statistic(-0.256, None, 1)) == "-0.26"
  assert column.show(None) == ""


def _finetune(directory, checkpoint, task, scores, **settings):
  directory.mkdir(parents=True)
  settings = {
    "checkpoint": str(checkpoint),
    "init": "checkpoint",
    "epochs": 3.0,
  } | settings
  (directory / "study.json").write_text(
    json.dumps({"settings": settings, "checkpoint": str(checkpoint)})
  )
  (directory / "selection.json").write_text(
    json.dumps(
      {
        "best": "lr_1",
        "task": task,
        "metric": "f1",
        "scores": {
          name: {"mean": value, "std": None, "runs": 1}
          for name, value in scores.items()
        },
      }
    )
  )


def test_fine_tuning_belongs_to_the_run_of_its_checkpoint(tmp_path):
  for name, sharing, f1 in (("base", None, 80.0), ("swe", swe(), 82.0)):
    run = tmp_path / name
    write_run(run, config(sharing=sharing), 2.0)
    _finetune(
      tmp_path / "ft" / name / "v1",
      run / "ckpt-100",
      "squad_v1.1",
      {"eval/f1": f1, "eval/exact_match": 1.0},
    )
    _finetune(
      tmp_path / "ft" / name / "v2",
      run / "ckpt-100",
      "squad_v2.0",
      {"eval/best_f1": f1 - 10},
    )
    _finetune(
      tmp_path / "ft" / name / "sst",
      run / "ckpt-100",
      "SST-2",
      {"dev/accuracy": f1 + 1},
    )
  _finetune(
    tmp_path / "ft" / "early",
    tmp_path / "swe" / "ckpt-50",
    "QNLI",
    {"dev/accuracy": 1.0},
  )
  _finetune(
    tmp_path / "ft" / "gone",
    tmp_path / "x" / "ckpt-100",
    "QNLI",
    {"dev/accuracy": 1.0},
  )
  _finetune(
    tmp_path / "ft" / "longer",
    tmp_path / "swe" / "ckpt-100",
    "SST-2",
    {"dev/accuracy": 1.0},
    epochs=9.0,
  )
  _finetune(
    tmp_path / "ft" / "random",
    tmp_path / "swe" / "ckpt-100",
    "QNLI",
    {"dev/accuracy": 1.0},
    init="random",
  )
  sections = _make(tmp_path)
  scores = {
    (row["method"], row["score"]): row for row in _csv(sections["finetuning"])
  }
  assert float(scores["baseline", "SQuAD average"]["measured_mean"]) == 75.0
  swe_row = scores["swe", "SQuAD average"]
  assert float(swe_row["gain_mean"]) == 2.0
  assert float(swe_row["paper_gain"]) == pytest.approx(88.34 - 87.27)
  assert float(swe_row["gain_minus_paper"]) == pytest.approx(0.93)
  # The paper has the test set of SST-2: nothing of it stands beside dev.
  sst = scores["swe", "SST-2 (dev)"]
  assert float(sst["measured_mean"]) == 83.0 and sst["paper_gain"] == ""
  assert not any(("swe", name) in scores for name in ("QNLI", "SST-2"))
  assert ("swe", "GLUE average") not in scores
  row = [row for row in _csv(sections["methods"]) if row["method"] == "swe"][0]
  assert float(row["squad_average_mean"]) == 77.0
  assert row["glue_average_mean"] == "", "five of its tasks are missing"
  text = " ".join(sections["finetuning"].text)
  for name in ("early", "gone", "longer"):
    assert f"ft/{name}:" in text


def test_runs_of_fine_tuning_are_no_runs_of_pretraining(tmp_path):
  write_run(tmp_path / "run", config(), 2.0)
  other = config()
  other["task"]["data_dir"] = "SST-2"
  write_run(tmp_path / "run" / "ft" / "lr_1", other, 2.0)
  assert len(_csv(_make(tmp_path)["runs"])) == 1


def test_the_loss_figure_marks_untie_step_and_entropy(study, monkeypatch):
  drawings = []
  save = figures._save
  monkeypatch.setattr(
    figures,
    "_save",
    lambda drawing, *rest: (drawings.append(drawing), save(drawing, *rest))[1],
  )
  sections = _make(study)
  drawing = next(each for each in drawings if len(each.axes) == 2)
  for panel in drawing.axes:
    lines = {line.get_label(): line for line in panel.lines}
    entropy = lines["entropy of single tokens"]
    assert list(entropy.get_ydata()) == [3.25, 3.25]
    assert [
      list(line.get_xdata())
      for line in panel.lines
      if len(set(line.get_xdata())) == 1
    ] == [[10, 10]]
  lines = {line.get_label(): line for line in drawing.axes[1].lines}
  curve = lines["swe 1x24, untied after 10 (n=2)"]
  assert curve.get_xydata().tolist() == [[50, 4.5], [100, 2.5]]
  # Matplotlib names every text of an SVG in a comment.
  assert (
    b"<!-- entropy of single tokens -->" in sections["losses"].figures[0].svg
  )


def test_the_losses_of_all_seeds_are_in_one_figure(tmp_path):
  for seed in range(2):
    write_run(tmp_path / str(seed), config(seed=seed), 2.0)
  # One of them was also logged where the other was not.
  write_events(
    tmp_path / "0" / "train",
    {"training_loss": [(1, 9.0), (7, 5.0), (100, 2.0)]},
  )
  (figure,) = _make(tmp_path)["losses"].figures
  assert figure.png.startswith(b"\x89PNG")
  assert b"<svg" in figure.svg
