# Programs for the near-memory unit: builder, layouts, and the ways to run them.
PNM_HOST_TEST := $(wildcard tests/unit/pnm_host/*.cpp)
PNM_FAKE := $(BUILD)/tests/unit/fake_pnm
$(PNM_FAKE)/libmr_sim_pnm.so: $(call objs,tests/unit/pnm_host/fake_pnm.c) $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@$(CC) $(OPT) -shared -o $@ $^ -lm
	@ln -sfn ../../../lib/millrace/mr_driver_sim.so ../../../lib/millrace/mr_sim_host $(@D)/
$(eval $(call unit_test,unit/pnm_host,$(PNM_HOST_TEST),$(LIBMILLRACE_A) $(GOLDEN_LIB),$(HOST_LIBS)))
$(BUILD)/tests/unit/pnm_host: | $(PNM_FAKE)/libmr_sim_pnm.so $(DRIVER_DIR)/mr_driver_sim.so $(SIM_HOST)
