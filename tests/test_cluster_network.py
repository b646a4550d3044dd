"""Who can reach a cluster, which ports it takes, and what a person sees of it."""

import os
import socket
import sys
import tempfile
import textwrap
from contextlib import closing, contextmanager, suppress

import pytest
from clusters import DEADLINE, addresses, alive, nothing_left, refusal, write
from jupyter_client.manager import KernelManager

from utils.cluster import ClusterError, LocalCluster, isolation, launch
from utils.cluster.ports import free_ports

SERVER = """
import socket
hosts = dict(ps=role.ps_hosts, worker=role.worker_hosts)[role.job_name].split(",")
port = int(hosts[int(role.task_index)].split(":")[1])
both = socket.has_dualstack_ipv6()
family = socket.AF_INET6 if both else socket.AF_INET
listener = socket.create_server(("", port), family=family, dualstack_ipv6=both)
print("ready")
if me == "worker 0":
    for host in (role.ps_hosts + "," + role.worker_hosts).split(","):
        name, port = host.split(":")
        while True:
            try:
                socket.create_connection((name, int(port)), timeout=60).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.02)  # it listens soon
    print("reached every task")
wait()
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Clusters make their folders here, so that whatever is left of them is found here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def start(here, **options) -> LocalCluster:
    return LocalCluster(write(here, SERVER), deadline=DEADLINE, **options)


def addresses_of_this_machine() -> set[str]:
    found = {"127.0.0.1", "::1"} if socket.has_ipv6 else {"127.0.0.1"}
    with suppress(socket.gaierror):  # a machine may not know its own name
        found |= {row[4][0] for row in socket.getaddrinfo(socket.gethostname(), None)}
    return found


def reachable(port: int) -> list[str]:
    """The addresses of this machine at which somebody listens on this port."""
    answered = []
    for address in addresses_of_this_machine():
        try:
            socket.create_connection((address, port), timeout=5).close()
        except OSError:
            continue
        answered.append(address)
    return answered


@pytest.mark.skipif(bool(refusal()), reason=f"no private network here: {refusal()}")
def test_an_isolated_cluster_is_reached_from_inside_only(here):
    with start(here) as cluster:
        assert cluster.isolated
        cluster.wait_for("worker 0", "reached every task")
        listening = [int(address.split(":")[1]) for address in addresses(cluster).values()]
        assert not any(map(reachable, listening))
        cluster.restart("worker 0")  # a later task joins the others
        cluster.wait_for("worker 0", "reached every task")
        assert not any(map(reachable, listening))
    nothing_left(here)


def test_an_open_cluster_can_be_reached(here):
    """The counterpart: `reachable` would notice."""
    with start(here, isolated=False) as cluster:
        assert cluster.isolated is False
        cluster.wait_for("worker 0", "reached every task")
        for address in addresses(cluster).values():
            assert "127.0.0.1" in reachable(int(address.split(":")[1]))


def test_ports_are_different_free_and_held():
    with free_ports(20) as ports:
        assert len(set(ports)) == 20
        assert all(map(reachable, ports))
    assert not any(map(reachable, ports))


@contextmanager
def taken_port():
    with closing(socket.create_server(("", 0))) as other:
        yield other.getsockname()[1]


def test_a_taken_port_is_replaced(here, monkeypatch):
    """Another program is faster, twice; the third choice is good."""
    with taken_port() as taken:
        choices = []

        @contextmanager
        def choose(n):
            with free_ports(n) as free:
                choices.append([taken, *free[1:]] if len(choices) < 2 else free)
                yield choices[-1]

        monkeypatch.setattr(launch, "free_ports", choose)
        with start(here, isolated=False) as cluster:
            assert len(choices) == 3
            chosen = [int(address.split(":")[1]) for address in addresses(cluster).values()]
            assert chosen == choices[2]
            assert len([line for line in alive(here) if "program.py" in line]) == 3
    nothing_left(here)


def test_ports_taken_every_time_are_an_error(here, monkeypatch):
    with taken_port() as taken:

        @contextmanager
        def choose(n):
            with free_ports(n) as free:
                yield [*free[1:], taken]

        monkeypatch.setattr(launch, "free_ports", choose)
        with pytest.raises(ClusterError, match="worker 1 .*Address already in use") as caught:
            start(here, isolated=False).__enter__()
        assert str(taken) in str(caught.value)
    nothing_left(here)


# What the holder does in a private network, on systems that this one is not.
REFUSALS = {
    "no Linux": ("", "a private network needs Linux"),
    "not allowed": (
        "sys.exit('unshare: Operation not permitted')", "unshare: Operation not permitted"
    ),
    "no word": ("sys.exit()", "without giving a reason"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_where_isolation_is_refused_the_ports_are_open_and_it_says_so(
    here, monkeypatch, capfd, case
):
    code, reason = REFUSALS[case]
    if not code:
        monkeypatch.setattr(isolation.sys, "platform", "darwin")
    holder = here / "holder.py"
    path = str(isolation.HOLDER)
    holder.write_text(
        f"import runpy, sys\nif '--private' in sys.argv: {code or 'pass'}\n"
        f"runpy.run_path({path!r}, run_name='__main__')"
    )
    monkeypatch.setattr(isolation, "HOLDER", holder)
    monkeypatch.setattr("utils.cluster.live.visible", lambda: True)
    with start(here) as cluster:
        assert cluster.isolated is False
        cluster.wait_for("worker 0", "reached every task")
    said = capfd.readouterr().out
    assert "The ports of this cluster are open to the network, without a password" in said
    with pytest.raises(ClusterError, match=f"isolated=True is refused here: {reason}"):
        start(here, isolated=True).__enter__()
    nothing_left(here)


CELL = """
import tempfile
tempfile.tempdir = {folder!r}
from utils.cluster import LocalCluster
with LocalCluster({program!r}, isolated=False) as cluster:
    cluster.wait_for("worker 0", "reached every task")
    print("in between")
    print(cluster.report())
"""


@pytest.mark.parametrize("shows", [True, False])
def test_progress_is_seen_in_a_notebook_and_not_compared(here, shows):
    """In JupyterLab's kernels; not in those that store or compare outputs."""
    program = write(here, SERVER)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    del env["PYTEST_CURRENT_TEST"]  # under a test a kernel never shows descriptor 1
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(
        extra_arguments=[f"--IPKernelApp.capture_fd_output={shows}"],
        cwd=str(here),
        env=env,
    )
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=DEADLINE)
        texts = []

        def take(message):
            if message["msg_type"] == "stream":
                texts.append(message["content"]["text"])

        code = textwrap.dedent(CELL).format(folder=str(here), program=str(program))
        reply = client.execute_interactive(code, output_hook=take, timeout=DEADLINE)
        assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
        client.context.destroy()
    text = "".join(texts)
    result = "in between\nps 0: running\nworker 0: running\nworker 1: running\n"
    if shows:
        assert "The ports of this cluster are open" in text
        assert "\rps 0: starting · worker 0: starting" in text
        assert result in text
    else:
        assert text == result
    nothing_left(here)
