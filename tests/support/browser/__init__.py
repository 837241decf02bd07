"""Pages in headless Chromium."""

from browser.chromium import CHROMIUM, Page, chromium, page

__all__ = ["CHROMIUM", "Page", "chromium", "page"]
