# The millrace command. It links the library statically, so it runs from any folder; back ends that
# are loaded at run time are found beside it, in lib/millrace/.
CLI_SRC := $(wildcard host/cli/*.c)
MILLRACE := $(BUILD)/millrace
ALL += $(MILLRACE)

$(MILLRACE): $(call objs,$(CLI_SRC)) $(LIBMILLRACE_A) $(GOLDEN_LIB)
	@echo "  LINK  $@"
	@$(CC) -o $@ $^ $(HOST_LIBS) -lpcap

.PHONY: bench-lm
bench-lm: $(MILLRACE)
	@BUILD="$(BUILD)" tools/bench-lm
BENCHES += bench-lm
