"""Writes which versions a site has: main's is the site itself, and that of v0.2.0 is in its folder v0.2.0."""

import json


def folders_of(site):
    return {"main": site, **{index.parent.name: index.parent for index in sorted(site.glob("v*/index.html"))}}


def pages_of(site):
    """The pages of one version, without .html."""
    others = set(folders_of(site)) - {"main"}
    pages = (page.relative_to(site).with_suffix("") for page in site.rglob("*.html"))
    return sorted(page.as_posix() for page in pages if page.parts[0] not in others)


def write(site):
    """Writes versions.js to each version: where the others are, and which pages they have. Each page, by
    templates/versions.html, then leads to the same page of others."""
    folders = folders_of(site)
    pages = {name: pages_of(folder) for name, folder in folders.items()}
    for here, folder in folders.items():
        up = "" if here == "main" else "../"
        ways = {name: up if name == "main" else f"{up}{name}/" for name in folders} | {here: ""}
        text = json.dumps({name: [ways[name], pages[name]] for name in folders})
        (folder / "versions.js").write_text(f"const versions = {text};\n", encoding="utf-8")
