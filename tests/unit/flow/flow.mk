# Normalizing flows: files, images, and programs against the float64 definition.
FLOW_TEST_SRC := $(wildcard tests/unit/flow/*.cpp)
FLOW_TEST := $(BUILD)/tests/unit/flow
TESTS += $(FLOW_TEST)

$(call objs,$(FLOW_TEST_SRC)): CXXFLAGS += $(CPPUTEST_CFLAGS)
$(FLOW_TEST): $(call objs,$(FLOW_TEST_SRC)) $(LIBMILLRACE)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) -o $@ $(call objs,$(FLOW_TEST_SRC)) -L$(dir $(LIBMILLRACE)) -lmillrace \
		-Wl,-rpath,'$$ORIGIN/../../lib' $(CPPUTEST_LIBS) -lm
