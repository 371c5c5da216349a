"""Runs the checks of the chart, and counts them in a closing line as Rust's tests do."""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.discover(str(HERE), pattern="check_*.py")
    if suite.countTestCases() < 20:
        sys.exit("tests/chart: the checks were not found")
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    bad = len(result.failures) + len(result.errors)
    # One test can fail in several sub-tests.
    good = max(result.testsRun - bad - len(result.skipped), 0)
    word = "ok" if result.wasSuccessful() else "FAILED"
    print(f"test result: {word}. {good} passed; {bad} failed; {len(result.skipped)} skipped")
    sys.exit(0 if result.wasSuccessful() else 1)
