"""The packages that ``pip install icesql`` brings, from their own metadata: no network.

    python -m tests.manual.packages

prints a bill of materials of this environment: CycloneDX 1.6 as JSON, with versions and licences.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from typing import Any, Final

# Packages that name no SPDX expression, in the words that they have for their licence.
_SPDX: Final = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}


def closure(requirements: list[str]) -> list[metadata.Distribution]:
    """The installed packages that some requirements without extras lead to."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(requirements)
    while waiting:
        text, _, marker = waiting.pop().partition(";")
        name = normalized(re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0])
        if name in found or "extra" in marker:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another system or Python
            continue
        waiting += found[name].requires or []
    return [*found.values()]


def normalized(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(package: metadata.Distribution) -> str:
    """The SPDX expression of a package's licence. Raises ValueError where its metadata has none."""
    expression = package.metadata.get("License-Expression")
    if expression:
        return expression
    classifiers = package.metadata.get_all("Classifier") or []
    kinds = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")]
    named = [_SPDX[each] for each in kinds if each in _SPDX]
    short = (package.metadata.get("License") or "").strip()
    if not named and re.fullmatch(r"[A-Za-z0-9.+-]+", short):
        named = [short]
    if not named:
        raise ValueError(f"{package.name} {package.version} names no licence")
    return " AND ".join(sorted(set(named)))


def needed() -> list[metadata.Distribution]:
    """The packages that icesql needs, by name."""
    packages = closure(metadata.requires("icesql") or [])
    return sorted(packages, key=lambda each: normalized(each.name))


def needed_by(packages: list[metadata.Distribution]) -> dict[str, list[str]]:
    """For each package the names of those that ask for it, icesql first."""
    there = {normalized(each.name) for each in packages}
    asking: dict[str, list[str]] = {each: [] for each in sorted(there)}
    for asker in (metadata.distribution("icesql"), *packages):
        for text in asker.requires or []:
            name = normalized(re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0])
            if name in there and "extra" not in text.partition(";")[2]:
                asking[name] = list(dict.fromkeys([*asking[name], normalized(asker.name)]))
    return asking


def bill_of_materials() -> dict[str, Any]:
    """CycloneDX 1.6 of icesql and of the packages that it needs, as they are installed here."""
    own = metadata.distribution("icesql")
    packages = needed()
    asking = needed_by(packages)
    everything = [own, *packages]
    places = {normalized(each.name): _place(each) for each in everything}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component(own, "application")},
        "components": [_component(each, "library") for each in packages],
        "dependencies": [
            {
                "ref": place,
                "dependsOn": sorted(places[each] for each, by in asking.items() if name in by),
            }
            for name, place in places.items()
        ],
    }


def _place(package: metadata.Distribution) -> str:
    return f"pkg:pypi/{normalized(package.name)}@{package.version}"


def _component(package: metadata.Distribution, kind: str) -> dict[str, Any]:
    return {
        "type": kind,
        "bom-ref": _place(package),
        "name": package.name,
        "version": package.version,
        "purl": _place(package),
        "licenses": [{"expression": licence(package)}],
    }


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=2)
    print()
