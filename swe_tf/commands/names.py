"""The names of all commands, in the order in which a user needs them."""

# By group and command: its module in swe_tf.commands, and what it is for.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
  "Try it": {
    "demo": ("demo", "a small BERT with and without sharing, and a page"),
    "experiments": ("experiments", "list the configurations, or print one"),
  },
  "Before a run": {
    "pilot": ("pilot", "would sharing pay for a planned run, on its data?"),
    "doctor": ("doctor", "check a command line of swe train before it is run"),
    "doctor cost": ("doctor_cost", "what a run will cost"),
    "doctor tpu": ("doctor_tpu", "compile the steps for a TPU, without a TPU"),
  },
  "From text to a score": {
    "prepare pretraining": (
      "prepare_pretraining",
      "text files to masked TFRecords",
    ),
    "train": ("train", "official.nlp.train with the swe experiments"),
    "prepare squad": ("prepare_squad", "SQuAD JSON to TFRecords"),
    "prepare glue": ("prepare_glue", "GLUE files to TFRecords"),
    "finetune": ("finetune", "fine-tune on SQuAD and GLUE as the paper does"),
    "score": ("score", "score predictions"),
    "submission": ("submission", "predictions to the GLUE benchmark's zip"),
  },
  "Many runs": {
    "sweep": ("sweep", "run a study: many runs, one file"),
    "report": ("report", "tables and figures of runs, beside the paper's"),
    "diff": ("diff", "compare two runs: config, curves, weights, slots"),
  },
  "In and out": {
    "import": ("import_", "a Hugging Face BERT to a Model Garden checkpoint"),
    "export": (
      "export",
      "a checkpoint to a SavedModel or to Hugging Face's layout",
    ),
  },
  "More": {
    "theory": ("theory", "the paper's theory, computed"),
    "completion": ("completion", "the completion of commands, for a shell"),
  },
}
COMMANDS = {
  name: entry for group in GROUPS.values() for name, entry in group.items()
}
