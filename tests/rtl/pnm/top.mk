# Whole near-memory units, through the simulator libraries, beside the golden model.
PNM_TOP_T := tests/rtl/pnm/top
$(eval $(call unit_test,rtl/pnm/top,$(PNM_TOP_T)/programs.cpp $(PNM_TOP_T)/errors.cpp,\
	$(CYCLE_LIB) $(GOLDEN_LIB),-ldl $(JANSSON_LIBS)))
$(BUILD)/tests/rtl/pnm/top: | $(SIM_PNM) $(SIM_PNM_DEBUG)
$(call objs,$(wildcard $(PNM_TOP_T)/*.cpp)): CXXFLAGS += -DMR_SIM_PNM_PATH='"$(abspath $(SIM_PNM))"' \
	-DMR_SIM_PNM_DEBUG_PATH='"$(abspath $(SIM_PNM_DEBUG))"'

# 260 chips, both builds.
.PHONY: soak-pnm-top
soak-pnm-top: $(BUILD)/tests/rtl/pnm/top
	@MR_FULL=1 $< -v
SOAKS += soak-pnm-top
