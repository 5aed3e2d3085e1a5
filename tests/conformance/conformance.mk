# The conformance suite, and what it needs to make faults happen.
CONFORMANCE_SRC := $(wildcard tests/conformance/*_test.cpp) tests/conformance/main.cpp
CONFORMANCE := $(BUILD)/tests/conformance/all
TESTS += $(CONFORMANCE)
LINT_C += $(wildcard tests/conformance/*.c)

$(call objs,$(CONFORMANCE_SRC)): CXXFLAGS += $(CPPUTEST_CFLAGS)
# Linked with the shared library, as a program of a user would be.
$(CONFORMANCE): $(call objs,$(CONFORMANCE_SRC)) $(LIBMILLRACE) $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) -o $@ $(call objs,$(CONFORMANCE_SRC)) -L$(dir $(LIBMILLRACE)) -lmillrace \
		-Wl,-rpath,'$$ORIGIN/../../lib' $(GOLDEN_LIB) $(CPPUTEST_LIBS) -lm
