# The host library: core, what stands on it, the cpu back end and the golden models in one.
HOST_CORE_SRC := $(wildcard host/core/*.c) $(wildcard drivers/cpu/*.c)
HOST_MORE_SRC := $(wildcard host/io/*.c host/units/*.c host/lm/*.c host/nic/*.c host/kv/*.c host/pnm/*.c host/flow/*.c) \
	$(wildcard sim/net/*.c) models/cycle/network.c
HOST_OBJS = $(call objs,$(HOST_CORE_SRC) $(HOST_MORE_SRC)) $(KERNEL_OBJS) $(KERNEL_TABLE_OBJ)
HOST_LIBS = $(JANSSON_LIBS) -lpng -lz -ldl -pthread -lm

LIBMILLRACE := $(BUILD)/lib/libmillrace.so
LIBMILLRACE_A := $(BUILD)/lib/libmillrace.a
ALL += $(LIBMILLRACE) $(LIBMILLRACE_A)

$(LIBMILLRACE): $(HOST_OBJS) $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -shared -o $@ $(HOST_OBJS) $(GOLDEN_LIB) $(HOST_LIBS)

$(LIBMILLRACE_A): $(HOST_OBJS)
	@mkdir -p $(@D)
	@rm -f $@
	@$(AR) rcs $@ $(HOST_OBJS)

# The programs of docs/, built so that they stay true.
EXAMPLES := $(patsubst docs/examples/%.c,$(BUILD)/examples/%,$(wildcard docs/examples/*.c))
ALL += $(EXAMPLES)
$(EXAMPLES): $(BUILD)/examples/%: $(BUILD)/obj/docs/examples/%.o $(LIBMILLRACE) $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(OPT) -o $@ $< -L$(BUILD)/lib -lmillrace -Wl,-rpath,'$$ORIGIN/../lib' $(GOLDEN_LIB) -lm
