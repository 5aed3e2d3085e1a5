# The tests of the tools that every other test relies on.
$(eval $(call script_test,house/run_tests,tests/house/run_tests.sh))
$(eval $(call script_test,house/setup,tests/house/setup.sh))
$(eval $(call script_test,house/lint,tests/house/lint.sh))
