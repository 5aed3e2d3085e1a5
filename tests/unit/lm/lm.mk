# What stands on the runtime: files, seeds, the language model's kernels, sampling, text.
# Linked with the shared library, which knows where the back ends are.
LM_TEST_SRC := $(wildcard tests/unit/lm/*.cpp)
LM_TEST := $(BUILD)/tests/unit/lm
TESTS += $(LM_TEST)

$(call objs,$(LM_TEST_SRC)): CXXFLAGS += $(CPPUTEST_CFLAGS)
$(LM_TEST): $(call objs,$(LM_TEST_SRC)) $(LIBMILLRACE)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) -o $@ $(call objs,$(LM_TEST_SRC)) -L$(dir $(LIBMILLRACE)) -lmillrace \
		-Wl,-rpath,'$$ORIGIN/../../lib' $(CPPUTEST_LIBS) -lm
