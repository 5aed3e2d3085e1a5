# The timing model of the near-memory unit against the simulated unit.
$(eval $(call unit_test,unit/pnm_time,$(wildcard tests/unit/pnm_time/*.cpp),$(LIBMILLRACE_A) $(CYCLE_LIB) $(GOLDEN_LIB),$(HOST_LIBS)))
$(BUILD)/tests/unit/pnm_time: | $(SIM_PNM) $(DRIVER_DIR)/mr_driver_sim.so $(SIM_HOST)
