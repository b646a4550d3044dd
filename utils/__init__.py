"""What the notebooks of Many Devices import: one subject per file."""
