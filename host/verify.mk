# The timing models beside the RTL, every workload of the matrix.
.PHONY: bench-verify
bench-verify: $(MILLRACE) $(SIM_RGU) $(SIM_PNM) $(DRIVER_DIR)/mr_driver_sim.so $(SIM_HOST)
	@echo "verify"
	@$(MILLRACE) verify
BENCHES += bench-verify
