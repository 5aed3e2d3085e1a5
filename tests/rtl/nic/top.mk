# The whole NIC beside the golden model.
NIC_TOP_T := tests/rtl/nic/top
NIC_TOP_SV := $(sort $(wildcard rtl/nic/*_pkg.sv)) rtl/kernels/nic_kernel.sv
NIC_TOP_LIBS := $(call objs,host/nic/tables.c host/core/error.c sim/axi_memory.cpp sim/options.cpp) $(GOLDEN_LIB)

# A small directory and memory: a model begins with all its registers as noise.
$(eval $(call rtl_test,rtl/nic/top,nic_kernel,$(NIC_TOP_SV),$(NIC_TOP_T)/top.cpp $(NIC_TOP_T)/rate.cpp $(NIC_TOP_T)/fault.cpp,$(NIC_TOP_LIBS),\
	-GBucketBits=8 -GPageBits=14 --output-split 20000 -CFLAGS -fno-var-tracking))
$(BUILD)/verilated/rtl/nic/top/Vnic_kernel__ALL.a: RTL_OPT := -O1
$(BUILD)/tests/rtl/nic/top: $(wildcard $(NIC_TOP_T)/*.hpp) tests/rtl/nic/frames.hpp tests/rtl/common/bench.hpp

# Rates and latencies at full size (about 65 million cycles), and the faults.
.PHONY: bench-nic-top soak-nic-top
bench-nic-top: $(BUILD)/tests/rtl/nic/top
	@MR_FULL=1 $< -v -sg NicRate
soak-nic-top: $(BUILD)/tests/rtl/nic/top
	@MR_FULL=1 $< -v -sg NicTop
	@MR_FULL=1 $< -v -sg NicFault
BENCHES += bench-nic-top
SOAKS += soak-nic-top
