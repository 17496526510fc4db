#!/usr/bin/env bash
# Returns the TPU, which ends its cost. The run in the bucket stays.
set -euo pipefail
gcloud compute tpus queued-resources delete {{ name }} --zone={{ zone }} \
  --force --quiet
