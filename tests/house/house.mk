# The tests of the tools that every other test relies on.
