# The shift registers of the lfsr generator; their state can be set from outside.
$(eval $(call rtl_test,rtl/pnm/lfsr,lfsr_tb,rtl/pnm/pnm_stream_pkg.sv tests/rtl/pnm/lfsr_tb.sv rtl/pnm/pnm_lfsr.sv,\
	tests/rtl/pnm/lfsr.cpp,$(GOLDEN_LIB),--public-flat-rw))
$(BUILD)/tests/rtl/pnm/lfsr: tests/rtl/common/bench.hpp tests/rtl/common/rng.hpp
