# Tests of rtl/common. The benches share bench.hpp; tops are small so that they build quickly. Verilator
# finds the cells by name, so that a model is made again only when a file it uses changes.
MR_COMMON_T := tests/rtl/common

$(eval $(call rtl_test,rtl/common_float,float_tb,$(MR_COMMON_T)/float_tb.sv,$(MR_COMMON_T)/float_test.cpp,))
$(eval $(call rtl_test,rtl/common_fp32,fp32_tb,$(MR_COMMON_T)/fp32_tb.sv,$(MR_COMMON_T)/fp32_test.cpp,))
$(eval $(call rtl_test,rtl/common_stream,stream_tb,$(MR_COMMON_T)/stream_tb.sv,$(MR_COMMON_T)/stream_test.cpp,))
$(eval $(call rtl_test,rtl/common_axi,axi_tb,$(MR_COMMON_T)/axi_tb.sv,$(MR_COMMON_T)/axi_test.cpp,))
$(eval $(call rtl_test,rtl/common_check,check_tb,$(MR_COMMON_T)/check_tb.sv,$(MR_COMMON_T)/check_test.cpp,))
$(eval $(call rtl_test,rtl/common_regs,rgu_regs,rtl/rgu/rgu_regs.sv,$(MR_COMMON_T)/regs_test.cpp,))
