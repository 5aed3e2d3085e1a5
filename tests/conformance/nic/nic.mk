# What tests/unit/nic_host does over golden NICs, in part over Verilated ones. Linked with the shared
# library, which knows where the simulator is.
NIC_RTL_SRC := $(wildcard tests/conformance/nic/*.cpp) tests/unit/nic_host/support.cpp \
	tests/unit/nic_host/main.cpp
$(call objs,$(NIC_RTL_SRC)): CXXFLAGS += $(CPPUTEST_CFLAGS)
TESTS += $(BUILD)/tests/conformance/nic
$(BUILD)/tests/conformance/nic: $(call objs,$(NIC_RTL_SRC)) $(LIBMILLRACE) $(SIM_NIC)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) $(OPT) -o $@ $(call objs,$(NIC_RTL_SRC)) -L$(dir $(LIBMILLRACE)) -lmillrace \
		-Wl,-rpath,'$$ORIGIN/../../lib' $(CPPUTEST_LIBS) -lm
