# The matrix side of the near-memory unit, with its banks.
$(eval $(call rtl_test,rtl/pnm/matvec,matvec_tb,rtl/pnm/pnm_desc_pkg.sv rtl/pnm/pnm_stream_pkg.sv \
	rtl/pnm/pnm_dram_pkg.sv tests/rtl/pnm/matvec_tb.sv,tests/rtl/pnm/matvec.cpp \
	tests/rtl/pnm/matvec_reference.cpp,$(GOLDEN_LIB) $(CYCLE_LIB)))
$(BUILD)/tests/rtl/pnm/matvec: $(addprefix tests/rtl/pnm/,pnm_bench.hpp desc.hpp matvec_bench.hpp)
$(BUILD)/tests/rtl/pnm/matvec: VERILATED_LIBS += $(JANSSON_LIBS)

.PHONY: soak-pnm-matvec
soak-pnm-matvec: $(BUILD)/tests/rtl/pnm/matvec
	@MR_FULL=1 $< -v
SOAKS += soak-pnm-matvec
