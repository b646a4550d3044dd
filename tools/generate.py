"""Write everything that is generated: exercises, navigation, course map, glossary, claims."""

import sys
from pathlib import Path

from tools import claims, exercises, generated, glossary, navigation, openings
from tools.notebooks import CourseError

STEPS = (exercises, navigation, glossary, claims, openings)


def build(root: Path) -> generated.Files:
    """All generated files as they must be; CourseError tells what every step found wrong."""
    files: generated.Files = {}
    errors = []
    for step in STEPS:
        try:
            files |= step.build(root)
        except CourseError as error:
            errors.append(str(error))
    if errors:
        raise CourseError("\n".join(errors))
    return files


if __name__ == "__main__":
    sys.exit(generated.main(build, __doc__))
