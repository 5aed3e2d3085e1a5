# The command as its callers see it.
SYSTEM_SUPPORT := tests/system/files.py tests/system/harness.py
$(eval $(call script_test,system/bad_input,tests/system/bad_input.py,$(SYSTEM_SUPPORT) $(MILLRACE)))
$(eval $(call script_test,system/contract,tests/system/contract.py,$(SYSTEM_SUPPORT) $(MILLRACE)))
$(eval $(call script_test,system/seed_elsewhere,tests/system/seed_elsewhere.py,tests/system/harness.py $(MILLRACE)))
$(eval $(call script_test,system/arithmetic_page,tests/system/arithmetic_page.py,tests/system/seed_elsewhere.py \
	tests/system/harness.py $(MILLRACE)))
$(eval $(call script_test,system/nic_page,tests/system/nic_page.py,docs/examples/decode_step.py docs/nic.md $(MILLRACE)))
