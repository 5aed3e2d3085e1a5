# The controller of a group's banks beside the timing model and the trace checker.
$(eval $(call rtl_test,rtl/pnm/banks,banks_tb,rtl/pnm/pnm_dram_pkg.sv tests/rtl/pnm/banks_tb.sv,tests/rtl/pnm/banks.cpp,$(CYCLE_LIB)))
$(BUILD)/tests/rtl/pnm/banks: tests/rtl/common/bench.hpp tests/rtl/common/rng.hpp
$(BUILD)/tests/rtl/pnm/banks: CPPUTEST_LIBS += $(JANSSON_LIBS)

.PHONY: soak-pnm-banks
soak-pnm-banks: $(BUILD)/tests/rtl/pnm/banks
	@MR_FULL=1 $< -v
SOAKS += soak-pnm-banks
