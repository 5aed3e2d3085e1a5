# The timing model of the rotor generation unit against the simulated unit.
RGU_TIME_OBJ := $(BUILD)/obj/tests/unit/rgu_time/rgu_time_test.o
$(RGU_TIME_OBJ): CXXFLAGS += -DMR_SIM_RGU_PATH='"$(abspath $(SIM_RGU))"'
$(eval $(call unit_test,unit/rgu_time,tests/unit/rgu_time/rgu_time_test.cpp,$(CYCLE_LIB),$(JANSSON_LIBS) -ldl))
$(BUILD)/tests/unit/rgu_time: | $(SIM_RGU)
