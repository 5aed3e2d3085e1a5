# The hybrid multiplier's golden model, and its error over all pairs of fractions.
$(eval $(call unit_test,unit/pnm_mult,tests/unit/pnm/mult.cpp,$(GOLDEN_LIB)))

PNM_MULT_TABLE := $(BUILD)/bench/pnm_mult_table
$(PNM_MULT_TABLE): $(call objs,tests/unit/pnm/mult_table.c) $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -o $@ $^ -lm

.PHONY: bench-pnm-mult pnm-constants
bench-pnm-mult: $(PNM_MULT_TABLE)
	@$(PNM_MULT_TABLE)
BENCHES += bench-pnm-mult

# Offsets and biases found anew (ten minutes): rows for rtl/pnm/pnm_streams.json, then tools/gen_pnm.py.
pnm-constants: $(PNM_MULT_TABLE)
	@$(PNM_MULT_TABLE) --search
