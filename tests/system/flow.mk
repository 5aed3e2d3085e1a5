# run flow as its callers see it.
$(eval $(call script_test,system/flow,tests/system/flow.py,tests/system/harness.py $(MILLRACE)))
