# Tile mode of the whole RGU in its board wrapper, and the rates it reaches.
TILE_OBJ := $(BUILD)/obj/tests/rtl/rgu/tile.o $(BUILD)/obj/tests/rtl/rgu/tile_bench.o
$(TILE_OBJ): CXXFLAGS += -DMR_SIM_RGU_PATH='"$(abspath $(SIM_RGU))"' \
	-DMR_SIM_RGU_DEBUG_PATH='"$(abspath $(SIM_RGU_DEBUG))"'
$(eval $(call unit_test,rtl/rgu/tile,tests/rtl/rgu/tile.cpp,$(GOLDEN_LIB),-ldl))
$(BUILD)/tests/rtl/rgu/tile: | $(SIM_RGU_DEBUG)

RGU_TILE_BENCH := $(BUILD)/bench/rgu_tile
$(RGU_TILE_BENCH): $(BUILD)/obj/tests/rtl/rgu/tile_bench.o $(GOLDEN_LIB) | $(SIM_RGU)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) $(OPT) -o $@ $^ -ldl -lm

.PHONY: bench-rgu-tile
bench-rgu-tile: $(RGU_TILE_BENCH)
	@$(RGU_TILE_BENCH)
BENCHES += bench-rgu-tile
