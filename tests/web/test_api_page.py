"""The page that shows the OpenAPI document."""

import html
import json
import re

from bot.web.api.router import document
from tests.web.conftest import Site


def test_the_api_page_shows_the_whole_document_without_anything_from_elsewhere(site: Site) -> None:
    page, described = site.seen("/api").text, json.loads(document())
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            shown = page[page.index(f'id="{operation["operationId"]}"') :].partition("</details>")[
                0
            ]
            assert f"<strong>{method.upper()}</strong> <code>{path}</code>" in shown
            for parameter in operation.get("parameters", ()):
                assert f"<code>{parameter['name']}</code> in the {parameter['in']}" in shown
            assert all(f"<li>{status}: " in shown for status in operation["responses"])
    anchors = set(re.findall(r' id="(\w+)"', page))
    assert anchors >= described["components"]["schemas"].keys()
    assert set(re.findall(r'href="#(\w+)"', page)) <= anchors
    assert not re.search(r'(?:src|href)="(?!/|#)', page)


def test_the_api_page_shows_what_a_field_takes(site: Site) -> None:
    page = site.seen("/api").text
    shown = page[page.index('id="MergeCommand"') :].partition("</div>")[0]
    assert "<code>kind</code>, required: <code>merge</code>" in shown
    assert '<code>""</code> or <code>"merge"</code> or <code>"squash"</code>' in html.unescape(
        shown
    )
    shown = page[page.index('id="SessionListPage"') :].partition("</div>")[0]
    assert 'list of <a href="#SessionSummary">SessionSummary</a>' in shown
    assert "string or null" in shown
