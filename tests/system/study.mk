$(eval $(call script_test,system/nic_study,tests/system/nic_study.py,tests/system/harness.py $(MILLRACE)))
