#!/usr/bin/env python3
"""Writes the digits' two IDX files from scikit-learn's copy of the data.

usage: make.py FOLDER        (needs scikit-learn and numpy; the files in this folder came from scikit-learn 1.9.1)
"""
import pathlib
import struct
import sys

from sklearn.datasets import load_digits


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    digits = load_digits()
    images, labels = digits.images.astype("uint8"), digits.target.astype("uint8")
    assert (images == digits.images).all() and images.shape == (1797, 8, 8) and images.max() == 16
    # IDX: 0 0 type rank, dimensions and elements big-endian; type 8 is u8.
    (folder / "images-idx3-ubyte").write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, *images.shape) + images.tobytes())
    (folder / "labels-idx1-ubyte").write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, len(labels)) + labels.tobytes())


if __name__ == "__main__":
    main()
