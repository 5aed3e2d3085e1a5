# The NIC behind a Linux TAP interface; skips where that is not permitted.
$(eval $(call script_test,system/nic_tap,tests/system/nic_tap.py,tests/system/harness.py $(wildcard tests/system/nic/*.py) \
	$(MILLRACE)))
# Rates and latencies of the simulated NIC; 1 % of the frames that are demanded, all of them in `make soak`.
$(eval $(call script_test,system/nic_rates,tests/system/nic_rates.py,tests/system/harness.py $(MILLRACE) $(SIM_NIC)))
.PHONY: soak-nic-rates
soak-nic-rates: $(MILLRACE) $(SIM_NIC)
	@BUILD="$(BUILD)" MR_NIC_SWEEP=100 tests/system/nic_rates.py
SOAKS += soak-nic-rates
