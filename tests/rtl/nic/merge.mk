# The merge engine of the NIC and its function units.
NIC_MERGE_T := tests/rtl/nic/merge
$(eval $(call rtl_test,rtl/nic/fn,fn_tb,$(NIC_MERGE_T)/fn_tb.sv,$(NIC_MERGE_T)/fn_test.cpp,))
$(eval $(call rtl_test,rtl/nic/merge,merge_tb,rtl/nic/nic_pkg.sv rtl/nic/nic_merge_pkg.sv \
	$(NIC_MERGE_T)/merge_tb.sv,$(NIC_MERGE_T)/merge_test.cpp,$(GOLDEN_LIB)))
