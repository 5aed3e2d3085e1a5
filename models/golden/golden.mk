# Golden models: bit-true C and the float64 definition. Depends on nothing but libm.
GOLDEN_SRC := $(wildcard models/golden/*.c)
GOLDEN_LIB := $(BUILD)/lib/libmr_golden.a
ALL += $(GOLDEN_LIB)

$(GOLDEN_LIB): $(GOLDEN_SRC:%.c=$(BUILD)/obj/%.o)
	@mkdir -p $(@D)
	@echo "  AR    $@"
	@$(AR) rcs $@ $^
