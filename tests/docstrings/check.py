#!/usr/bin/python3
"""Compiles the examples in the docstrings of the headers, each in a function of its own, on a host.

    tests/docstrings/check.py FOLDER_OF_HEADERS COMPILER OPTION...

What examples do not declare is in names.hpp; what those of one page need otherwise is in a namespace there:
page_ and the page's name.
"""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = re.compile(r" */// {5}(.*)")  # and lines that are empty
# What stands for memory of a GPU, for several of them, and for what the reader adds.
ON_A_HOST = [
    (r"roost::gpus (\w+)(\(\{.*?\}\))?;", r"roost::host_shards \1(2);"),
    (r"roost::gpus\b", "roost::host_shards"),
    (r"roost::cuda\b", "roost::host"),
    (r"\.\.\.$", "{}"),
    (r"\{ \.\.\. \}", "{}"),
]


def examples(file):
    """(line, text) of each; what says nothing that ends is a formula."""
    lines = file.read_text(encoding="utf-8").splitlines()
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and (EXAMPLE.match(lines[end]) or end > start and lines[end].strip() == "///"):
            end += 1
        text = "\n".join(EXAMPLE.sub(r"\1", line).replace("///", "") for line in lines[start:end])
        if ";" in text:
            yield start + 1, text
        start = max(end, start + 1)


def program(folder):
    files = sorted(folder.rglob("*.hpp"))
    yield from (f"#include <roost/{file.relative_to(folder)}>" for file in files if "detail" not in file.parts)
    yield '#include "names.hpp"'
    count = 0
    for file in files:
        for line, text in examples(file):
            for pattern, replacement in ON_A_HOST:
                text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
            # A struct has templates, which a local one may not have.
            structs, rest = re.match(r"((?:struct(?:.|\n)*?\n\};\n)*)((?:.|\n)*)", text).groups()
            lead = structs.count("\n")
            count += 1
            yield f"namespace page_{file.stem} {{ namespace example_{line} {{\n#line {line} \"{file}\"\n{structs}"
            yield f"void run() {{\n#line {line + lead} \"{file}\"\n{rest}\n}} }} }}"
    if count < 30:
        sys.exit(f"only {count} examples: has the form of docstrings changed?")


def main():
    folder, *compiler = sys.argv[1:]
    text = "\n".join(program(Path(folder).resolve()))
    here = Path(__file__).parent
    return subprocess.run([*compiler, "-fsyntax-only", "-w", f"-I{here}", "-x", "c++", "-"], input=text, text=True,
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
