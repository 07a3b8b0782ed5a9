"""Validates the bot's GraphQL documents against GitHub's published schema.

`scripts/check-github-schema` runs it; the argument is the path of the schema's npm archive.
"""

import sys
import tarfile
from pathlib import Path

from graphql import GraphQLSchema, build_schema, parse, validate

from bot.github.graphql import fingerprints, labelled_issues, load_query


def published(archive: Path) -> GraphQLSchema:
    """Return the schema in the archive of GitHub's npm package."""
    with tarfile.open(archive) as package:
        content = package.extractfile("package/schema.graphql")
        assert content is not None, "the package holds no schema"
        # The schema itself has faults, such as a field that is defined twice.
        return build_schema(content.read().decode(), assume_valid_sdl=True)


def documents() -> dict[str, str]:
    """Return the text of each query and mutation of the bot, by name."""
    files = (Path(__file__).parents[1] / "bot/github/queries").glob("*.graphql")
    names = sorted({path.stem for path in files} - {"fragments"})
    return {name: load_query(name) for name in names} | {
        "fingerprints": fingerprints([1], [2]),
        "labelled": labelled_issues({"agent": None, "@wright": "cursor"}),
    }


def main(archive: Path) -> int:
    """Print each document that the schema refuses; return 1 if there is one, otherwise 0."""
    schema, texts = published(archive), documents()
    problems = [
        f"{name}: {problem.message}"
        for name, text in texts.items()
        for problem in validate(schema, parse(text))
    ]
    print("\n".join([*problems, f"{len(texts)} documents, {len(problems)} problems."]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
