"""A report of two real runs, number by number against their event files."""

import base64
import html
import html.parser
import json
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
import tensorflow as tf

from benchmarks import screenshots
from official.core import train_utils
from swe_tf.analysis import report as report_lib
from swe_tf.analysis import scalars
from tests import tiny

_STEPS, _INTERVAL, _TAU = 20, 5, 2


def _train(model_dir, records, mode):
  config = tiny.config_of(
    tiny.overrides(records),
    {
      "task": {"sharing": {"mode": mode, "untie_step": _TAU}},
      "trainer": {
        "train_steps": _STEPS,
        "steps_per_loop": _INTERVAL,
        "summary_interval": _INTERVAL,
        "validation_interval": _INTERVAL,
      },
    },
  )
  runner = tiny.make_runner(config, model_dir, mode="train_and_eval")
  train_utils.serialize_config(config, model_dir)
  runner.controller.train_and_evaluate(
    train_steps=_STEPS, eval_steps=2, eval_interval=_INTERVAL
  )


def _scalars(folder, tag):
  """Reads a curve with TensorFlow's own reader."""
  curve = {}
  for path in sorted(folder.glob("events*")):
    for event in tf.compat.v1.train.summary_iterator(str(path)):
      for value in event.summary.value:
        if value.tag == tag:
          curve[event.step] = float(tf.make_ndarray(value.tensor))
  return curve


@pytest.fixture(scope="module", name="runs")
def fixture_runs(tmp_path_factory):
  root = tmp_path_factory.mktemp("runs")
  (root / "records").mkdir()
  records = tiny.write_records(str(root / "records"))
  for name, mode in (("baseline", "none"), ("swe", "swe")):
    _train(str(root / name), records, mode)
  return root


@pytest.fixture(scope="module", name="report")
def fixture_report(runs, tmp_path_factory):
  directory = tmp_path_factory.mktemp("report")
  report_lib.write(directory, report_lib.to_files(report_lib.make([runs])))
  return directory


def _csv(report, name):
  frame = pd.read_csv(report / f"{name}.csv", dtype=str, keep_default_na=False)
  return frame.to_dict("records")


def _markdown_tables(text):
  """Returns the rows of each table, titles first."""
  tables, rows = [], []
  for line in text.splitlines() + [""]:
    if line.startswith("| "):
      rows.append([cell.strip() for cell in line[2:-2].split(" | ")])
    elif rows:
      tables.append([rows[0], *rows[2:]])
      rows = []
  return tables


class _Page(html.parser.HTMLParser):
  """Collects the tables and all addresses of a page."""

  def __init__(self, text):
    super().__init__()
    self.tables, self.addresses, self.open = [], [], []
    self.feed(text)

  def handle_starttag(self, tag, attrs):
    self.addresses += [
      value
      for name, value in attrs
      if name in ("src", "href", "srcset", "data")
    ]
    if tag not in ("meta", "img"):
      self.open.append(tag)
    if tag == "table":
      self.tables.append([])
    elif tag == "tr":
      self.tables[-1].append([])
    elif tag in ("td", "th"):
      self.tables[-1][-1].append("")

  def handle_endtag(self, tag):
    assert self.open.pop() == tag

  def handle_data(self, data):
    if self.open and self.open[-1] in ("td", "th"):
      self.tables[-1][-1][-1] += data


