#!/bin/sh
# Sets up the course's virtual environment; says nothing and is quick when it is ready.
#   sh tools/setup_env.sh [--say] [--exact] [--lock]
#     --say    also speak when there was nothing to do
#     --exact  fail where requirements.lock does not install, instead of using the ranges
#     --lock   set nothing up: resolve requirements.txt anew and write requirements.lock
# Environment: PYTHON (python3), VENV (.venv), GPU=1 (add TensorFlow's CUDA libraries)
set -eu
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
PY=$VENV/bin/python
STAMP=$VENV/many-devices.ready         # written last: only a finished set-up has it
UNFINISHED=$VENV/many-devices.unfinished
OLDEST=11                              # Python 3.OLDEST to 3.NEWEST, as in pyproject.toml
NEWEST=13
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*"; }
stop() { printf 'Set-up stopped: %s\n' "$*" >&2; exit 1; }

version_of() { # "3.12" for an interpreter, nothing for what is none
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null | grep -x '[0-9]*\.[0-9]*' || true
}

suits() { # is "3.12" a version the course runs on?
    [ "${1%%.*}" = 3 ] && [ "${1#*.}" -ge $OLDEST ] && [ "${1#*.}" -le $NEWEST ]
}

advice() { # the suitable interpreters that this machine has, else where to get one
    minor=$NEWEST
    while [ "$minor" -ge $OLDEST ]; do
        if suits "$(version_of "python3.$minor")"; then
            say "This machine has one that suits: add PYTHON=python3.$minor to the make command."
            return
        fi
        minor=$((minor - 1))
    done
    say "Install Python 3.$OLDEST to 3.$NEWEST and add PYTHON=/path/to/python3 to the make command."
}

check_python() {
    found=$(version_of "$PYTHON")
    [ -n "$found" ] || stop "PYTHON=$PYTHON is not a Python interpreter that runs here. $(advice)"
    suits "$found" || stop "$PYTHON is Python $found, but the course needs Python 3.$OLDEST to" \
        "3.$NEWEST (those TensorFlow 2.21 is built for). $(advice)"
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || stop "$PYTHON (Python $found) cannot make" \
        "virtual environments: its modules venv and ensurepip are missing. On Debian and Ubuntu:" \
        "sudo apt install python$found-venv"
}

KERNELS=jupyter_config/ipython_kernel_config.py # what every kernel of the environment reads
sources() { cat requirements.lock requirements.txt pyproject.toml $KERNELS | cksum; }
place() { (cd "$VENV" && pwd -P); }
recorded() { sed -n "s/^$1: //p" "$STAMP" 2>/dev/null || true; }
works() { "$PY" -m pip --version >/dev/null 2>&1 && suits "$(version_of "$PY")"; }

ready() {
    [ -f "$STAMP" ] && [ "$(recorded sources)" = "$(sources)" ] && [ "$(recorded place)" = "$(place)" ] &&
        [ "$(recorded gpu)" = "$gpu" ] && "$PY" -c '' 2>/dev/null
}

make_venv() {
    kept= reason=
    if [ -e "$VENV" ]; then
        if [ -f "$UNFINISHED" ]; then reason="an earlier set-up was not finished"
        elif [ -f "$STAMP" ] && [ "$(recorded place)" != "$(place)" ]; then
            reason="it was moved here from $(recorded place)"
        elif ! works; then reason="its Python or its pip does not run here, or does not suit"
        else kept=1; return # only packages may have to change
        fi
        # --clear empties the folder, so it must really be a virtual environment
        [ -f "$VENV/pyvenv.cfg" ] || stop "$VENV exists and is not a virtual environment. Move it away."
    fi
    check_python
    [ -z "$reason" ] || say "Making $VENV anew: $reason."
    say "Setting up $VENV with Python $found: about 2.5 GB, one to five minutes."
    "$PYTHON" -m venv --clear "$VENV" || stop "$PYTHON -m venv failed; its message is above."
}

give_up() { # pip ended in good order, so an environment that was there before is still whole
    [ -z "$kept" ] || rm -f "$UNFINISHED"
    stop "$* pip's message is above. Mend what it names (often the network or a full disk) and run" \
        "the command again."
}

