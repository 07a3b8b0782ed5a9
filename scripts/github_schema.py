"""Validates the bot's GraphQL documents against GitHub's published schema.

Run by `scripts/check-github-schema` with the archive of the package as its argument.
"""

import sys
import tarfile
from pathlib import Path

from graphql import GraphQLSchema, build_schema, parse, validate

from bot.github.graphql import fingerprints, labelled_issues, load_query, names


def published(archive: Path) -> GraphQLSchema:
    """The schema in GitHub's package."""
    with tarfile.open(archive) as package:
        content = package.extractfile("package/schema.graphql")
        assert content is not None, "the package holds no schema"
        # The schema itself has faults, such as a field that is defined twice.
        return build_schema(content.read().decode(), assume_valid_sdl=True)


def main(archive: Path) -> int:
    """Say what GitHub would not take; the exit code."""
    documents = {name: load_query(name) for name in names()}
    documents |= {
        "fingerprints": fingerprints([1], [2]),
        "labelled": labelled_issues({"agent": None, "@wright": "cursor"}),
    }
    schema = published(archive)
    problems = [
        f"{name}: {problem.message}"
        for name, text in documents.items()
        for problem in validate(schema, parse(text))
    ]
    print("\n".join([*problems, f"{len(documents)} documents, {len(problems)} problems."]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
