# Requests over a network with every fault: at a size for CI here, at full size in `make soak`.
NIC_FAULTS := $(BUILD)/soak/nic_faults
NIC_FAULTS_SRC := tests/soak/nic_faults.cpp tests/unit/nic_host/support.cpp tests/unit/nic_host/main.cpp
$(call objs,tests/soak/nic_faults.cpp): CXXFLAGS += $(CPPUTEST_CFLAGS)
$(NIC_FAULTS): $(call objs,$(NIC_FAULTS_SRC)) $(LIBMILLRACE_A) $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) -o $@ $^ $(HOST_LIBS) $(CPPUTEST_LIBS)

$(eval $(call script_test,system/nic_faults,tests/soak/nic_faults.sh,$(NIC_FAULTS) $(SIM_NIC)))

.PHONY: soak-nic-faults
soak-nic-faults: $(NIC_FAULTS) $(SIM_NIC)
	@echo "10^5 requests over golden NICs, then over simulated ones"
	@MR_NIC_REQUESTS=100000 MR_NIC_URI='golden?nodes=4' $(NIC_FAULTS)
	@MILLRACE_DRIVERS="$(SIM_LIBDIR)" MR_NIC_REQUESTS=100000 MR_NIC_URI='sim:nic?nodes=4' $(NIC_FAULTS)
SOAKS += soak-nic-faults
