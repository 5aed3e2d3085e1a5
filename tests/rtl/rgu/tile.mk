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

# The generator alone, to see what it costs to simulate.
RGU_GEN_SV := rtl/rgu/rgu_pkg.sv \
	$(addprefix rtl/rgu/rgu_,bank.sv block.sv format.sv gen.sv mac.sv reader.sv store.sv tile.sv \
	wht_lane.sv wht_word.sv) \
	$(addprefix rtl/common/mr_,fifo.sv stream_reg.sv stream_check.sv fx_scale.sv fx_to_fp.sv fp_consts.sv \
	fp32_unpack.sv)
RGU_GEN_DIR := $(BUILD)/verilated/bench_rgu_gen
RGU_GEN_BENCH := $(BUILD)/bench/rgu_gen
$(RGU_GEN_DIR)/Vrgu_tile__ALL.a: $(RGU_GEN_SV)
	@mkdir -p $(@D)
	@echo "  VERIL bench_rgu_gen"
	@$(VERILATOR) --cc -Wall --assert -O3 --x-assign fast --x-initial fast --top-module rgu_tile \
		--Mdir $(@D) $(RGU_GEN_SV) > /dev/null
	@+$(MAKE) --no-print-directory -s -C $(@D) -f Vrgu_tile.mk Vrgu_tile__ALL.a CXX="$(CXX)" \
		OPT_FAST=-O3 OPT_SLOW=-O1 OPT_GLOBAL=-O2 > /dev/null
$(RGU_GEN_BENCH): tests/rtl/rgu/gen_bench.cpp $(RGU_GEN_DIR)/Vrgu_tile__ALL.a $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) $(CXXFLAGS_ALL) -w -DVM_TRACE=0 -I$(RGU_GEN_DIR) -isystem $(VERILATOR_INC) \
		-isystem $(VERILATOR_INC)/vltstd -o $@ $^ $(VERILATOR_INC)/verilated.cpp \
		$(VERILATOR_INC)/verilated_threads.cpp -pthread -lm

.PHONY: bench-rgu-tile
bench-rgu-tile: $(RGU_TILE_BENCH) $(RGU_GEN_BENCH)
	@$(RGU_TILE_BENCH)
	@$(RGU_GEN_BENCH)
BENCHES += bench-rgu-tile
SYNTHS += rgu_tile
