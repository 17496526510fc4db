#!/usr/bin/env bash
# Runs as root whenever the VM boots: installs once, then trains or resumes.
# What ends the run, other than a preemption, goes to exit_status for keep.sh.
set -uo pipefail
home=${SWE_HOME:-/opt/swe_tf}

# The package brings plain TensorFlow; the build for TPUs has the same modules.
# libtpu is the version that `swe doctor tpu` compiles with.
install() {
  apt-get update && apt-get install -y git python3.11-venv &&
    { [ -e "$home" ] || git clone {{ repository }} "$home"; } &&
    cd "$home" && git checkout {{ revision }} &&
    python3.11 -m venv .venv &&
    .venv/bin/pip install -c constraints.txt -e . &&
    .venv/bin/pip uninstall -y tensorflow &&
    .venv/bin/pip install tensorflow-tpu==2.20.0 'libtpu==0.0.42.*' &&
    touch .venv/.on_tpu
}

status=0
[ -e "$home/.venv/.on_tpu" ] || install || status=$?
if [ "$status" = 0 ]; then
  scratch=$(mktemp -d)
  gcloud storage cp {{ launch_dir }}/train.sh "$scratch" &&
    PATH="$home/.venv/bin:$PATH" bash "$scratch/train.sh" || status=$?
fi
echo "$status" | gcloud storage cp - {{ launch_dir }}/exit_status
