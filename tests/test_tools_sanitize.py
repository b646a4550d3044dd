"""nbval_sanitize.cfg: each rule hides what differs from run to run, and nothing else."""

import re

import pytest

from tools.outputs import SANITIZE, rules, sanitize

TEXT = SANITIZE.read_text(encoding="utf-8")
# name of the rule: (two texts it must make equal, two texts it must keep apart)
EXAMPLES = {
    "memory address": (
        ("<object at 0x7f1c2d3e4f50>", "<object at 0x7f1c2d3e4f99>"),
        ("flags 0x1f", "flags 0x2f"),
    ),
    "temporary file of a cell": (
        ("/tmp/ipykernel_12/345.py:3: W", "C:\\Temp\\ipykernel_6\\789.py:3: W"),
        ("program_12/345.py", "program_6/789.py"),
    ),
    "folder of a library": (
        ("File '/a/b/site-packages/tf/x.py'", "File '/c/dist-packages/tf/x.py'"),
        ("/a/site-packages/tf/x.py", "/a/site-packages/tf/y.py"),
    ),
    "Keras, verbose=2": (
        ("8/8 - 0s - 12ms/step - loss: 0.5", "8/8 - 3s - 400us/step - loss: 0.5"),
        ("8/8 - 0s - 12ms/step - loss: 0.5", "8/8 - 0s - 12ms/step - loss: 0.6"),
    ),
    "Keras, progress bar": (
        ("\x1b[1m0s\x1b[0m 12ms/step - loss: 0.5", "\x1b[1m1:05\x1b[0m 1s/step - loss: 0.5"),
        ("0s 12ms/step", "1s 12ms/step"),
    ),
    "operation and device in an error": (
        (
            "{{function_node __wrapped__MatMul_device_/job:localhost/device:CPU:0}} a",
            "{{function_node __wrapped____MklMatMul_device_/job:localhost/device:GPU:0}} a",
        ),
        (
            "{{function_node __wrapped__MatMul_device_/device:CPU:0}}",
            "{{function_node __wrapped__AddV2_device_/device:CPU:0}}",
        ),
    ),
    "random id": (
        ("T_0b9f1c2d3e4f5061728394a5b6c7d8e9"[2:], "1b9f1c2d-3e4f-5061-7283-94a5b6c7d8e0"),
        ("sum 12345678", "sum 12345679"),
    ),
    "blanks at the end of a line": (("a  \nb\t\nc", "a\nb\nc"), ("a  b", "a b")),
}


def test_every_rule_is_parsed():
    """A rule without a space after the colon, or with an empty replacement, is dropped silently."""
    assert len(rules()) == len(re.findall(r"(?m)^\s*regex\s*[:=]", TEXT))
    assert "\r" not in TEXT


def test_every_rule_has_examples():
    assert re.findall(r"(?m)^\[(.+)\]$", TEXT) == list(EXAMPLES)
    assert len(rules()) == len(EXAMPLES)


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=list(EXAMPLES))
def test_rule(number):
    (equal, other), (apart, different) = list(EXAMPLES.values())[number]
    only = [rules()[number]]
    assert equal != other
    assert sanitize(equal, only) == sanitize(other, only)
    assert sanitize(apart, only) != sanitize(different, only)
    assert sanitize(apart, rules()) != sanitize(different, rules())


def test_only_text_is_changed():
    assert sanitize({"a": "0x7f1c2d3e4f50"}, rules()) == {"a": "0x7f1c2d3e4f50"}
