"""Draw the picture that each lesson opens with: somebody's problem, before any machinery.

The pictures are files, because the learner's copy of a lesson has no outputs.
"""

import sys
from pathlib import Path

from tools import generated
from tools.notebooks import lessons
from tools.sheet import Sheet


def two_gpus() -> Sheet:
    s = Sheet(210, "One program, one busy GPU, one idle GPU")
    s.box(20, 70, 190, 70, "my program")
    s.box(330, 20, 190, 70, "GPU 0", "GPU 0").text(640, 55, "busy", bold=True)
    s.box(330, 120, 190, 70, "GPU 1", "GPU 1").text(640, 155, "idle: who tells it\nwhat to do?")
    return s.arrow(210, 95, 326, 60).arrow(210, 115, 326, 150, broken=True)


def layers() -> Sheet:
    s = Sheet(220, "Five layers between a card and a program; one of them is broken")
    names = ("card", "driver", "TensorFlow\nbuild", "CUDA\nlibraries", "visibility")
    for i, name in enumerate(names):
        s.box(20 + 146 * i, 40, 122, 70, name, "bad" if i == 3 else "plain")
        if i:
            s.arrow(20 + 146 * i - 24, 75, 20 + 146 * i - 2, 75)
    s.cross(519, 40, 12)
    return s.text(380, 160, '"TensorFlow lists no GPU."', bold=True).text(
        380, 192, "The message is the same, whichever layer is broken."
    )


def full_card() -> Sheet:
    s = Sheet(220, "The first program has reserved the card, the second one dies")
    s.box(20, 30, 170, 60, "program A").box(20, 130, 170, 60, "program B")
    s.box(300, 30, 330, 160, "", "free").box(304, 34, 290, 152, "", "GPU 0")
    s.box(316, 118, 90, 56, "A uses\nthis", "plain", size=16)
    s.text(450, 75, "A has reserved all this").text(690, 110, "card")
    s.arrow(190, 60, 298, 60).arrow(190, 160, 296, 160, broken=True).cross(280, 160, 13)
    return s


def who_decides() -> Sheet:
    s = Sheet(220, "A graph of four operations and three devices: which goes where?")
    s.box(20, 20, 110, 50, "a").box(20, 140, 110, 50, "b")
    s.box(190, 80, 110, 50, "a × b").box(350, 80, 110, 50, "sum")
    s.arrow(130, 50, 188, 92).arrow(130, 160, 188, 118).arrow(300, 105, 348, 105)
    s.text(530, 105, "?", size=70, bold=True)
    for i, name in enumerate(("host", "GPU 0", "GPU 1")):
        s.box(610, 15 + 68 * i, 130, 54, name, name)
    return s


def no_kernel() -> Sheet:
    s = Sheet(200, "An operation pinned to a GPU that has no kernel for it runs on the host")
    s.box(20, 65, 200, 70, "join two strings\npinned to GPU 0", size=16)
    s.box(500, 15, 200, 65, "GPU 0: no kernel", "GPU 0").box(500, 120, 200, 65, "host", "host")
    s.arrow(220, 85, 496, 48, "asked for", broken=True).cross(478, 50, 13)
    return s.arrow(220, 115, 496, 152).text(330, 165, "runs here, silently", size=17)


def waiting() -> Sheet:
    s = Sheet(230, "Two GPUs; the second one waits for most of the time")
    s.text(60, 55, "GPU 0").text(60, 135, "GPU 1")
    s.box(120, 30, 250, 50, "product", "GPU 0").box(500, 30, 130, 50, "product", "GPU 0")
    s.box(120, 110, 250, 50, "waits", "free").box(370, 110, 130, 50, "product", "GPU 1")
    s.box(500, 110, 130, 50, "waits", "free").arrow(360, 82, 380, 108).arrow(490, 108, 510, 82)
    s.arrow(120, 195, 640, 195).text(680, 195, "time")
    return s


