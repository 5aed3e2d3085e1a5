# The configuration file of a NIC cluster, the switch model, and clusters of golden NICs.
NIC_NET_TEST_SRC := $(wildcard tests/unit/nic_net/*.cpp)
NIC_NET_TEST := $(BUILD)/tests/unit/nic_net
TESTS += $(NIC_NET_TEST)

$(call objs,$(NIC_NET_TEST_SRC)): CXXFLAGS += $(CPPUTEST_CFLAGS)
$(NIC_NET_TEST): $(call objs,$(NIC_NET_TEST_SRC)) $(LIBMILLRACE_A) $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) -o $@ $^ $(HOST_LIBS) $(CPPUTEST_LIBS)
