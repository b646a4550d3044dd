"""Claims of the classic texts that lesson 00 tries."""

from tests.claims.ledger import claim


@claim(
    "C01",
    "A computation is a dataflow graph that is built first and run later.",
    verdict="changed",
    lesson="00",
    section="4 · Two forms, one graph",
    finding=(
        "A line computes at once (eager execution); a graph is built first "
        "where you ask for one, with tf.function or by hand in tf.compat.v1."
    ),
)
def test_a_graph_is_a_choice(machine):
    import tensorflow as tf

    eager = tf.constant([[2.0]]) @ tf.constant([[3.0]])
    assert eager.numpy() == 6.0, "eager execution computes at once"

    built = tf.Graph()
    with built.as_default():
        later = tf.constant([[2.0]]) @ tf.constant([[3.0]])
    assert not hasattr(later, "numpy"), "a node of a graph holds no value"
    with tf.compat.v1.Session(graph=built) as session:
        assert session.run(later) == 6.0

    runs = []

    @tf.function
    def multiply(x, y):
        runs.append("python")
        return x @ y

    for _ in range(3):
        assert multiply(tf.constant([[2.0]]), tf.constant([[3.0]])) == 6.0
    assert runs == ["python"], "Python ran once, to record the graph"


def test_a_graph_needs_a_seed_of_its_own(machine):
    import tensorflow as tf

    v1 = tf.compat.v1

    def number(seed):
        graph = tf.Graph()
        with graph.as_default():
            if seed is not None:
                v1.set_random_seed(seed)
            x = tf.random.normal([4])
        with v1.Session(graph=graph) as session:
            return session.run(x).tolist()

    def eager():
        tf.random.set_seed(42)
        return tf.random.normal([4]).numpy().tolist()

    assert eager() == eager(), "this is what begin fixes"
    assert number(None) != number(None)
    assert number(7) == number(7)
