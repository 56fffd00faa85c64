"""One file of routes per page."""
