# The simulator of NIC clusters with an empty unit inside.
NIC_CLUSTER_LIB := $(BUILD)/lib/nic_cluster/libmr_sim_nic.so
$(eval $(call sim_nic_library,nic_cluster,--x-assign fast --x-initial fast,-DVM_TRACE=0 -DVM_TRACE_FST=0,-O2,\
	tests/rtl/nic/cluster/nic_kernel.sv,$(NIC_CLUSTER_LIB),tests/rtl/nic/cluster/nic_kernel.sv))
$(eval $(call unit_test,rtl/nic/cluster,tests/rtl/nic/cluster/cluster_test.cpp,$(LIBMILLRACE_A) $(GOLDEN_LIB),$(HOST_LIBS)))
$(BUILD)/tests/rtl/nic/cluster: | $(NIC_CLUSTER_LIB)
