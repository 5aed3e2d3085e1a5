# The NIC behind a Linux TAP interface; skips where that is not permitted.
$(eval $(call script_test,system/nic_tap,tests/system/nic_tap.py,tests/system/harness.py $(wildcard tests/system/nic/*.py) \
	$(MILLRACE)))
