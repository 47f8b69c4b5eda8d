"""The page of recordings and the time line."""
