"""Devices look different in colour and in grey, and text can be read from afar."""

import matplotlib
import pytest
from matplotlib.colors import is_color_like, to_rgb

from utils import style


@pytest.fixture
def defaults():
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def test_every_gpu_looks_different():
    looks = [style.device_look(f"GPU {i}") for i in range(64)]
    assert len({(look["facecolor"], look["hatch"]) for look in looks}) == 64
    assert len({look["facecolor"] for look in looks[:4]}) == 4
    assert len({look["hatch"] for look in looks[:8]}) == 8  # seen in grey, too
    assert all(look["hatch"] for look in looks)


@pytest.mark.parametrize(
    ("device", "colour"), [("host", style.HOST_COLOUR), ("XLA_CPU 0", "white")]
)
def test_what_is_no_gpu_has_no_hatch(device, colour):
    look = style.device_look(device)
    assert (look["facecolor"], look["hatch"]) == (colour, "")


def test_host_is_grey():
    red, green, blue = to_rgb(style.HOST_COLOUR)
    assert red == green == blue


def test_curves_differ_by_colour_and_marker(defaults):
    style.apply()
    looks = list(matplotlib.rcParams["axes.prop_cycle"])
    assert len({look["color"] for look in looks}) == len(looks) == len(style.CURVES)
    assert len({look["marker"] for look in looks}) == len(looks)
    assert all(is_color_like(look["color"]) for look in looks)


def test_text_is_large_enough_for_a_projector(defaults):
    style.apply()
    sizes = [name for name in matplotlib.rcParams if name.endswith(("size", "fontsize"))]
    text = [name for name in sizes if "label" in name or "title" in name or "font" in name]
    points = matplotlib.font_manager.FontProperties
    small = {name for name in text if points(size=matplotlib.rcParams[name]).get_size() < 12}
    assert {"font.size", "axes.labelsize", "xtick.labelsize", "legend.fontsize"} <= set(text)
    assert not small


def test_applying_twice_changes_nothing(defaults):
    style.apply()
    once = dict(matplotlib.rcParams)
    style.apply()
    assert dict(matplotlib.rcParams) == once
