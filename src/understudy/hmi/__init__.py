"""The web page's process: its link to the cell, REST, and the pages."""
