"""Sections of made-up runs: every cell by hand, and the empty ones empty."""

import base64
import io
import json
import re

import markdown_it
import pandas as pd
import pytest

from swe_tf.analysis import figures
from swe_tf.analysis import pages
from swe_tf.analysis import report as report_lib
from swe_tf.analysis import statistics
from tests.analysis import fake_runs
from tests.analysis.fake_runs import config
from tests.analysis.fake_runs import swe
from tests.analysis.fake_runs import write_events
from tests.analysis.fake_runs import write_run


def _frames(report):
  """Returns the first table of each section."""
  return {
    s.name: s.frame[s.frame.setting == s.frame.setting.iloc[0]]
    for s in report.sections
    if len(s.frame)
  }


@pytest.fixture(scope="module", name="study")
def fixture_study(tmp_path_factory):
  """Two seeds of a baseline and three ways to share; one did not finish."""
  root = tmp_path_factory.mktemp("runs") / "study"
  for seed in range(2):
    base = {"curve": [(50, 5.0)], "seconds": 10.0 + seed}
    accuracy, loss = 0.40 + seed / 10, 3.0 + seed
    write_run(root / f"base{seed}", config(seed=seed), loss, accuracy, **base)
    fields = {"curve": [(50, 4.0 + seed)], "tau": 10.0}
    ours = config(seed=seed, sharing=swe())
    write_run(root / f"swe{seed}", ours, loss - 1.0, accuracy + 0.01, **fields)
    units = config(seed=seed, sharing=swe(unit_size=2))
    write_run(root / f"units{seed}", units, 3.5, 0.39)
  write_run(root / "tau", config(sharing=swe(0.5)), 3.2, 0.2)
  write_run(root / "rate", config(rate=2e-3), 8.0, 0.1)
  write_run(root / "wide", config(width=16), 1.0, 0.7)
  write_run(root / "lost", config(seed=2, sharing=swe()), 0.1, end=60)
  (root / "study.json").write_text(json.dumps({"unigram_entropy": 3.25}))
  return root


@pytest.fixture(scope="module", name="drawn")
def fixture_drawn(study):
  """The report, and what was drawn for it."""
  drawings, save = {}, figures.save

  def keep(drawing, name, caption):
    drawings[name] = drawing
    return save(drawing, name, caption)

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(figures, "save", keep)
    return report_lib.make([study]), drawings


@pytest.fixture(scope="module", name="report")
def fixture_report(drawn):
  return drawn[0]


def test_methods(report):
  frame = _frames(report)["methods"].set_index("arm")
  assert list(frame.index) == [
    "baseline",
    "swe 1x24, untied after 10",
    "swe 1x24, untied after 50",
    "swe 2x12, untied after 10",
  ]
  base, ours, late, units = (row for _, row in frame.iterrows())
  assert base.validation_loss.mean == 3.5 and base.seeds == 2
  assert base.mlm_accuracy.mean == pytest.approx(45.0)
  assert (base.rates_tried, base.learning_rate) == (2, 0.001)
  assert base.seconds.mean == 10.5
  assert (base.steps, base.tokens) == (100, 100 * 4 * 16)
  assert base.loss_difference is base.mlm_gain is base.verdict is None
  assert ours.left_out == "1 unfinished"
  assert ours.loss_difference.mean == -1.0 and ours.verdict == "pays"
  assert ours.mlm_gain.mean == pytest.approx(1.0, abs=1e-5)
  assert ours.flops_ratio == 1.0 and ours.seconds is None
  assert late.loss_difference.n == 1 and late.verdict == statistics.ONE_SEED
  assert units.mlm_gain.mean == pytest.approx(-6, abs=1e-4)


def test_the_report_opens_with_the_user_s_own_runs(report):
  names = ["methods", "losses", "untie_steps", "learning_rates", "runs"]
  assert [section.name for section in report.sections] == names
  contents = report_lib.to_files(report)
  for name, parts in (
    ("report.md", ("loss_1.png", "differences_1.png", "| method |")),
    ("report.html", ("<img", "<table>")),
  ):
    text = contents[name].decode()
    parts = ("1x24 (untied after 10) pays", *parts, "How to read")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "Entropy of single tokens: 3.2500 nats" in text
    # A column without a cell is only in the CSV file.
    assert "left out" in text and "GLUE" not in text
  assert b"seconds_mean" in contents["methods.csv"]