install_packages() {
    if "$PY" -m pip install -r requirements.lock; then
        from=requirements.lock
    elif [ -n "$exact" ]; then
        give_up "requirements.lock does not install here."
    else
        say "requirements.lock does not install here (pip's message is above): trying the ranges."
        "$PY" -m pip install -r requirements.txt || give_up "requirements.txt does not install either."
        from=requirements.txt
    fi
    "$PY" -m pip install --no-deps --no-build-isolation -e . || give_up "utils does not install."
}

install_cuda() {
    version=$("$PY" -c 'from importlib.metadata import version; print(version("tensorflow"))')
    "$PY" -m pip install "tensorflow[and-cuda]==$version" || give_up "The CUDA libraries do not install."
}

WAIT='
import fcntl
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("Another set-up is running in this folder: waiting for its end.", flush=True)
    fcntl.flock(9, fcntl.LOCK_EX)
except OSError as error:
    print(f"This folder cannot be locked ({error}): run one set-up at a time.", flush=True)
'
lock() { # or a second set-up clears what the first installs; the lock ends with this process
    mkdir -p "$(dirname "$VENV")"
    exec 9>>"$VENV.lock"
    for python in "$PYTHON" "$PY"; do
        if "$python" -c "$WAIT" 2>/dev/null; then return; fi
    done # neither runs here: check_python says so
}

set_up() {
    make_venv
    rm -f "$STAMP"
    : >"$UNFINISHED"
    install_packages
    [ "$gpu" = 0 ] || install_cuda
    mkdir -p "$VENV/etc/ipython"
    cp $KERNELS "$VENV/etc/ipython/"
    printf 'sources: %s\nplace: %s\ngpu: %s\nfrom: %s\n' "$(sources)" "$(place)" "$gpu" "$from" >"$STAMP"
    rm -f "$UNFINISHED"
}

tell() {
    case $(recorded from) in
        requirements.lock) say "$VENV is ready, with the exact versions of requirements.lock." ;;
        *) say "$VENV is ready, with the ranges of requirements.txt: some outputs may differ." ;;
    esac
    [ "$gpu" = 0 ] || say "TensorFlow's CUDA libraries are installed."
}

write_lock() {
    [ "$(version_of "$PYTHON")" = 3.$OLDEST ] || stop "the lock file is made with the oldest Python" \
        "the course runs on: make lock PYTHON=python3.$OLDEST"
    check_python
    exactly=$("$PYTHON" -c 'import platform; print(platform.python_version())')
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM
    "$PYTHON" -m venv "$folder/venv"
    "$folder/venv/bin/python" -m pip install -r requirements.txt
    {
        say "# The exact versions that the stored outputs were made with: what requirements.txt resolves"
        say "# to in an empty environment with Python $exactly. Written by \`make lock\`; do not edit."
        say "# Make it with an early 3.$OLDEST: packages may ask for a later one, and Debian 12 has 3.11.2."
        "$folder/venv/bin/python" -m pip list --format=freeze --exclude pip --exclude-editable
    } >"$folder/lock"
    cp "$folder/lock" requirements.lock
    say "requirements.lock is written: $(grep -c == requirements.lock) packages."
}

aloud= exact= lock=
for option; do
    case $option in
        --say) aloud=1 ;;
        --exact) exact=1 ;;
        --lock) lock=1 ;;
        *) stop "unknown option $option" ;;
    esac
done
if [ -n "$lock" ]; then write_lock; exit; fi
gpu=${GPU:-$(recorded gpu)} # once there, the CUDA libraries stay
gpu=${gpu:-0}
case $gpu in
    0) ;;
    1) [ "$(uname -s)" = Linux ] || stop "GPU=1 needs Linux (on Windows: WSL)." ;;
    *) stop "GPU=$gpu is not known; use GPU=1 to add TensorFlow's CUDA libraries." ;;
esac
ready || lock
if ! ready; then set_up; tell
elif [ -n "$aloud" ]; then tell
fi
