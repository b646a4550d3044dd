"""Bad notebooks: title, objectives, setup, sections, links."""

from small_course import SETUP

from bad_notebooks import bad


@bad("one_title")
def second_title(nb):
    nb.cells[4].source += "\n\n# Again"


@bad("one_title", "solution")
def second_title_in_solution(nb):
    nb.cells[2].source = "# Again\n\n" + nb.cells[2].source


@bad("front_matter")
def no_minutes(nb):
    nb.cells[0].source = nb.cells[0].source.replace("45 min", "45 minutes")


@bad("front_matter")
def unknown_part(nb):
    nb.cells[0].source = nb.cells[0].source.replace("part I", "part IV")


@bad("front_matter")
def no_sentence(nb):
    nb.cells[0].source = "# Draw a line\n\n45 min · needs 00 · part I"


@bad("front_matter")
def needs_a_later_lesson(nb):
    nb.cells[0].source = nb.cells[0].source.replace("needs 00", "needs 01, 04")


@bad("solution_title", "solution")
def title_without_solutions(nb):
    nb.cells[0].source = nb.cells[0].source.replace("Solutions: d", "D")


@bad("opening")
def no_problem(nb):
    nb.cells[1].source = "![One sees it.](pictures/03.svg)"


@bad("opening")
def picture_without_words(nb):
    nb.cells[1].source = "Somebody has a problem.\n\n![](pictures/03.svg)"


@bad("objectives")
def two_objectives(nb):
    nb.cells[2].source = "By the end you can\n\n- draw it;\n- predict it."


@bad("objectives")
def seven_objectives(nb):
    nb.cells[2].source = "By the end you can\n\n" + "- draw it;\n" * 7


@bad("objectives")
def other_second_cell(nb):
    nb.cells[2].source = "You will learn\n\n- a\n- b\n- c"


@bad("setup_cell")
def tensorflow_first(nb):
    nb.cells[3].source = "import tensorflow as tf\n" + SETUP


@bad("setup_cell", "solution")
def untagged_setup(nb):
    del nb.cells[1].metadata["tags"]


@bad("setup_cell")
def two_setups(nb):
    nb.cells[5].metadata["tags"] = ["setup"]


@bad("section_titles")
def unnumbered_section(nb):
    nb.cells[4].source = nb.cells[4].source.replace("1 · ", "")


@bad("section_titles")
def section_two_first(nb):
    nb.cells[4].source = nb.cells[4].source.replace("1 · ", "2 · ")


@bad("section_titles")
def eight_sections(nb):
    nb.cells[6].source += "".join(f"\n\n## {n} · More\n\nYes." for n in range(2, 9))


@bad("closing_sections")
def no_in_practice(nb):
    nb.cells[7].source = nb.cells[7].source.replace("## In practice", "")


@bad("closing_sections")
def other_order(nb):
    source = nb.cells[7].source.replace("## Then and now", "## X")
    source = source.replace("## In practice", "## Then and now")
    nb.cells[7].source = source.replace("## X", "## In practice")


@bad("closing_sections")
def section_after_the_last(nb):
    nb.cells[4].source = nb.cells[4].source.replace("## 1 · Look first", "")
    nb.cells[7].source += "\n\n## 1 · Late"


@bad("local_links")
def link_to_nothing(nb):
    nb.cells[6].source += " See [there](04_nothing.ipynb#part)."


@bad("local_links", "solution")
def picture_of_nothing(nb):
    nb.cells[2].source += '\n\n<img src="none.png">'
