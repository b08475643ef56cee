# SPDX-License-Identifier: Apache-2.0
"""Runs the test suites side by side: scripts/test starts it when the program is built.

A run has parts (lint, unit, e2e ...), and a part has one worker or more, which are processes:

  plan.py       which parts a command line asks for, and the command of each worker
  scheduler.py  starts workers up to a limit, and collects their results
  guard.py      the parent of one worker: brings its cluster up, and ends all that it started
  plugin.py     the part of a worker inside pytest: takes files from a queue, reports each test
  results.py    reads what workers report
  screen.py     shows it
  leftovers.py  ends what a killed run could not end
"""
