"""Data, projects and processes that several test files share; imported as `helpers.<module>`."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
"""What a process started by a test puts on its path to import `helpers`."""
