"""Bad notebooks: counts, outputs, pictures, sizes, and prose."""

import base64

from small_course import PNG, code, error, picture, printed

from bad_notebooks import bad, insert


@bad("execution_counts")
def not_run(nb):
    nb.cells[5].execution_count = None


@bad("execution_counts", "solution")
def run_out_of_order(nb):
    nb.cells[1].execution_count = 7


@bad("stderr")
def stored_warning(nb):
    nb.cells[3].outputs = [printed("warning", "stderr")]


@bad("errors_announced")
def unannounced_error(nb):
    nb.cells[3].outputs = [error("ValueError", "no")]


@bad("errors_announced", "solution")
def announced_error_is_missing(nb):
    nb.cells[1].metadata["tags"].append("raises-exception")


@bad("machine_paths")
def folder_in_output(nb):
    nb.cells[3].outputs = [printed("File /home/me/utils/x.py:3")]


@bad("some_picture")
def no_picture(nb):
    nb.cells[5].outputs = []


@bad("captions")
def heading_under_picture(nb):
    nb.cells[6].source = "### Next"


@bad("captions")
def code_under_picture(nb):
    insert(nb, 6, code("x = 1"))


@bad("sizes")
def large_picture(nb):
    png = base64.b64encode(base64.b64decode(PNG) + bytes(100_001)).decode()
    nb.cells[5].outputs = [picture(png)]


@bad("sizes")
def large_notebook(nb):
    nb.cells[5].outputs.append(printed("x" * 700_001))


@bad("word_count")
def too_few_words(nb):
    nb.cells[4].source = "## 1 · Look first\n\nShort."


@bad("word_count")
def too_many_words(nb):
    nb.cells[4].source += "word " * 1000


@bad("word_count")
def too_many_words_after_key_points(nb):
    nb.cells[7].source += "\n\n" + "word " * 1700


@bad("unwanted_words")
def easy(nb):
    nb.cells[6].source += " That is easy."


@bad("unwanted_words", "solution")
def just(nb):
    nb.cells[2].source += "\n\n- Just do it."


@bad("measured_captions")
def number_of_one_machine(nb):
    nb.cells[5].metadata["tags"] = ["measured"]
    nb.cells[6].source = "*GPU 1 is 1.87 times as fast.*"