def test_every_number_is_in_the_event_files(runs, report):
  losses, accuracies = {}, {}
  for name in ("baseline", "swe"):
    folder = runs / name / "validation"
    losses[name] = _scalars(folder, "validation_loss")
    accuracies[name] = _scalars(folder, "masked_lm_accuracy")
    assert list(losses[name]) == [5, 10, 15, 20], "validated on the way"
  assert losses["baseline"] != losses["swe"]
  assert _scalars(runs / "swe" / "train", "sharing/untie_step")[20] == _TAU

  rows = {row["method"]: row for row in _csv(report, "methods")}
  for name in ("baseline", "swe"):
    row = rows[name]
    assert float(row["validation_loss_mean"]) == losses[name][_STEPS]
    assert float(row["mlm_accuracy_mean"]) == 100 * accuracies[name][_STEPS]
    assert row["seeds"] == row["validation_loss_n"] == "1"
    assert row["validation_loss_low"] == ""
    assert float(row["learning_rate"]) == 0.01
  assert rows["swe"]["untie_step"] == str(_TAU)
  assert rows["swe"]["unit"] == f"1x{tiny.LAYERS}"
  assert float(rows["swe"]["loss_difference_mean"]) == (
    losses["swe"][_STEPS] - losses["baseline"][_STEPS]
  )
  gain = 100 * accuracies["swe"][_STEPS] - 100 * accuracies["baseline"][_STEPS]
  assert float(rows["swe"]["mlm_gain_mean"]) == gain
  assert rows["swe"]["verdict"] == "cannot tell (one seed)"

  listed = {row["run"].split("/")[-1]: row for row in _csv(report, "runs")}
  for name in ("baseline", "swe"):
    assert float(listed[name]["validation_loss"]) == losses[name][_STEPS]
    assert listed[name]["status"] == "finished"
    assert listed[name]["step"] == str(_STEPS)

  ratios = {row["method"]: row for row in _csv(report, "cost")}
  for name, curve in losses.items():
    assert ratios[name]["steps"] == str(_STEPS)
    assert ratios[name]["tokens"] == str(_STEPS * 8 * tiny.LENGTH)
    step = scalars.steps_to_reach(
      sorted(curve.items()), losses["baseline"][_STEPS]
    )
    found = ratios[name]["steps_ratio_mean"]
    assert found == "" if step is None else float(found) == step / _STEPS


def test_markdown_html_and_csv_have_the_same_cells(report):
  markdown = _markdown_tables((report / "report.md").read_text("utf-8"))
  page = _Page((report / "report.html").read_text("utf-8"))
  assert page.tables == markdown
  for name, table in zip(("methods", "cost", "runs"), markdown):
    for row, cells in zip(_csv(report, name), table[1:], strict=True):
      shown = dict(zip(table[0], cells))
      assert shown["method"] == row["method"]
      loss = row.get("validation_loss_mean", row.get("validation_loss"))
      if loss:
        assert shown["validation loss"] == f"{float(loss):.4f}"


def test_the_page_needs_nothing_else(report):
  page = _Page((report / "report.html").read_text("utf-8"))
  assert page.open == []
  figures = sorted(report.glob("*.svg"))
  assert [path.stem for path in figures] == ["differences", "loss_1"]
  assert len(page.addresses) == len(figures)
  start = "data:image/svg+xml;base64,"
  for address, path in zip(page.addresses, figures):
    assert address.startswith(start)
    data = base64.b64decode(address.removeprefix(start))
    assert data == path.read_bytes()
    assert ElementTree.fromstring(data).tag.endswith("svg")
  assert "http" not in (report / "report.html").read_text("utf-8")


# Scrolls all tables to the right, and writes down how far each moved, and where
# the first cells of its rows are then.
_SCROLL = """<script>
const found = [];
for (const wide of document.querySelectorAll(".wide")) {
  wide.scrollLeft = 1e6;
  const edge = wide.getBoundingClientRect().left;
  const cells = [...wide.querySelectorAll("tr > :first-child")];
  found.push({moved: wide.scrollLeft, lefts: cells.map(
    cell => cell.getBoundingClientRect().left - edge)});
}
document.title = JSON.stringify(found);
</script></body>"""


@pytest.fixture(name="_browser")
def fixture_browser():
  if screenshots.find_browser() is None:
    pytest.skip("no Chromium is installed; Debian: apt-get install chromium")


@pytest.mark.parametrize("width", screenshots.WIDTHS)
def test_the_first_column_stays_in_sight(report, tmp_path, width, _browser):
  page = tmp_path / "page.html"
  text = (report / "report.html").read_text("utf-8")
  page.write_text(text.replace("</body>", _SCROLL), "utf-8")
  title = screenshots.content(page, width).split("</title>")[0]
  tables = json.loads(html.unescape(title.split("<title>")[1]))
  assert tables[-1]["moved"] > 20 or width > 1000, "wider than the window"
  for table in tables:
    assert max(map(abs, table["lefts"])) <= 2, "at the left edge"
