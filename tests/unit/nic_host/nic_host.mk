#The host runtime of NIC clusters, over golden NICs;                                               \
    tests / conformance / nic runs a part over the RTL.
NIC_HOST_SRC := $(wildcard tests/unit/nic_host/*.cpp)
$(eval $(call unit_test,unit/nic_host,$(NIC_HOST_SRC),$(LIBMILLRACE_A) $(GOLDEN_LIB),$(HOST_LIBS)))
