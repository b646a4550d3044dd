"""Set-up copies this file into the environment: every kernel there reads it.

A NameError shows its traceback as always, then one sentence if the course knows the reason.
"""

c.InteractiveShellApp.code_to_run = """
def _missing_name(shell, kind, error, traceback, tb_offset=None):
    shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
    from utils.checks.names import why_missing
    if sentence := why_missing(error.name, shell.history_manager.input_hist_raw[-1]):
        print(sentence)

get_ipython().set_custom_exc((NameError,), _missing_name)
del _missing_name
"""  # noqa: F821
