"""The shipped pages, one folder each; `understudy.registry` lists them."""
