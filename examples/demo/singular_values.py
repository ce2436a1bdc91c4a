"""Singular values of a greyscale picture (PGM), by LAPACK in whatever BLAS numpy uses: argument 1 the file, 2 how often."""
import sys

import numpy

with open(sys.argv[1], "rb") as file:
    magic, size, depth = (file.readline().split() for _ in range(3))
    width, height = map(int, size)
    picture = numpy.frombuffer(file.read(width * height), dtype=numpy.uint8).reshape(height, width) / 255.0
for _ in range(int(sys.argv[2])):
    values = numpy.linalg.svd(picture, compute_uv=False)
print(f"{width} x {height}: largest {values[0]:.1f}, 99 % of the picture in {numpy.searchsorted(numpy.cumsum(values**2), 0.99 * numpy.sum(values**2)) + 1} of {len(values)}")
