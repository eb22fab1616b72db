"""The needs of Spark: PySpark, its imports, and Java."""

from __future__ import annotations

import importlib
import os
import shutil
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from icesql.engine.spark.releases import require_release
from icesql.errors import MissingExtraError

one_at_a_time: Final = threading.RLock()


@contextmanager
def without_warnings() -> Iterator[None]:
    """A block in which nobody is warned: PySpark has opinions about the pandas that it finds.

    One thread at a time: the filters of warnings, and the environment, belong to all of them.
    """
    with one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def require_pyspark() -> None:
    """Raises MissingExtraError without PySpark and the pandas that its Arrow exchange asks for, and
    NotSupportedError for a PySpark that is too old."""
    require("PySpark", "pyspark", "pandas")
    require_release("the Spark engine")


def require(what: str, *modules: str, hint: str = "") -> None:
    """Raises MissingExtraError where one of the modules that ``what`` needs is missing."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            missing = "" if module == "pyspark" else f"{module} is missing"
            raise MissingExtraError(what, extra="spark", hint=hint or missing) from error


def require_java() -> None:
    """Raises MissingExtraError when no Java can be found to start Spark with."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return
    if shutil.which("java") is None:
        raise MissingExtraError(
            "Java",
            hint="Spark needs Java 17 or 21: install it (for example the package "
            "openjdk-17-jre-headless) or set JAVA_HOME; engine = 'local' needs none",
        )
