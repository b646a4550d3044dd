"""Notebooks that break one rule each: the rule's name, and what makes a good notebook bad."""

BAD = {}  # (rule, what is wrong) -> (kind of notebook, function that breaks it)


def bad(rule, kind="lesson"):
    def register(spoil):
        BAD[rule, spoil.__name__] = (kind, spoil)
        return spoil

    return register


def recount(nb):
    for count, cell in enumerate((c for c in nb.cells if c.cell_type == "code"), 1):
        cell.execution_count = count


def insert(nb, index, *cells):
    for number, cell in enumerate(cells):
        cell.id = f"new-{number}"
        nb.cells.insert(index + number, cell)
    recount(nb)
