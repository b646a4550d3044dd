"""The figures of `make bench`; none of them is asserted anywhere."""
