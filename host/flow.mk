# What the flows score with every multiplication, on the golden model and the RTL (an interrupted run goes on).
.PHONY: bench-flow
bench-flow: $(MILLRACE) $(SIM_PNM) $(DRIVER_DIR)/mr_driver_sim.so $(SIM_HOST)
	@BUILD="$(BUILD)" tools/bench-flow
BENCHES += bench-flow

# The tables of docs/pnm-flows.md from what was measured.
.PHONY: docs-flow
docs-flow:
	@tools/bench-flow --page
DOCS += docs-flow
