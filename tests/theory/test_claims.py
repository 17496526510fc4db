"""How claims are judged and written."""

import json
import math
import pathlib

from absl.testing import absltest

from swe_tf.theory import claims

_SAID = claims.paper("Lemma: |W|")


class ClaimsTest(absltest.TestCase):
  def test_bounds_can_fail(self):
    self.assertTrue(_SAID.at_most(1.0, 1.0).holds)
    self.assertFalse(_SAID.at_most(1.0, 1.01).holds)
    self.assertTrue(_SAID.at_least(1.0, 1.0).holds)
    self.assertFalse(_SAID.at_least(1.0, 0.99).holds)
    self.assertTrue(_SAID.close(1.0, 0.1, 1.05).holds)
    self.assertFalse(_SAID.close(1.0, 0.1, 1.2).holds)

  def test_a_diverged_run_never_passes(self):
    for measured in (math.nan, math.inf):
      self.assertFalse(_SAID.at_most(1.0, measured).holds)
      self.assertFalse(_SAID.close(1.0, 1.0, measured).holds)
    self.assertFalse(_SAID.at_least(1.0, math.nan).holds)
    self.assertFalse(_SAID.close(1.0, math.nan, 1.0).holds)

  def test_only_what_is_observed_may_fail(self):
    for kind in ("paper", "derived", "slip", "observed"):
      claim = getattr(claims, kind)("Lemma: |W|").at_most(1, 0)
      self.assertEqual(claim.kind, kind)
      self.assertEqual(claim.proved, kind != "observed")

  def test_files(self):
    rows = [
      _SAID.at_most(1.0, 0.5),
      claims.observed("Figure 2: ratio").close(0.5, 0.1, math.inf),
    ]
    directory = pathlib.Path(self.create_tempdir().full_path)
    claims.write(rows, directory)

    def refuse(constant):
      raise ValueError(f"{constant} is not JSON")

    read = json.loads(
      (directory / "claims.json").read_text(encoding="utf-8"),
      parse_constant=refuse,
    )
    self.assertEqual(
      read[0],
      dict(source="Lemma", claim="|W|", predicted="<= 1", measured=0.5)
      | dict(holds=True, kind="paper", proved=True),
    )
    self.assertEqual((read[1]["measured"], read[1]["holds"]), ("inf", False))
    table = (directory / "claims.md").read_text(encoding="utf-8").splitlines()
    self.assertLen(table, 4)
    self.assertIn(r"\|W\|", table[2])
