"""Has pandas answer the questions of docs/cookbook.md, and prints the answers: a line for each, the rows as JSON.

    python3 cookbook.py TENSORS OTHER cookbook.md
"""

import json
import re
import sys


def rows(answer):
    """Returns the rows of a DataFrame, or of a list of tuples, as texts."""
    if hasattr(answer, "itertuples"):
        answer = answer.itertuples(index=False, name=None)
    return [[str(value) for value in row] for row in answer]


def main(tensors, other, page):
    with open(page) as f:
        text = f.read().replace('"tensors.parquet"', repr(tensors)).replace('"other.parquet"', repr(other))
    first, *questions = re.findall(r"```python\n(?!# polars)(.*?)```", text, re.S)
    names = {}
    exec(first, names)
    for question in questions:
        exec(question, names)
        print(json.dumps(rows(names["answer"]), separators=(",", ":"), ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