def test_the_page_has_the_cells_of_the_table_and_needs_nothing_else(report):
  contents = report_lib.to_files(report)
  page = contents["report.html"].decode()
  shown = pd.read_html(io.StringIO(page), keep_default_na=False)[0]
  written = pd.read_csv(io.BytesIO(contents["methods.csv"]))
  for i, loss in enumerate(written.validation_loss_mean[: len(shown)]):
    assert shown["validation loss"][i].startswith(f"{loss:.4f}")
    row = f"| {shown.method[i]} | {shown.unit[i]} |"
    assert row in contents["report.md"].decode()
  addresses = re.findall(r'(?:src|href|data)="([^"]*)"', page)
  drawn = [each for name, each in contents.items() if name.endswith(".svg")]
  assert sorted(addresses) == sorted(
    f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    for svg in drawn
  )
  assert "http" not in page


def test_learning_rates_and_runs(report):
  rates = _frames(report)["learning_rates"]
  shown = list(zip(rates.learning_rate, rates.shown))
  assert shown == [(0.001, "yes"), (0.002, None)]
  runs = _frames(report)["runs"].set_index("run")
  assert len(runs) == 10 and set(runs.entropy) == {3.25}
  lost = runs.loc["study/lost"]
  assert (lost.status, lost.step, lost.steps) == ("unfinished", 60, 100)
  assert lost.validation_loss is None


def test_cells_for_readers_and_for_programs():
  interval = statistics.Interval(0.256, 0.156, 0.356, 3)
  assert pages.show(interval, "+.2f") == "+0.26 ± 0.10"
  assert pages.show(statistics.mean([-0.256]), "+.2f") == "-0.26"
  assert pages.show(None, "+.2f") == ""
  cells = {"method": ["a", "b"], "gain": [interval, None]}
  frame = pd.DataFrame(cells, dtype=object)
  section = pages.Section("finetuning", frame.assign(setting="t"))
  first, one, other = section.to_csv().splitlines()
  assert first.startswith("setting,method,unit,untie_step,score,measured_mean,")
  assert first.endswith(",gain_mean,gain_low,gain_high,gain_n")
  assert one == "t,a,,,,,,,,0.256,0.156,0.356,3" and other == "t,b" + 11 * ","


@pytest.mark.parametrize(
  "name", ["[x](javascript:alert(1))", "<b>|`*", "a\n# b"]
)
def test_names_are_text_in_markdown(name):
  cell = pages.to_markdown(name)
  parser = markdown_it.MarkdownIt("commonmark").enable("table")
  shown = parser.render(f"| a | b |\n| --- | --- |\n| {cell} | c |\n")
  assert shown.count("<td>") == 2
  assert not any(tag in shown for tag in ("<a", "<b>", "<em", "<code", "<h1"))


def _finetune(directory, checkpoint, task, scores, **settings):
  directory.mkdir(parents=True)
  settings = {"init": "checkpoint", "epochs": 3.0, **settings}
  study = {"settings": settings, "checkpoint": str(checkpoint)}
  (directory / "study.json").write_text(json.dumps(study))
  means = {name: {"mean": value} for name, value in scores.items()}
  selection = {"best": "lr_1", "task": task, "scores": means}
  (directory / "selection.json").write_text(json.dumps(selection))


