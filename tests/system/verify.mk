# The timing models beside the RTL.
$(eval $(call script_test,system/verify,tests/system/verify.py,tests/system/harness.py models/cycle/verify.json \
	$(MILLRACE)))
