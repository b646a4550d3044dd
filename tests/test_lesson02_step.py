"""What the measured step of lesson 02's exercises counts."""

from utils.checks import lesson02


def test_a_measured_step_is_the_sum_of_what_it_took_and_received(machine):
    # 784-16-10: gradients and weights, 4 single numbers; per image the values on the way
    # (16 and 16, 10, 3 around the loss), the pixels, and a digit of 8 bytes.
    weights = 784 * 16 + 16 + 160 + 10
    fixed, each = 4 * (2 * weights + 4), 4 * (16 + 16 + 10 + 3 + 784) + 8
    measure = lesson02.measured_step(16)
    assert [measure(batch) for batch in (2, 50)] == [fixed + 2 * each, fixed + 50 * each]
