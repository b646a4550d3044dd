"""Bad notebooks: what stands in code cells."""

from small_course import code

from bad_notebooks import bad, insert


@bad("cell_length")
def long_cell(nb):
    nb.cells[5].source = "draw()\n" * 21
    insert(nb, 7, code("a = 1"))  # keeps the median low


@bad("median_length")
def long_median(nb):
    for index in (3, 5):
        nb.cells[index].source += "\nf()" * 8


@bad("columns")
def wide_line(nb):
    nb.cells[5].source = "draw(" + "x" * 75 + ")"


@bad("columns", "solution")
def wide_line_in_solution(nb):
    nb.cells[1].source += "\n# " + "x" * 80


@bad("prose_between")
def three_in_a_row(nb):
    insert(nb, 4, code("a = 1"), code("b = 1"))


FORBIDDEN = [
    "import sys\nsys.path.append(x)",
    "from tools import soak",
    "# pip install x",
    "%matplotlib inline",
    "!ls",
    "clear_output()",
    "interact(f)",
    "input('name')",
    "open('/home/x')",
    'open("C:\\\\x")',
    "# NBVAL_SKIP",
    "tf.compat.v1.layers.dense(x)",
    "v1.estimator",
    "tf.contrib",
    "from tensorflow.python.client import device_lib",
    "v1.disable_eager_execution()",
    "import multiprocessing",
    "v1.train.Server(spec)",
    "tf.distribute.MultiWorkerMirroredStrategy()",
    "tf.distribute.experimental.ParameterServerStrategy(r)",
]
for number, source in enumerate(FORBIDDEN):

    def forbidden(nb, source=source):
        nb.cells[5].source = source

    forbidden.__name__ = f"forbidden_{number}"
    bad("forbidden_code")(forbidden)


@bad("semicolon")
def trailing_semicolon(nb):
    nb.cells[5].source = "draw();"


@bad("allowed_tags")
def unknown_tag(nb):
    nb.cells[6].metadata["tags"] = ["nbval-skip"]


@bad("allowed_tags")
def solution_tag_in_lesson(nb):
    nb.cells[6].metadata["tags"] = ["solution-only"]


@bad("unchecked_cells")
def unexcused_cell(nb):
    nb.cells[5].metadata["tags"] = ["nbval-ignore-output"]


@bad("metadata")
def scrolled_cell(nb):
    nb.cells[5].metadata["scrolled"] = True


@bad("metadata", "solution")
def widgets(nb):
    nb.metadata["widgets"] = {}


@bad("unique_ids")
def same_id(nb):
    nb.cells[6].id = nb.cells[4].id
