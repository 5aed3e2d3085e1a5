# The merge engine of the NIC and its function units.
NIC_MERGE_T := tests/rtl/nic/merge
$(eval $(call rtl_test,rtl/nic/fn,fn_tb,$(NIC_MERGE_T)/fn_tb.sv,$(NIC_MERGE_T)/fn_test.cpp,))
