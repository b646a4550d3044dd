"""Set-up copies this file into the environment: every kernel there reads it.

A NameError or ImportError shows its traceback as always, then one sentence if the course knows the
reason. Another file called utils hides the course's package: then nothing of it can be imported.
"""

c.InteractiveShellApp.code_to_run = """
def _explained(shell, kind, error, traceback, tb_offset=None):
    import sys
    from pathlib import Path
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
    found = sys.modules.get("utils")
    places = [getattr(found, "__file__", None), *getattr(found, "__path__", [])]
    path = next((Path(place) for place in places if place), None)
    if path and not any((folder / "start.py").is_file() for folder in (path, path.parent)):
        if kind is NameError or (error.name or "").partition(".")[0] == "utils":
            print(f"Python found {path} instead of the course's package `utils`. Rename that file "
                  "(or take its folder out of PYTHONPATH), then restart the kernel.")
    elif kind is NameError:
        from utils.checks.names import why_missing
        if sentence := why_missing(error.name, shell.history_manager.input_hist_raw[-1]):
            print(sentence)

get_ipython().set_custom_exc((NameError, ImportError), _explained)
del _explained
"""  # noqa: F821
