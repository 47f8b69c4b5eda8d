"""Agents that speak MCP (Model Context Protocol): cells as nine tools, never a REAL robot."""
