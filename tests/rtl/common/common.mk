# Tests of rtl/common. The benches share bench.hpp; tops are small so that they build quickly.
MR_COMMON_SV := $(sort $(wildcard rtl/common/*.sv))
MR_COMMON_T := tests/rtl/common

$(eval $(call rtl_test,rtl/common_float,float_tb,$(MR_COMMON_SV) $(MR_COMMON_T)/float_tb.sv,\
	$(MR_COMMON_T)/float_test.cpp,))
$(BUILD)/tests/rtl/common_float: $(MR_COMMON_T)/bench.hpp
