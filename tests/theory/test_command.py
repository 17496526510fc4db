"""`swe theory` as a user runs it, in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys

from absl.testing import absltest

_ROOT = pathlib.Path(__file__).parents[2]


def _run(*arguments):
  return subprocess.run(
    [sys.executable, "-m", "swe_tf.commands.theory", *arguments],
    cwd=_ROOT,
    env=os.environ | {"COLUMNS": "160"},
    capture_output=True,
    text=True,
    check=False,
  )


class CommandTest(absltest.TestCase):
  def _assert_refused(self, result, *words):
    self.assertEqual(result.returncode, 2)
    self.assertLen(result.stderr.strip().splitlines(), 1)
    for word in words:
      self.assertIn(word, result.stderr)

  def test_a_proved_claim_that_fails_is_an_error(self):
    output_dir = pathlib.Path(self.create_tempdir().full_path) / "new"
    result = _run("theorem3", f"--output_dir={output_dir}", "--step_scale=2")
    self.assertEqual(result.returncode, 1)
    self.assertIn("5 of 6 claims hold", result.stdout)
    rows = json.loads((output_dir / "claims.json").read_text(encoding="utf-8"))
    self.assertEqual(
      [row["source"] for row in rows if not row["holds"]], ["Lemma"]
    )
    self.assertTrue((output_dir / "claims.md").exists())
    self.assertTrue((output_dir / "theorem3.png").exists())

  def test_claims_that_hold_are_a_success(self):
    output_dir = self.create_tempdir().full_path
    result = _run("proposition1", f"--output_dir={output_dir}")
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn("5 of 5 claims hold", result.stdout)
    self.assertEmpty(result.stderr)

  def test_misuse_is_refused_in_one_line(self):
    self._assert_refused(
      _run("theorem9", "--output_dir=/tmp/x"), "'theorem9'", "theorem3"
    )
    self._assert_refused(_run("all"), "--output_dir", "missing")
    self._assert_refused(_run("--output_dir=/tmp/x"), "no experiment", "all")
    self._assert_refused(_run("all", f"--output_dir={__file__}"), __file__)

  def test_starts_without_tensorflow(self):
    code = (
      "import sys, swe_tf.commands.theory\n"
      "sys.exit('tensorflow' in sys.modules)"
    )
    result = subprocess.run(
      [sys.executable, "-c", code], cwd=_ROOT, check=False
    )
    self.assertEqual(result.returncode, 0)


if __name__ == "__main__":
  absltest.main()
