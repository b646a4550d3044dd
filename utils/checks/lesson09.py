"""Checks of the exercises of lesson 09."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from utils.checks.outcome import check, not_yet

KINDS = ("asynchronous", "synchronous", "counted twice")
SOON, LATE = 300, 20_000  # milliseconds until a step gives up

# Exercise 9.1

PS, FULL = "/job:ps/task:0", "/job:ps/replica:0/task:0/device:CPU:0"
SECOND = "/job:ps/replica:0/task:0/device:CPU:1"
REQUESTS = (  # two requests, whether they are one variable, why
    (("w", PS, ""), ("w", PS, ""), True, ""),
    (("w", PS, ""), ("w", FULL, ""), True, "two ways to write one device"),
    (("w", PS, ""), ("b", PS, ""), False, "the names differ"),
    (
        ("w", "/job:worker/task:0", ""),
        ("w", "/job:worker/task:1", ""),
        False,
        "the tasks differ",
    ),
    (
        ("w", PS, ""),
        ("w", "/job:worker/task:0", ""),
        False,
        "task 0 of two jobs is two tasks",
    ),
    (("w", PS, "first"), ("w", PS, "second"), False, "the containers differ"),
    (("w", FULL, "first"), ("w", PS, "first"), True, "only the spelling"),
    (("w", FULL, ""), ("w", SECOND, ""), False, "two devices of one task"),
    (("w", PS, ""), ("w", SECOND, ""), False, "without a device it is CPU:0"),
    (("w", SECOND, ""), ("w", "/job:ps/task:0/cpu:1", ""), True, "only the spelling"),
)


@check(
    "9.1",
    "workers share no graph and no object: a name, a device and a container "
    "are all that makes two variables one.",
)
def check_09_shared(shared: Callable) -> None:
    """Ask the learner's function about pairs of requests.

    Args:
        shared: function of two (name, device, container) that returns
            whether they are one variable.
    """
    for one, other, same, why in REQUESTS:
        answer = shared(one, other)
        if not isinstance(answer, bool):
            not_yet(f"return True or False, not {answer!r}.")
        if answer != same:
            says = "one variable" if answer else "two"
            reason = f": {why}" if why else ""
            not_yet(f"{one} and {other} are not {says}{reason}.")


# Exercise 9.2


def _run(*counts: tuple[int, int]) -> list[dict[str, int]]:
    return [{"local": local, "last": last} for local, last in counts]


# A to C were left by `between_graph.py`; the others follow from how it counts.
RUNS = {
    "A": ("asynchronous", _run((153, 401), (248, 400))),
    "B": ("counted twice", _run((41, 20), (1, 20))),
    "C": ("synchronous", _run((400, 400), (400, 400))),
    "one did nothing": ("counted twice", _run((40, 20), (0, 20))),
    "three in step": ("synchronous", _run((7, 7), (7, 7), (7, 7))),
    "three alone": ("asynchronous", _run((7, 20), (6, 21), (8, 19))),
    "equal shares": ("asynchronous", _run((10, 20), (10, 20))),
    "three, one ahead": ("counted twice", _run((12, 10), (9, 10), (9, 10))),
}


def counts_to_read(name: str) -> list[dict[str, int]]:
    """Return the counts of one of the real runs of exercise 9.2.

    Args:
        name: ``"A"``, ``"B"`` or ``"C"``.

    Returns:
        For each worker its own steps (``local``) and the global step that
        it read last (``last``).

    Raises:
        ValueError: there is no such run.

    Introduced in lesson 09's exercises.
    """
    if name not in ("A", "B", "C"):
        raise ValueError(f"no run {name!r}: there are A, B and C.")
    return [dict(worker) for worker in RUNS[name][1]]


@check(
    "9.2",
    "the class of an optimiser says what was meant; two counts per worker say what happened.",
)
def check_09_kind(kind: Callable) -> None:
    """Give the learner's function the counts of several runs.

    Args:
        kind: function of a run that returns one of the three kinds.
    """
    for right, run in RUNS.values():
        answer = kind([dict(worker) for worker in run])
        if answer not in KINDS:
            not_yet(f"{answer!r} is none of {', '.join(KINDS)}.")
        if answer == right:
            continue
        steps = [worker["local"] for worker in run]
        updates = max(worker["last"] for worker in run)
        seen = f"steps {steps}, {updates} updates"
        if right == "counted twice" and answer == "synchronous":
            not_yet(
                f"{seen}: the sum may fit a synchronous run, but was each "
                "worker in each update once?"
            )
        if right == "asynchronous":
            not_yet(
                f"{seen}: how many gradients are in an update here? Take "
                "the steps of all, and the newest global step."
            )
        not_yet(f"{seen}: this was not {answer}.")


# Exercise 9.3

SHAPES = {"kernel_1": [4, 3], "bias_1": [3], "kernel_2": [3, 2], "bias_2": [2]}


@check(
    "9.3",
    "on two tasks, one name is two variables, and building tells nobody; an "
    "order that every worker can derive is all they need to agree.",
)
def check_09_build(build: Callable) -> None:
    """Let the learner's function build for two workers, in other orders.

    Args:
        build: function of (worker, shapes) that returns the graph.
    """
    for shapes in (SHAPES, {name + "_b": s for name, s in SHAPES.items()}):
        turned = dict(reversed(shapes.items()))
        mixed = dict(sorted(shapes.items(), key=lambda item: item[1]))
        orders = (shapes, turned, mixed)
        homes = [_homes(build, k % 2, order) for k, order in enumerate(orders)]
        for other in homes[1:]:
            apart = [n for n in shapes if homes[0][n] != other[n]]
            if apart:
                not_yet(
                    f"{apart[0]} is on {homes[0][apart[0]]} for one worker "
                    f"and on {other[apart[0]]} for another: the order in "
                    "which they build still differs."
                )
        if len(set(homes[0].values())) < 2:
            not_yet("all variables are on one parameter server: use both.")


def _homes(build: Callable, worker: int, shapes: dict) -> dict[str, str]:
    """Build, and return the task of each variable."""
    import tensorflow as tf

    graph = build(worker, dict(shapes))
    if not isinstance(graph, tf.Graph):
        not_yet(f"return the graph, not {type(graph).__name__}.")
    found = {v.op.name: v for v in graph.get_collection("variables")}
    if set(found) != set(shapes):
        not_yet(
            f"the graph has the variables {', '.join(sorted(found)) or 'none'}"
            f"; wanted are {', '.join(sorted(shapes))}."
        )
    for name, shape in shapes.items():
        if found[name].shape.as_list() != shape:
            not_yet(f"{name} has the shape {found[name].shape}.")
    specs = {name: tf.DeviceSpec.from_string(v.device or v.op.device) for name, v in found.items()}
    for name, spec in specs.items():
        if spec.job != "ps":
            not_yet(f"{name} is not on a parameter server.")
    return {name: f"ps {spec.task}" for name, spec in specs.items()}


# Exercise 9.4


@check(
    "9.4",
    "with it, no worker takes a second step before all have taken the first: "
    "what the tokens of the class alone do not promise.",
)
def check_09_barrier(barrier: Callable) -> None:
    """Run the learner's barrier for two and three workers in a session.

    Args:
        barrier: function of (worker, workers) that returns an operation.
    """
    for workers in (2, 3):
        with _Meeting(barrier, workers) as meeting:
            if meeting.passes(0):
                not_yet(f"of {workers} workers, worker 0 came through alone.")
        with _Meeting(barrier, workers) as meeting:
            meeting.all_pass()
            last = workers - 1
            if meeting.passes(last):
                not_yet(
                    f"all met once; then worker {last} came through a second "
                    "time, alone. Is a number left over in its queue?"
                )
        with _Meeting(barrier, workers) as meeting:
            for _ in range(3):
                meeting.all_pass()


class _Meeting:
    """Workers as threads of one session, with a barrier for each."""

    def __init__(self, barrier: Callable, workers: int) -> None:
        import tensorflow as tf

        self._v1, self._errors = tf.compat.v1, tf.errors
        graph = tf.Graph()
        with graph.as_default():
            self._ends = [barrier(k, workers) for k in range(workers)]
        for end in self._ends:
            if not isinstance(end, tf.Operation | tf.Tensor):
                not_yet(f"return an operation, not {type(end).__name__}.")
        threads = tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=2 * workers,
            use_per_session_threads=True,
        )
        self._session = self._v1.Session(graph=graph, config=threads)

    def __enter__(self) -> "_Meeting":
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def passes(self, worker: int, patience: int = SOON) -> bool:
        """Tell whether a worker's barrier ends in time."""
        options = self._v1.RunOptions(timeout_in_ms=patience)
        try:
            self._session.run(self._ends[worker], options=options)
        except self._errors.DeadlineExceededError:
            return False
        return True

    def all_pass(self) -> None:
        """Let all meet once."""
        with ThreadPoolExecutor(len(self._ends)) as pool:
            waits = [LATE // 10] * len(self._ends)
            passed = list(pool.map(self.passes, range(len(waits)), waits))
        if not all(passed):
            stuck = passed.index(False)
            not_yet(
                f"all {len(passed)} workers came, but worker {stuck} still "
                "waits. Does everybody put a number into its queue, and has "
                "that queue the same shared_name for all?"
            )


# Exercise 9.5

SAYS = {
    "start": "the variables had a value, and no checkpoint was read",
    "first_step": "global_step is a variable like the others",
    "local_steps": "60 updates were wanted in all",
}


@check(
    "9.5",
    "the state of a training lives in the parameter server: a chief can be "
    "replaced, a parameter server needs a checkpoint.",
)
def check_09_chief(prediction: dict, happened: dict) -> None:
    """Compare a prediction with what the restarted chief said.

    Args:
        prediction: ``start``, ``first_step`` and ``local_steps``.
        happened: what the program reported.
    """
    if set(prediction) != set(SAYS):
        not_yet(f"keep a dict with {', '.join(SAYS)}.")
    for name, why in SAYS.items():
        if prediction[name] is ...:
            not_yet(f"{name} has no answer yet.")
        if prediction[name] != happened[name]:
            not_yet(f"{name} was not {prediction[name]!r}: {why}.")
