#!/usr/bin/env python3
"""Writes the list of the program's parts in CycloneDX 1.5, and the texts of their licences.

    third-parties.py TRIPLE LIBRARY FOLDER

TRIPLE is the platform, LIBRARY the engine's library that is shipped (`-` for none). FOLDER gets sbom.cdx.json and
THIRD-PARTY-NOTICES. Parts are the crates that the program links, as Cargo.lock pins them; crates of tests and build scripts
are none. Equal inputs make equal bytes: no time and no random number is written.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

TEXTS = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)[^/]*$", re.IGNORECASE)
SOURCES = {".rs", ".c", ".h", ".cc", ".py", ".toml", ".json", ".yml"}
RULE = "=" * 100


def cargo(*arguments):
    command = [os.environ.get("CARGO", "cargo"), *arguments, "--locked"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


def linked(data, triple):
    """The ids of the packages that the program links, each with its dependencies."""
    # `cargo metadata` also counts features that only tests use.
    tree = cargo("tree", "-e", "normal", "--target", triple, "--prefix", "none", "--format", "{p}")
    there = {tuple(line.split()[:2]) for line in tree.splitlines()}
    named = {package["id"] for package in data["packages"] if (package["name"], f"v{package['version']}") in there}
    nodes = {node["id"]: node for node in data["resolve"]["nodes"] if node["id"] in named}
    is_linked = lambda dep: dep["pkg"] in named and any(kind["kind"] is None for kind in dep["dep_kinds"])
    return {of: sorted(dep["pkg"] for dep in node["deps"] if is_linked(dep)) for of, node in nodes.items()}


def component(package, checksums):
    name, version = package["name"], package["version"]
    purl = f"pkg:cargo/{name}@{version}"
    made = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if package["license"]:
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := checksums.get((name, version)):
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        made["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return made


def engine(library, root):
    script = (root / "scripts/duckdb-lib.sh").read_text()
    version = re.search(r"^readonly version=(\S+)", script, re.MULTILINE).group(1)
    return {
        "type": "library", "bom-ref": f"pkg:github/duckdb/duckdb@v{version}", "name": library.name, "version": version,
        "purl": f"pkg:github/duckdb/duckdb@v{version}", "licenses": [{"expression": "MIT"}],
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(library.read_bytes()).hexdigest()}],
    }


def bill(root_package, packages, needs, parts):
    refs = {package["id"]: f"pkg:cargo/{package['name']}@{package['version']}" for package in packages}
    own = refs[root_package["id"]]
    links = [{"ref": refs[of], "dependsOn": [refs[it] for it in needs[of]]} for of in sorted(needs, key=refs.get)]
    for link in links:
        if link["ref"] == own:
            link["dependsOn"] += [part["bom-ref"] for part in parts if not part["purl"].startswith("pkg:cargo/")]
    program = component(root_package, {}) | {"type": "application"}
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": program}, "components": parts,
            "dependencies": links}


def texts_of(package):
    folder = Path(package["manifest_path"]).parent
    # Files below the top are licences of a crate's C code.
    paths = sorted(path for path in folder.rglob("*") if TEXTS.match(path.name) and path.suffix not in SOURCES and path.is_file())
    if package["license_file"] and not paths:
        paths = [folder / package["license_file"]]
    return ["\n".join(line.rstrip() for line in path.read_text(errors="replace").strip().splitlines()) for path in paths]


def notices(packages, library_notices):
    texts, bare = {}, []
    for package in packages:
        name = f"{package['name']} {package['version']} ({package['license']})"
        found = texts_of(package)
        if not found:
            bare.append(f"{name}, {', '.join(package['authors']) or package['repository'] or 'no author is named'}")
        for text in found:
            texts.setdefault(" ".join(text.split()), (text, []))[1].append(name)
    out = ["Annals links the crates below. Each text stands once, under all crates that carry it.\n"]
    if bare:
        out.append("These crates carry no text of their licence; their manifests name it and their authors:\n\n" + "\n".join(bare) + "\n")
    for text, names in texts.values():
        out.append("\n".join([RULE, *names, "-" * 100, text, ""]))
    return "\n".join(out) + (f"\n{RULE}\n{library_notices}" if library_notices else "")


def main(triple, library, folder):
    root = Path(__file__).resolve().parent.parent
    data = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", triple))
    needs = linked(data, triple)
    packages = sorted((it for it in data["packages"] if it["id"] in needs), key=lambda it: (it["name"], it["version"]))
    own = next(it for it in packages if it["id"] == data["resolve"]["root"])
    lock = tomllib.loads((root / "Cargo.lock").read_text())
    checksums = {(it["name"], it["version"]): it.get("checksum") for it in lock["package"]}
    others = [it for it in packages if it is not own]
    parts = [component(it, checksums) for it in others]
    if library != "-":
        parts.append(engine(Path(library), root))
    text = (root / "deploy/packaging/LIBDUCKDB-NOTICES").read_text()
    (Path(folder) / "sbom.cdx.json").write_text(json.dumps(bill(own, packages, needs, parts), indent=1, ensure_ascii=False) + "\n")
    (Path(folder) / "THIRD-PARTY-NOTICES").write_text(notices(others, text))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