def towers() -> Sheet:
    s = Sheet(240, "A batch is split over two towers; their gradients are averaged")
    s.box(20, 85, 120, 70, "batch of\n64 images", size=16)
    for i in (0, 1):
        s.box(250, 20 + 130 * i, 200, 70, f"tower on GPU {i}\n32 images", f"GPU {i}", size=16)
        s.arrow(140, 110 + 20 * i, 246, 60 + 115 * i).arrow(450, 55 + 130 * i, 566, 110 + 20 * i)
    s.box(570, 85, 170, 70, "average,\nupdate once", "host", size=16)
    return s


def two_cuts() -> Sheet:
    s = Sheet(250, "A network that does not fit on one GPU, cut by layer and by column")
    for x, title in ((60, "does not fit on one"), (310, "cut by layer"), (560, "cut by column")):
        s.text(x + 70, 25, title, bold=True)
    for i in range(3):
        y = 60 + 62 * i
        s.box(60, y, 140, 46, f"layer {3 - i}", "bad")
        gpu = "GPU 1" if i == 0 else "GPU 0"
        s.box(300, y, 160, 46, f"layer {3 - i}: {gpu}", gpu, size=16)
        s.box(560, y, 70, 46, "", "GPU 0").box(630, y, 70, 46, "", "GPU 1")
    return s.text(595, 240, "GPU 0", size=15).text(665, 240, "GPU 1", size=15)


def wait_or_not() -> Sheet:
    s = Sheet(290, "Synchronous workers wait for the slowest; asynchronous ones do not")
    s.text(20, 20, "together: the fast one waits", bold=True, middle=False)
    s.text(400, 20, "alone: the weights move on", bold=True, middle=False)
    for x in (20, 400):
        s.text(x + 32, 100, "fast", size=16).text(x + 32, 170, "slow", size=16)
        s.box(x + 70, 145, 240, 46, "gradient", "GPU 1").arrow(x + 310, 195, x + 310, 232)
    s.box(90, 75, 100, 46, "gradient", "GPU 0", size=16).box(190, 75, 140, 46, "waits", "free")
    for i in range(3):
        s.box(470 + 80 * i, 75, 80, 46, "grad.", "GPU 0", size=16)
        s.arrow(550 + 80 * i, 73, 550 + 80 * i, 42)
    s.text(250, 255, "one averaged update")
    return s.text(600, 255, "an update from old weights")


def three_tasks() -> Sheet:
    s = Sheet(330, "A cluster of three tasks: ps 0, worker 0 (the chief) and worker 1")
    s.box(10, 10, 740, 310, "", "free").text(60, 32, "cluster", bold=True)
    s.box(280, 50, 200, 76, "ps 0\nkeeps the variables", "host", size=16)
    s.box(60, 216, 220, 84, "worker 0: the chief\nbuilds its own graph", "GPU 0", size=16)
    s.box(480, 216, 220, 84, "worker 1\nbuilds its own graph", "GPU 1", size=16)
    s.arrow(230, 212, 320, 130).arrow(530, 212, 440, 130)
    s.text(380, 165, "read weights,\nsend gradients", size=16)
    s.text(500, 75, "each box is a task: one process", size=15, middle=False)
    s.text(500, 98, "with a server", size=15, middle=False)
    s.text(30, 75, "jobs: ps and worker", size=15, middle=False)
    return s.text(30, 98, "master: the server that\na session talks to", size=15, middle=False)


PICTURES = {
    "00": two_gpus,
    "01": layers,
    "02": full_card,
    "03": who_decides,
    "04": no_kernel,
    "05": waiting,
    "06": towers,
    "07": two_cuts,
    "08": wait_or_not,
    "09": three_tasks,
}


def build(root: Path) -> generated.Files:
    """`notebooks/pictures/NN.svg` for every lesson that has a drawing here."""
    there = {path.name[:2] for path in lessons(root)}
    folder = root / "notebooks" / "pictures"
    return {
        folder / f"{number}.svg": draw().svg()
        for number, draw in PICTURES.items()
        if number in there
    }


if __name__ == "__main__":
    sys.exit(generated.main(build, __doc__))
