"""Accidents for processes that tests start with this folder in PYTHONPATH: a kill or a full disk at a commit point.

CBMT_ACCIDENT is `<number>|<kill or fill>|<folder to fill>|<file to count in>|<data folder of the project>`. It happens
before the so many-th file that the processes of a run put in its place below the data folder.
"""

import os
import signal


def _fill(folder):
    """Leave no byte free on the file system of a folder."""
    with open(os.path.join(folder, "ballast"), "ab", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    ballast.write(b"\0" * size)
            except OSError:
                continue


def _accident(number, kind, folder, counter, data):
    true = os.replace

    def replace(source, target, **more):
        if str(target).startswith(data) and not str(target).startswith(os.path.join(data, "dagster")):
            handle = os.open(counter, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
            os.write(handle, b".")
            happens = os.fstat(handle).st_size == int(number)
            os.close(handle)
            if happens and kind == "kill":
                os.killpg(os.getpgrp(), signal.SIGKILL)
            if happens:
                _fill(folder)
        true(source, target, **more)

    os.replace = replace


if os.environ.get("CBMT_ACCIDENT"):
    _accident(*os.environ["CBMT_ACCIDENT"].split("|"))
