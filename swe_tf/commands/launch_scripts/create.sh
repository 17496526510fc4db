#!/usr/bin/env bash
# Requests the TPU; keep.sh calls this. When the TPU is there, its VM boots and
# runs startup.sh. The bucket is in the TPU's region: no traffic between regions.
set -euo pipefail
cd "$(dirname "$0")"
gcloud storage buckets describe {{ bucket }} > /dev/null 2>&1 ||
  gcloud storage buckets create {{ bucket }} --location={{ region }}
gcloud storage cp run.yaml train.sh {{ launch_dir }}/
gcloud compute tpus queued-resources create {{ name }} --node-id={{ name }} \
  --zone={{ zone }} --accelerator-type={{ accelerator }} \
  --runtime-version={{ image }} \
{% if spot %}
  --spot \
{% endif %}
  --metadata-from-file=startup-script=startup.sh
