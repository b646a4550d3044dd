"""Free ports of this machine, held until all are chosen."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def free_ports(n: int) -> Iterator[list[int]]:
    """Choose `n` different ports that nobody listens on; they are held while the block runs.

    Between the end of the block and the moment a server takes its port, another program can be
    faster: be ready to choose again.

    Introduced in lesson 05, behind `LocalCluster`.
    """
    with ExitStack() as held:
        # On every interface and both kinds of address, as a TensorFlow server will.
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        ports = []
        for _ in range(n):
            listener = socket.create_server(("", 0), family=family, dualstack_ipv6=both)
            held.enter_context(listener)
            ports.append(listener.getsockname()[1])
        yield ports
