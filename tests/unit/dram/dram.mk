# The DRAM timing model, its configurations and the trace checker.
$(eval $(call unit_test,unit/dram,tests/unit/dram/dram_test.cpp,$(CYCLE_LIB),$(JANSSON_LIBS)))