def test_fine_tuning_belongs_to_the_run_of_its_checkpoint(tmp_path):
  tuned = tmp_path / "ft"
  for name, sharing, f1 in (("base", None, 80.0), ("swe", swe(), 82.0)):
    run = tmp_path / name
    write_run(run, config(sharing=sharing), 2.0)
    for task, scores in (
      ("squad_v1.1", {"eval/f1": f1, "eval/exact_match": 1.0}),
      ("squad_v2.0", {"eval/best_f1": f1 - 10}),
      ("SST-2", {"dev/accuracy": f1 + 1}),
    ):
      _finetune(tuned / name / task, run / "ckpt-100", task, scores)
  end, one = tmp_path / "swe" / "ckpt-100", {"dev/accuracy": 1.0}
  _finetune(tuned / "early", tmp_path / "swe" / "ckpt-50", "QNLI", one)
  _finetune(tuned / "gone", tmp_path / "x" / "ckpt-100", "QNLI", one)
  _finetune(tuned / "longer", end, "SST-2", one, epochs=9.0)
  _finetune(tuned / "random", end, "QNLI", one, init="random")
  # A run of fine-tuning is no run of pre-training.
  other = config()
  other["task"]["data_dir"] = "SST-2"
  write_run(tuned / "random" / "lr_1", other, 2.0)
  report = report_lib.make([tmp_path])
  frames = _frames(report)
  assert len(frames["runs"]) == 2
  scores = frames["finetuning"].set_index(["method", "score"])
  assert scores.loc[("baseline", "SQuAD average")].measured.mean == 75.0
  assert scores.loc[("swe", "SQuAD average")].gain.mean == 2.0
  assert scores.loc[("swe", "SST-2 (dev)")].measured.mean == 83.0
  for name in ("QNLI", "QNLI (dev)", "SST-2", "GLUE average"):
    assert ("swe", name) not in scores.index, "not all of its tasks, or no test"
  (section,) = [s for s in report.sections if s.name == "finetuning"]
  for name in ("early", "gone", "longer"):
    assert f"ft/{name}:" in " ".join(section.text)


def test_figures(drawn):
  report, drawings = drawn
  (panel,) = drawings["differences_1"].axes
  dots = [line for line in panel.lines if line.get_marker() == "o"]
  assert list(dots[0].get_xdata()) == [-1.0, -1.0]
  (validation,), (training,) = (
    drawings[name].axes for name in ("loss_1", "loss_1_steps")
  )
  for panel in (validation, training):
    lines = {line.get_label(): line for line in panel.lines}
    entropy = lines["entropy of single tokens"]
    assert list(entropy.get_ydata()) == [3.25, 3.25]
    vertical = [line for line in panel.lines if line.get_ydata()[-1] == 1]
    places = sorted({line.get_xdata()[0] for line in vertical})
    assert places[1] == pytest.approx(5 * places[0])
  assert places == [10, 50]
  lines = {line.get_label(): line for line in validation.lines}
  curve = lines["swe 1x24, untied after 10 (2 seeds)"]
  assert validation.get_xlabel() == "FLOPs"
  (half, end), losses = curve.get_xdata(), curve.get_ydata()
  assert end == pytest.approx(2 * half) and losses.tolist() == [4.5, 2.5]
  for score in ("validation_loss", "mlm_accuracy"):
    (panel,) = drawings[f"untie_step_1_{score}"].axes
    assert list(panel.lines[0].get_xdata()) == [0, 0.1, 0.5]
  figure = report.figures[0]
  assert figure.png.startswith(b"\x89PNG") and b"<svg" in figure.svg


def test_losses_against_flops_where_they_differ(tmp_path, monkeypatch):
  drawings = []
  monkeypatch.setattr(figures, "save", lambda each, *_: drawings.append(each))
  write_run(tmp_path / "base", config(), 2.0, curve=[(50, 3.0)])
  looped = config(sharing=swe(0.5, loops=[{"loops": 1}]))
  write_run(tmp_path / "one", looped, 2.0, curve=[(50, 3.0)])
  # One of them was also logged where the other was not.
  losses = [(1, 9.0), (7, 5.0), (100, 2.0)]
  write_events(tmp_path / "one" / "train", {"training_loss": losses})
  figures.draw_losses("loss", *fake_runs.read(tmp_path))
  (flops,) = drawings[0].axes
  assert flops.get_xlabel() == "FLOPs"
  base, one = (line.get_xdata() for line in flops.lines[:2])
  assert base[0] == pytest.approx(base[1] / 2)
  assert one[0] < base[0] / 10 and one[1] - one[0] == pytest.approx(base[0])
