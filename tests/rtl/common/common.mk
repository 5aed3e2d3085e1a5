# Tests of rtl/common. The benches share bench.hpp; tops are small so that they build quickly.
MR_COMMON_SV := $(sort $(wildcard rtl/common/*.sv))
MR_COMMON_T := tests/rtl/common

$(eval $(call rtl_test,rtl/common_float,float_tb,$(MR_COMMON_SV) $(MR_COMMON_T)/float_tb.sv,\
	$(MR_COMMON_T)/float_test.cpp,))
$(BUILD)/tests/rtl/common_float: $(MR_COMMON_T)/bench.hpp

$(eval $(call rtl_test,rtl/common_stream,stream_tb,$(MR_COMMON_SV) $(MR_COMMON_T)/stream_tb.sv,\
	$(MR_COMMON_T)/stream_test.cpp,))
$(BUILD)/tests/rtl/common_stream: $(MR_COMMON_T)/bench.hpp

$(eval $(call rtl_test,rtl/common_axi,axi_tb,$(MR_COMMON_SV) $(MR_COMMON_T)/axi_tb.sv,\
	$(MR_COMMON_T)/axi_test.cpp,))
$(BUILD)/tests/rtl/common_axi: $(MR_COMMON_T)/bench.hpp

$(eval $(call rtl_test,rtl/common_check,check_tb,$(MR_COMMON_SV) $(MR_COMMON_T)/check_tb.sv,\
	$(MR_COMMON_T)/check_test.cpp,))
$(BUILD)/tests/rtl/common_check: $(MR_COMMON_T)/bench.hpp

$(eval $(call rtl_test,rtl/common_regs,rgu_regs,$(MR_COMMON_SV) rtl/rgu/rgu_regs.sv,\
	$(MR_COMMON_T)/regs_test.cpp,))
$(BUILD)/tests/rtl/common_regs: $(MR_COMMON_T)/bench.hpp host/include/millrace/rgu_regs.h
