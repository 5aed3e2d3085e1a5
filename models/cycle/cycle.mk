# Timing models: when things happen, never what they hold.
CYCLE_SRC := $(wildcard models/cycle/*.c)
CYCLE_LIB := $(BUILD)/lib/libmr_cycle.a
ALL += $(CYCLE_LIB)

$(CYCLE_LIB): $(call objs,$(CYCLE_SRC))
	@mkdir -p $(@D)
	@echo "  AR    $@"
	@rm -f $@
	@$(AR) rcs $@ $^
