"""Builds the documentation as a site of static pages, in ``build/site``: ``make site``.

The pages are those that are read in the repository: README.md, those in ``docs/``, and the few beside them. Every
link is checked, those to a place within a page as well.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ROOT / "build" / "site-pages"
_BESIDE: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "Containerfile", "compose.yaml")
_LINKED: Final = ("docs", "examples", "tests/contract")
_LINK: Final = re.compile(r"\[([^]\[]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def gather(pages: Path) -> None:
    """Copy the pages, and what they link to, into an empty folder."""
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    for name in _BESIDE:
        shutil.copy(ROOT / name, pages / name)
    shutil.copy(ROOT / "README.md", pages / "index.md")
    for name in _LINKED:
        shutil.copytree(ROOT / name, pages / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    for page in pages.rglob("*.md"):
        page.write_text(_LINK.sub(lambda link, page=page: _link(page, link), page.read_text()))


def _link(page: Path, link: re.Match[str]) -> str:
    """Let a link to a folder lead to its page, or be plain text if it has none; other links stay."""
    text, target, anchor = link.groups(default="")
    if (page.parent / target) == PAGES / "README.md":
        return f"[{text}](index.md{anchor})"
    folder = ROOT / (page.parent / target).resolve().relative_to(PAGES.resolve())
    if not folder.is_dir():
        return link[0]
    return f"[{text}]({target.rstrip('/')}/README.md{anchor})" if (folder / "README.md").is_file() else text


def main() -> int:
    """Build the site; return the exit status of mkdocs, which is not 0 if a link leads nowhere."""
    gather(PAGES)
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--clean"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
