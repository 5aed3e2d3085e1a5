# The seed path of the RGU: angles to tables.
RGU_SEED_SV := $(addprefix rtl/rgu/rgu_,pkg.sv trig_rom.sv sincos.sv fetch.sv expand.sv tables.sv seed.sv) \
	rtl/common/mr_stream_check.sv
$(eval $(call rtl_test,rtl/rgu/sincos,rgu_sincos,rtl/rgu/rgu_sincos.sv rtl/rgu/rgu_trig_rom.sv,\
	tests/rtl/rgu/sincos.cpp,$(GOLDEN_LIB)))
$(eval $(call rtl_test,rtl/rgu/seed,rgu_seed,$(RGU_SEED_SV),tests/rtl/rgu/seed.cpp,$(GOLDEN_LIB)))
