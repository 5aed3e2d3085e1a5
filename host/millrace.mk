# The millrace command. It links the library statically, so it runs from any folder; back ends that
# are loaded at run time are found beside it, in lib/millrace/.
CLI_SRC := $(wildcard host/cli/*.c)
MILLRACE := $(BUILD)/millrace
ALL += $(MILLRACE)

$(MILLRACE): $(call objs,$(CLI_SRC)) $(LIBMILLRACE_A) $(CYCLE_LIB) $(GOLDEN_LIB)
	@echo "  LINK  $@"
	@$(CC) -o $@ $^ $(HOST_LIBS) -lpcap

.PHONY: bench-lm
bench-lm: $(MILLRACE)
	@BUILD="$(BUILD)" tools/bench-lm
BENCHES += bench-lm

# Rates and latencies of the NIC, a frame of every UDP length among them (10 minutes with --sweep 100).
.PHONY: bench-nic
bench-nic: $(MILLRACE) $(SIM_NIC)
	@echo "nic bench --sweep 1"
	@$(MILLRACE) nic bench --sweep 1
BENCHES += bench-nic

# Every policy on the recorded traces, as docs/nic-study.md shows it.
.PHONY: bench-nic-study
bench-nic-study: $(MILLRACE)
	@echo "nic study --study models/cycle/studies/nic.json"
	@$(MILLRACE) nic study --study models/cycle/studies/nic.json --csv $(BUILD)/nic-study.csv --page $(BUILD)/nic-study.html
BENCHES += bench-nic-study

# Matrices times vectors on the simulated near-memory unit: at least 90 % of the matrix side's cycles multiply.
.PHONY: bench-pnm-gemv
bench-pnm-gemv: $(MILLRACE) $(SIM_PNM) $(DRIVER_DIR)/mr_driver_sim.so $(SIM_HOST)
	@BUILD="$(BUILD)" tools/bench-pnm-gemv
BENCHES += bench-pnm-gemv
