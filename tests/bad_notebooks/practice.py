"""Bad notebooks: exercises and their solutions."""

from small_course import printed

from bad_notebooks import bad, recount


@bad("exercise_count", "solution")
def two_exercises(nb):
    del nb.cells[-3:]


@bad("exercise_titles", "solution")
def other_lesson(nb):
    nb.cells[2].source = nb.cells[2].source.replace("3.1", "4.1")


@bad("exercise_titles", "solution")
def no_stars(nb):
    nb.cells[5].source = nb.cells[5].source.replace(", ★★", "")


@bad("hints", "solution")
def no_hint(nb):
    nb.cells[2].source = nb.cells[2].source.split("<details>")[0]


@bad("exercise_cells", "solution")
def check_comes_first(nb):
    nb.cells[3], nb.cells[4] = nb.cells[4], nb.cells[3]
    recount(nb)


@bad("exercise_cells", "solution")
def no_check(nb):
    del nb.cells[-1]


@bad("marked_solutions", "solution")
def unmarked_solution(nb):
    nb.cells[3].source = "answer = 1"


@bad("marked_solutions", "solution")
def marked_in_other_cell(nb):
    nb.cells[1].source += "\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION"


@bad("correct_answers", "solution")
def wrong_solution(nb):
    nb.cells[4].outputs = [printed("3.1: not yet")]
