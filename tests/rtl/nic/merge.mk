# The merge engine of the NIC and its function units.
NIC_MERGE_T := tests/rtl/nic/merge
$(eval $(call rtl_test,rtl/nic/fn,fn_tb,$(NIC_MERGE_T)/fn_tb.sv,$(NIC_MERGE_T)/fn_test.cpp,))
$(eval $(call rtl_test,rtl/nic/merge,merge_tb,rtl/nic/nic_pkg.sv rtl/nic/nic_merge_pkg.sv \
	$(NIC_MERGE_T)/merge_tb.sv,$(NIC_MERGE_T)/merge_test.cpp,$(GOLDEN_LIB)))

# Rates and latencies, and what the engine costs to simulate.
NIC_MERGE_DIR := $(BUILD)/verilated/bench_nic_merge
NIC_MERGE_BENCH := $(BUILD)/bench/nic_merge
$(NIC_MERGE_DIR)/Vmerge_tb__ALL.a: $(NIC_MERGE_T)/merge_tb.sv $(wildcard rtl/nic/nic_merge*.sv rtl/common/mr_fn*.sv)
	@mkdir -p $(@D)
	@echo "  VERIL bench_nic_merge"
	@$(VERILATOR) --cc -Wall --assert -O3 --x-assign fast --x-initial fast -Irtl/common -Irtl/nic \
		--top-module merge_tb --Mdir $(@D) rtl/nic/nic_pkg.sv rtl/nic/nic_merge_pkg.sv $< > /dev/null
	@+$(MAKE) --no-print-directory -s -C $(@D) -f Vmerge_tb.mk Vmerge_tb__ALL.a CXX="$(CXX)" \
		OPT_FAST=-O3 OPT_SLOW=-O1 OPT_GLOBAL=-O2 > /dev/null
$(NIC_MERGE_BENCH): $(NIC_MERGE_T)/merge_bench.cpp $(NIC_MERGE_DIR)/Vmerge_tb__ALL.a $(GOLDEN_LIB)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CXX) $(CXXFLAGS_ALL) -w -DVM_TRACE=0 -I$(NIC_MERGE_DIR) -isystem $(VERILATOR_INC) \
		-isystem $(VERILATOR_INC)/vltstd -o $@ $^ $(VERILATOR_INC)/verilated.cpp \
		$(VERILATOR_INC)/verilated_threads.cpp -pthread -lm

.PHONY: bench-nic-merge
bench-nic-merge: $(NIC_MERGE_BENCH)
	@$(NIC_MERGE_BENCH)
BENCHES += bench-nic-merge
SYNTHS += nic_merge

# The random tests again and again, each time with another seed.
.PHONY: soak-nic-merge-rtl
soak-nic-merge-rtl: $(BUILD)/tests/rtl/nic/merge
	@for k in $$(seq 200); do $< > $(BUILD)/soak-nic-merge-rtl.log || { cat $(BUILD)/soak-nic-merge-rtl.log; exit 1; }; done
	@echo "merge engine: 200 seeds passed"
SOAKS += soak-nic-merge-rtl
